"""Images with the deterministic stages done, stored as arrays of one shape and read by memory map.

A shard is a `.npy` file of shape (images, height, width, 3), so that NumPy opens it too.
"""

import mmap
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from timesink.datasets.verify import CHECKSUM, MISSING, TRUNCATED, UNREADABLE
from timesink.errors import DatasetError

DEFAULT_STAGES = ("decode", "convert", "resize(bilinear)")
"""What is stored of the preset seed000, so that messages need not spell it out."""

MOST_MAPPED = 512
"""Files mapped at once: each takes one of the process's 1,024 descriptors."""


@dataclass(frozen=True, eq=False)
class MaterializedStore:
    """Arrays of one shape; a record is known by its shard and its place in it."""

    root: Path
    shape: tuple[int, int, int]
    dtype: str
    stages: tuple[str, ...]
    """What was done before storing, in its canonical form."""
    image_size: int
    files: tuple[str, ...]
    """Absolute paths."""
    record_shard: NDArray[np.int32]
    record_offset: NDArray[np.int64]
    record_crc32c: NDArray[np.uint32]
    _maps: dict[int, tuple[mmap.mmap, NDArray[np.uint8]]] = field(
        default_factory=dict, init=False, repr=False
    )
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    @property
    def record_bytes(self) -> int:
        """The bytes of one image."""
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize

    def read(self, record: int) -> NDArray[Any]:
        """Give an image out of the mapped shard, its checksum checked."""
        content, fault = self._checked(record)
        if content is None:
            raise DatasetError(f"{self.place(record)}: {fault}; convert the images again")
        return content.view(self.dtype).reshape(self.shape)

    def read_many(self, records: NDArray[np.int64]) -> NDArray[Any]:
        """Give several images in one array."""
        images = np.empty((len(records), *self.shape), self.dtype)
        for place, record in enumerate(records.tolist()):
            images[place] = self.read(record)
        return images

    def fault(self, record: int) -> str | None:
        """Name what is wrong with a record; None when nothing is."""
        return self._checked(record)[1]

    def place(self, record: int) -> str:
        """Name the shard of a record and its number in it."""
        shard = int(self.record_shard[record])
        within = record - int(np.searchsorted(self.record_shard, shard))
        return f"{self.files[shard]}, record {within}"

    def unmap(self) -> None:
        """Let go of the files: what is mapped stays in memory. Arrays that were given stay good."""
        with self._lock:
            self._maps.clear()

    def _checked(self, record: int) -> tuple[NDArray[np.uint8] | None, str | None]:
        """Give the bytes of a record, or what is wrong with them."""
        shard, offset = int(self.record_shard[record]), int(self.record_offset[record])
        end = offset + self.record_bytes
        try:
            mapped, content = self._maps.get(shard) or self._map(shard)
            # A page that was cut off since would end the process.
            if mapped.size() < end or len(content) < end:
                return None, TRUNCATED
        except FileNotFoundError:
            return None, MISSING
        except OSError:
            return None, UNREADABLE
        except ValueError:  # a file without bytes cannot be mapped
            return None, TRUNCATED
        content = content[offset:end]
        # The checksum holds Python's lock, this does not: threads wait for the disk together.
        np.bitwise_or.reduce(content[::64])
        if google_crc32c.value(content) != self.record_crc32c[record]:
            return None, CHECKSUM
        return content, None

    def _map(self, shard: int) -> tuple[mmap.mmap, NDArray[np.uint8]]:
        with self._lock:
            if shard not in self._maps:
                while len(self._maps) >= MOST_MAPPED:
                    del self._maps[next(iter(self._maps))]
                with open(self.files[shard], "rb") as file:  # noqa: PTH123
                    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
                self._maps[shard] = mapped, np.frombuffer(mapped, np.uint8)
            return self._maps[shard]


def folder_name(stages: Sequence[str], image_size: int, stored: str) -> str:
    """Name the folder of a store below `.timesink/materialized`."""
    return f"{image_size}-{stored}-{blake2b(', '.join(stages).encode()).hexdigest()[:8]}"
