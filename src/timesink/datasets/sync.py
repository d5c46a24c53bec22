"""Brings the images of a remote place to a local folder: only the chosen, only what differs."""

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from timesink.datasets.arrival import receive, remove_leftovers
from timesink.datasets.remotes import connector
from timesink.datasets.remotes.address import Address, parse_address
from timesink.datasets.remotes.crew import Crew, Lost
from timesink.datasets.remotes.remote import (
    Incoming,
    Interrupted,
    Remote,
    Unavailable,
    Unreachable,
)
from timesink.datasets.remotes.walk import RemoteFile, RemoteListing, list_images
from timesink.datasets.sync_state import SyncState
from timesink.errors import SyncError
from timesink.files import alone_in

SAVE_EVERY_S = 5.0
SAVING_SHARE = 0.05
"""At most this share of the time goes into saving the state of a very large set."""


@dataclass(frozen=True)
class SyncSummary:
    """What a sync did."""

    remote: str
    local: str
    files: int
    """That came now."""
    bytes: int
    unchanged: int
    skipped: int
    """Other than images, hidden, or in a loop of links."""
    refused: tuple[str, ...]
    """Names that would have left LOCAL."""
    failed: tuple[tuple[str, str], ...]
    """Path and reason."""
    seconds: float

    @property
    def mb_per_s(self) -> float:
        """The rate over the whole call, listing included."""
        return self.bytes / 1e6 / max(self.seconds, 1e-9)

    @property
    def sentence(self) -> str:
        """What came, for people."""
        return (
            f"{self.local}: {self.files} files came ({self.bytes / 1e6:.1f} MB in "
            f"{self.seconds:.1f} s, {self.mb_per_s:.1f} MB/s), {self.unchanged} unchanged, "
            f"{self.skipped} skipped (no images), {len(self.refused)} refused, "
            f"{len(self.failed)} failed"
        )

    def check(self) -> None:
        """Raise a SyncError when files failed that should have come."""
        if self.failed:
            path, reason = self.failed[0]
            raise SyncError(
                f"{self.remote}: {len(self.failed)} could not be brought, the first is "
                f"{path!r}: {reason}; run the same command again to try these once more"
            )


def sync(
    remote: str,
    local: Path,
    *,
    classes: Sequence[str] = (),
    key: Path | None = None,
    known_hosts: Path | None = None,
    on_total: Callable[[int], None] = lambda files: None,
    advance: Callable[[int], None] = lambda files: None,
) -> SyncSummary:
    """Make LOCAL hold the remote place's images of these classes (all when none are named).

    `on_total` is told, after listing, how many files are to be looked at or brought; `advance`
    how many more are done. After a cut that outlasts the reconnects a SyncError says how far
    it came; another call goes on from there. Check the summary for files that failed alone.
    """
    started_s = time.monotonic()
    address = parse_address(remote)
    _refuse_overlap(address, local)
    connect = connector(address, key=key, known_hosts=known_hosts)
    with _crew(address, connect) as crew, _alone_in(local):
        remove_leftovers(local)
        listing = list_images(crew, address, classes)
        transfer = _Transfer(local, SyncState.load(local, str(address)), listing)
        transfer.run(crew, address, on_total, advance)
    return SyncSummary(
        remote=str(address),
        local=str(local),
        files=transfer.files,
        bytes=transfer.bytes,
        unchanged=transfer.unchanged,
        skipped=listing.skipped,
        refused=tuple(listing.refused),
        failed=tuple(listing.failed),
        seconds=time.monotonic() - started_s,
    )


@contextmanager
def _crew(address: Address, connect: Callable[[], Remote]) -> Iterator[Crew]:
    """Give the workers; what they cannot overcome becomes an error of the user's."""
    crew = None
    try:
        crew = Crew(connect)
        yield crew
    except Unreachable as reason:
        raise SyncError(f"{address}: cannot be reached: {reason}") from None
    except Lost as reason:
        raise SyncError(
            f"{address}: the connection was lost while listing: {reason}; "
            "run the same command again"
        ) from None
    except (Interrupted, Unavailable) as reason:
        raise SyncError(f"{address}: {reason}") from None
    finally:
        if crew is not None:
            crew.close()


