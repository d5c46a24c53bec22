"""A store: many images in few files, with an index and checksums; what `dataset convert` makes."""

from typing import Protocol


class Store(Protocol):
    """What every store can tell of its records."""

    @property
    def files(self) -> tuple[str, ...]:
        """The files that hold the records: absolute paths."""

    def fault(self, record: int) -> str | None:
        """Name what is wrong with a record, by looking at all of it; None when nothing is."""
