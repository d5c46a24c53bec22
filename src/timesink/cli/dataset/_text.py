"""How the dataset's commands write file names and sizes: always one printable line."""

import os


def printable(name: str | os.PathLike[str]) -> str:
    """Write a file's name; bytes that are not UTF-8 and control characters as escapes."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def byte_size(count: float) -> str:
    """Write a number of bytes with three digits and a decimal unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.4g} TB"