class _Transfer:
    """The files of one listing, compared with LOCAL and brought where they differ."""

    def __init__(self, local: Path, state: SyncState, listing: RemoteListing) -> None:
        self.local, self.state, self.listing = local, state, listing
        self.real_local = Path(os.path.realpath(local))
        self.files = self.bytes = self.unchanged = 0

    def run(
        self,
        crew: Crew,
        address: Address,
        on_total: Callable[[int], None],
        advance: Callable[[int], None],
    ) -> None:
        wanted = [file for file in self._inside_local() if not self._is_here(file)]
        on_total(len(wanted))
        left = len(wanted)
        save_at_s = time.monotonic() + SAVE_EVERY_S
        try:
            for file, arrived in crew.each(wanted, self._bring):
                left -= 1
                self._note(file, arrived)
                advance(1)
                if time.monotonic() >= save_at_s:
                    save_at_s = self._save()
        except Lost as reason:
            raise SyncError(
                f"{address}: the connection was lost: {reason}; {self.files} files came, "
                f"{left} are left; run the same command again to go on"
            ) from None
        finally:
            self.state.save()

    def _save(self) -> float:
        """Save the state, so that a killed sync knows what came; gives when to do it next."""
        started_s = time.monotonic()
        self.state.save()
        now_s = time.monotonic()
        return now_s + max(SAVE_EVERY_S, (now_s - started_s) / SAVING_SHARE)

    def _inside_local(self) -> Iterator[RemoteFile]:
        """Pass on the files that stay in LOCAL: a local link may lead a folder out of it."""
        inside: dict[Path, bool] = {}
        for file in self.listing.files:
            parent = (self.local / file.path).parent
            if parent not in inside:
                inside[parent] = Path(os.path.realpath(parent)).is_relative_to(self.real_local)
            if inside[parent]:
                yield file
            else:
                self.listing.refused.append(file.path)

    def _is_here(self, file: RemoteFile) -> bool:
        if file.size_bytes is None:
            return False
        here = self._is_same(file.path, file.size_bytes, file.version, file.mtime_s)
        if here:
            self.unchanged += 1
            self.state.remember(file.path, file.size_bytes, file.version)
        return here

    def _is_same(self, path: str, size_bytes: int, version: str, mtime_s: int | None) -> bool:
        local = _local_stat(self.local / path)
        if local is None or local.st_size != size_bytes:
            return False
        known_version = self.state.version(path, size_bytes)
        if known_version is not None:
            return known_version == version
        # Each file got its source's time when it came, so a sync that was killed before it
        # saved its state still knows them.
        return not version if mtime_s is None else int(local.st_mtime) == mtime_s

    def _bring(self, remote: Remote, file: RemoteFile) -> Incoming | None:
        """Bring one file, in a worker; None when it turns out to be here already."""
        target = self.local / file.path
        local = _local_stat(target)
        known_version = None if local is None else self.state.version(file.path, local.st_size)
        with remote.open(file.path, known_version) as incoming:
            if incoming is None:
                return None
            size_bytes = incoming.size_bytes
            if size_bytes is not None and self._is_same(
                file.path, size_bytes, incoming.version, incoming.mtime_s
            ):
                return None
            received_bytes = receive(incoming, target)
        return Incoming(received_bytes, incoming.version, incoming.mtime_s, iter(()))

    def _note(self, file: RemoteFile, arrived: Incoming | Unavailable | None) -> None:
        if isinstance(arrived, Unavailable):
            self.listing.failed.append((file.path, str(arrived)))
        elif arrived is None:
            self.unchanged += 1
        else:
            self.files += 1
            self.bytes += arrived.size_bytes or 0
            self.state.remember(file.path, arrived.size_bytes or 0, arrived.version)


def _local_stat(path: Path) -> os.stat_result | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _refuse_overlap(address: Address, local: Path) -> None:
    if address.scheme != "file":
        return
    there, here = Path(os.path.realpath(address.path)), Path(os.path.realpath(local))
    if there == here or there in here.parents or here in there.parents:
        raise SyncError(f"{address} and {local}: one is in the other; choose another LOCAL")


@contextmanager
def _alone_in(local: Path) -> Iterator[None]:
    """Make the folder, and keep a second sync out of it."""
    try:
        local.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SyncError(f"{local}: cannot be used: {error.strerror}") from None
    with alone_in(local, "sync", SyncError):
        yield
