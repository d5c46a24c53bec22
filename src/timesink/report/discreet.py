"""Strings as anybody may see them: a home directory is ~, passwords and signatures are left out."""

import re
from pathlib import Path
from typing import Any

LEFT_OUT = "…"
_ENDS = r"(?=$|[/\\\s:;,'\"`)\]}])"
_BEGINS = r"(?<![\w.~-])"
_HOMES = re.compile(rf"{_BEGINS}(?:/(?:home|Users)/[^/\s:'\"]+|/root){_ENDS}")
_PASSWORD = re.compile(r"(\w+://)[^/@\s]+@")
_SIGNED = re.compile(r"(\w+://[^\s?#]+)\?[^\s'\"]+")
_SECRET = re.compile(r"password|passwd|secret|token|credential|api_?key", re.IGNORECASE)


def discreet(value: Any, home: str | None = None) -> Any:
    """Give a value with every string in it made discreet; `home` is the reader's."""
    home = str(Path.home()) if home is None else home
    if isinstance(value, str):
        return discreet_text(value, home)
    if isinstance(value, dict):
        return {
            discreet_text(str(key), home): LEFT_OUT
            if isinstance(each, str) and _SECRET.search(str(key))
            else discreet(each, home)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [discreet(each, home) for each in value]
    return value


def discreet_text(text: str, home: str | None = None) -> str:
    """Give a string that names no home directory, no password and no signed address."""
    if "/" not in text:  # as most names: nothing of this is without one
        return text
    home = str(Path.home()) if home is None else home
    if len(home) > 1:
        text = re.sub(_BEGINS + re.escape(home.rstrip("/")) + _ENDS, "~", text)
    text = _HOMES.sub("~", text)
    text = _PASSWORD.sub(rf"\1{LEFT_OUT}@", text)
    return _SIGNED.sub(rf"\1?{LEFT_OUT}", text)
