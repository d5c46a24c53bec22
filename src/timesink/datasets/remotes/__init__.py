"""Remote places that images come from: one interface, and a file for each way to reach one.

address.py   what a person wrote       remote.py   what a place can do, and how it fails
sftp.py  http.py  s3.py  folder.py     the ways    crew.py     a few workers, a connection each
walk.py      which folders hold the classes, and the images in them
"""

from collections.abc import Callable
from pathlib import Path

from timesink.datasets.remotes.address import Address
from timesink.datasets.remotes.remote import Remote
from timesink.errors import MissingExtraError


def connector(
    address: Address, *, key: Path | None, known_hosts: Path | None
) -> Callable[[], Remote]:
    """Give the function that makes a connection to a place; libraries are imported only here."""
    try:
        if address.scheme == "sftp":
            from timesink.datasets.remotes.sftp import Login, SftpRemote

            login = Login.read(address, key=key, known_hosts=known_hosts)
            return lambda: SftpRemote(login)
        if address.scheme == "s3":
            from timesink.datasets.remotes.s3 import S3Remote

            shared = S3Remote(address)
            return lambda: shared
        if address.scheme in ("http", "https"):
            from timesink.datasets.remotes.http import HttpRemote

            return lambda: HttpRemote(address)
    except ImportError:
        raise MissingExtraError(f"dataset sync from {address.scheme}://", "remote") from None
    from timesink.datasets.remotes.folder import FolderRemote

    return lambda: FolderRemote(Path(address.path))
