"""Where a remote place is: the URL or path a person wrote, taken apart and safe to print."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from timesink.errors import SyncError

SCHEMES = ("sftp", "http", "https", "s3", "file")


@dataclass(frozen=True)
class Address:
    """A remote place; it holds no secret."""

    scheme: str
    path: str
    """Absolute and decoded; for s3, bucket/prefix."""
    host: str = ""
    port: int | None = None
    user: str | None = None

    def __str__(self) -> str:
        if self.scheme == "file":
            return self.path
        if self.scheme == "s3":
            return f"s3://{self.path}"
        login = f"{quote(self.user, safe='')}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port else ""
        return f"{self.scheme}://{login}{host}{port}{quote(self.path)}"


def parse_address(remote: str) -> Address:
    """Take a remote apart; a password in it is refused, and never repeated in a message."""
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", remote):
        return Address("file", str(Path(remote).absolute()))
    scheme = remote.partition("://")[0].lower()
    if scheme not in SCHEMES:
        raise SyncError(f"REMOTE: {scheme}:// is not known; use {', '.join(SCHEMES)} or a path")
    try:
        url = urlsplit(remote)
        host, port = url.hostname or "", url.port
    except ValueError:
        # The text is not repeated: what looks like a port may be a part of a password.
        raise SyncError(f"REMOTE: not a URL: write it as {_example(scheme)}") from None
    if url.password is not None or (url.username and scheme != "sftp"):
        advice = "use a key (--key)" if scheme == "sftp" else "credentials belong elsewhere"
        raise SyncError(f"REMOTE: a password or login in the URL is visible to others: {advice}")
    if url.query or url.fragment:
        raise SyncError("REMOTE: ? and # in a URL have no meaning here: write them as %3F and %23")
    path = unquote(url.path)
    if scheme == "file":
        if host not in ("", "localhost"):
            raise SyncError(f"REMOTE: file:// reaches this machine only, not {host}")
        return Address("file", path)
    if not host:
        raise SyncError(f"REMOTE: no host: write it as {_example(scheme)}")
    if scheme == "s3":
        return Address("s3", f"{url.netloc}{path}".rstrip("/"))
    user = unquote(url.username) if url.username else None
    return Address(scheme, path.rstrip("/") or "/", host, port, user)


def _example(scheme: str) -> str:
    examples = {"sftp": "sftp://user@host:22/path", "s3": "s3://bucket/path"}
    return examples.get(scheme, f"{scheme}://host/path")
