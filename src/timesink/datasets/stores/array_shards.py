"""Shards of rendered images: what a renderer gives in order becomes `.npy` files, one by one."""

import io
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, BinaryIO

import google_crc32c
import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from timesink.datasets.stores.journal import Done
from timesink.datasets.stores.plan import Plan, Rendered
from timesink.datasets.verify import USABLE, inspect
from timesink.files import replacing

Render = Callable[[Sequence[str]], Iterator[tuple[NDArray[np.int64], NDArray[Any]]]]
"""Takes files; gives batches of their numbers, rising, and their images. A gap is a bad image."""

WAITING_BYTES = 256 << 20
"""Images that may wait for the disk while others are rendered."""

SYNC_BYTES = 8 << 20
"""Written before the kernel is told to begin with it."""

_BLOCK_BYTES = 1 << 20


def write_shards(
    plan: Plan, todo: Sequence[int], render: Render, finished: Callable[[Done], None]
) -> None:
    """Render the images of some shards and write these, in a thread of its own.

    `finished` is called in that thread with each shard that is on the disk.
    """
    assert plan.rendered is not None
    waiting: deque[Future[None]] = deque()
    most_waiting = 0
    numbers = np.concatenate([plan.shards[n] for n in todo])
    with ExitStack() as stack:
        writer = stack.enter_context(_Writer(plan, todo, finished))
        thread = stack.enter_context(ThreadPoolExecutor(1, "writer"))
        try:
            for order, images in render([plan.paths[n] for n in numbers.tolist()]):
                most_waiting = max(2, WAITING_BYTES // max(1, images.nbytes))
                waiting.append(thread.submit(writer.take, order, images))
                while len(waiting) > most_waiting or (waiting and waiting[0].done()):
                    waiting.popleft().result()
            waiting.append(thread.submit(writer.take, None, None))
            for future in waiting:
                future.result()
        finally:
            thread.shutdown(wait=True, cancel_futures=True)


class _Writer:
    """Puts images into one shard after the other; the one at hand is lost on an error."""

    def __init__(self, plan: Plan, todo: Sequence[int], finished: Callable[[Done], None]) -> None:
        self.plan, self.todo, self.finished = plan, todo, finished
        self.ends = np.cumsum([len(plan.shards[n]) for n in todo])
        self.at = 0
        self.shard: _OpenShard | None = None
        self.failed = False

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *error: object) -> None:
        if self.shard is not None:
            self.shard.abandon()

    def take(self, order: NDArray[np.int64] | None, images: NDArray[Any] | None) -> None:
        """Take a batch, or the end; after an error nothing more, or a batch would be missing."""
        if self.failed:
            return
        try:
            if order is None or images is None:
                # Shards of which no image came are written too, empty.
                self._up_to(int(self.ends[-1]))
            else:
                self._add(order, images)
        except BaseException:
            self.failed = True
            raise

    def _add(self, order: NDArray[np.int64], images: NDArray[Any]) -> None:
        """Put the images with these numbers in the row of all into their shards."""
        while len(order):
            self._up_to(int(order[0]))
            here = int(np.searchsorted(order, self.ends[self.at]))
            self._open().add(order[:here] - self._start(), images[:here])
            order, images = order[here:], images[here:]

    def _up_to(self, number: int) -> None:
        while self.at < len(self.ends) and number >= self.ends[self.at]:
            done = self._open().close()
            self.shard = None
            self.at += 1
            self.finished(done)

    def _start(self) -> int:
        return int(self.ends[self.at - 1]) if self.at else 0

    def _open(self) -> "_OpenShard":
        if self.shard is None:
            self.shard = _OpenShard(self.plan, self.todo[self.at])
        return self.shard


class _OpenShard:
    """A shard under its temporary name."""

    def __init__(self, plan: Plan, number: int) -> None:
        assert plan.rendered is not None
        self.plan, self.number, self.rendered = plan, number, plan.rendered
        self.planned = plan.shards[number]
        self.stack = ExitStack()
        self.temporary = self.stack.enter_context(replacing(plan.out / plan.files[number]))
        self.file: BinaryIO = self.stack.enter_context(self.temporary.open("x+b"))
        # It is nearly always right: only a shard with a bad image has fewer.
        self.header = _header(self.rendered, len(self.planned))
        self.crc = google_crc32c.value(self.header)
        self.came: list[int] = []
        self.crcs: list[int] = []
        self.unsynced = 0
        self._write(self.header)

    def add(self, order: NDArray[np.int64], images: NDArray[Any]) -> None:
        """Take images by their number in the shard."""
        images = np.ascontiguousarray(images)
        self._write(images.data)
        self.crc = google_crc32c.extend(self.crc, images)
        self.crcs += (google_crc32c.value(image) for image in images)
        self.came += order.tolist()

    def close(self) -> Done:
        """Make the shard whole, and tell what is in it."""
        if len(self.came) < len(self.planned):
            header = _header(self.rendered, len(self.came))
            assert len(header) == len(self.header)
            self.file.seek(0)
            self._write(header)
            self.file.flush()
            self.file.seek(0)
            self.crc = 0
            while block := self.file.read(_BLOCK_BYTES):
                self.crc = google_crc32c.extend(self.crc, block)
        size = self.rendered.image_bytes
        offsets = [len(self.header) + i * size for i in range(len(self.came))]
        self.stack.close()
        bad = sorted(set(range(len(self.planned))) - set(self.came))
        return Done(
            number=self.number,
            bytes=len(self.header) + len(self.came) * size,
            crc32c=self.crc,
            images=self.planned[self.came].tolist() if self.came else [],
            columns={"offset": offsets, "bytes": [size] * len(offsets), "crc32c": self.crcs},
            faults=[(int(self.planned[i]), self._why(int(self.planned[i]))) for i in bad],
        )

    def abandon(self) -> None:
        """Leave nothing."""
        self.stack.__exit__(GeneratorExit, GeneratorExit(), None)

    def _why(self, image: int) -> str:
        fault = inspect(self.plan.paths[image])
        return "not decodable by TensorFlow" if fault in (None, *USABLE) else str(fault)

    def _write(self, content: Any) -> None:
        self.unsynced += self.file.write(content)
        if self.unsynced >= SYNC_BYTES:
            # Starts to write it out, without waiting: else all of a shard is waited for at its end.
            self.file.flush()
            os.posix_fadvise(self.file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self.unsynced = 0


def _header(rendered: Rendered, images: int) -> bytes:
    """Give the head of a `.npy` file; its length is the same for any number of images."""
    head = io.BytesIO()
    description = {
        "descr": np.dtype(rendered.dtype).newbyteorder("<").str,
        "fortran_order": False,
        "shape": (images, *rendered.shape),
    }
    npy.write_array_header_1_0(head, description)
    return head.getvalue()
