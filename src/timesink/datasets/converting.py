"""A dataset made into a store: on all cores, shard by shard, resumable, whole only at the end."""

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import google_crc32c

import timesink
from timesink import machine
from timesink.datasets._workers import map_unordered
from timesink.datasets.stores import contents
from timesink.datasets.stores.array_shards import Render, write_shards
from timesink.datasets.stores.contents import Manifest
from timesink.datasets.stores.indexing import done_of, make_index
from timesink.datasets.stores.journal import Done, StoreJournal
from timesink.datasets.stores.plan import Plan
from timesink.datasets.stores.record_shards import ImageFile, RecordTask, write_shard
from timesink.errors import (
    BadImagesError,
    DatasetError,
    DiskFullError,
    OutputExistsError,
    UsageError,
)
from timesink.files import TEMPORARY_SUFFIX, alone_in

SPARE = 1.02
"""How much more room is asked for than the images need."""

_OURS = re.compile(r"(train|validation)-\d{5,}-of-\d{5,}\.(tfrecord|npy)")
_BLOCK_BYTES = 4 << 20
_CHECKING_THREADS = 4


@dataclass(frozen=True)
class Converted:
    """A store, and how it came to be."""

    root: Path
    manifest: Manifest
    kept_shards: int
    """Shards that were there already."""
    left_out: tuple[tuple[str, str], ...]
    """Images that are not in it: name and fault."""


def convert(
    plan: Plan,
    *,
    render: Render | None = None,
    force: bool = False,
    workers: int | None = None,
    max_bad: float = 0.01,
    advance: Callable[[int], None] = lambda _: None,
) -> Converted:
    """Carry out a plan; shards that an earlier call finished are kept.

    `render` makes the arrays of materialized images. Broken images are left out and told; more
    than `max_bad` of all are an error. `advance` counts images.
    """
    try:
        _check_out(plan, force=force)
        plan.out.mkdir(parents=True, exist_ok=True)
        with alone_in(plan.out, "conversion", UsageError):
            _check_out(plan, force=force)
            return _Conversion(plan, max_bad, advance).run(render, workers, force=force)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(_full(plan.out)) from None
        raise UsageError(
            f"{error.filename or plan.out}: cannot be written: {error.strerror}; "
            "--out chooses another place"
        ) from None


class _Conversion:
    """One conversion at work."""

    def __init__(self, plan: Plan, max_bad: float, advance: Callable[[int], None]) -> None:
        self.plan, self.max_bad, self.advance = plan, max_bad, advance
        self.journal = StoreJournal(plan.out, plan.key)
        self.done: dict[int, Done] = {}
        self.faults = dict(plan.faults)

    def run(self, render: Render | None, workers: int | None, *, force: bool) -> Converted:
        plan = self.plan
        self._check_bad()
        manifest = None
        # What is unfinished is gone on with: --force is about a store that is whole.
        if not (force and contents.is_whole(plan.out)):
            before, manifest = self._before()
            for done in _unchanged(plan, before):
                self._take(done)
        kept = len(self.done)
        todo = [n for n in range(len(plan.shards)) if n not in self.done]
        if todo or manifest is None:
            self._check_space(todo)
            self.journal.start(list(self.done.values()))
            self._clear()
            try:
                self._make(todo, render, workers)
            except DiskFullError:
                raise DiskFullError(_full(plan.out)) from None
            manifest = self._finish()
        names = ((os.fsdecode(plan.names[i]), why) for i, why in sorted(self.faults.items()))
        return Converted(plan.out, manifest, kept, tuple(names))

    def _before(self) -> tuple[list[Done], Manifest | None]:
        """Give what earlier calls of the same plan finished, and the manifest if they ended."""
        out = self.plan.out
        if not contents.is_whole(out):
            return self.journal.read(), None
        try:
            store = contents.read_store(out)
        except DatasetError:  # damaged: made again
            return [], None
        return done_of(store, self.plan), store.manifest

    def _make(self, todo: Sequence[int], render: Render | None, workers: int | None) -> None:
        if not todo:
            return
        if self.plan.rendered is not None:
            assert render is not None
            write_shards(self.plan, todo, render, self._finished)
            return
        # Starting a process takes as long as copying a quarter of a gigabyte.
        worth = sum(map(self.plan.shard_bytes, todo)) >> 28
        workers = min(workers or machine.cores() * min(1, worth) or 1, len(todo))
        for done in map_unordered(write_shard, _record_tasks(self.plan, todo), workers=workers):
            self._finished(done)

    def _finished(self, done: Done) -> None:
        self.journal.add(done)
        self._take(done)

    def _take(self, done: Done) -> None:
        self.done[done.number] = done
        self.faults |= dict(done.faults)
        self.advance(len(done.images) + len(done.faults))
        self._check_bad()

    def _check_bad(self) -> None:
        images = len(self.plan.names)
        if len(self.faults) <= self.max_bad * images:
            return
        last, why = list(self.faults.items())[-1]
        raise BadImagesError(
            f"{len(self.faults)} of {images} images are broken, more than --max-bad "
            f"{self.max_bad:g} allows; the last is {_shown(self.plan.names[last])} ({why}); "
            "`timesink dataset verify` lists all, --quarantine moves them aside"
        )

    def _check_space(self, todo: Sequence[int]) -> None:
        plan = self.plan
        needed_bytes = round(sum(map(plan.shard_bytes, todo)) * SPARE)
        # What is there and will be made again gives its room back.
        kept = {plan.files[n] for n in self.done}
        for path in plan.out.iterdir():
            if _OURS.fullmatch(path.name) and path.name not in kept:
                needed_bytes -= path.stat().st_size
        free_bytes = shutil.disk_usage(plan.out).free
        if needed_bytes > free_bytes:
            raise DiskFullError(
                f"{plan.out}: {_size(needed_bytes)} more are needed and {_size(free_bytes)} are "
                "free: free some space, or choose another place with --out"
            )

    def _clear(self) -> None:
        """Remove what is not kept: first what would make it look whole."""
        kept = {self.plan.files[n] for n in self.done}
        for name in (contents.MANIFEST, contents.INDEX):
            (self.plan.out / name).unlink(missing_ok=True)
        for path in list(self.plan.out.iterdir()):
            ours = _OURS.fullmatch(path.name) or path.name.endswith(TEMPORARY_SUFFIX)
            if ours and path.name not in kept:
                path.unlink()

    def _finish(self) -> Manifest:
        plan, dataset, rendered = self.plan, self.plan.dataset, self.plan.rendered
        shards = [self.done[n] for n in range(len(plan.shards))]
        manifest = contents.write_store(
            plan.out,
            {
                "kind": plan.kind,
                "made_by": f"timesink {timesink.__version__}",
                "plan": plan.key,
                "fingerprint": dataset.fingerprint(),
                "classes": list(dataset.classes),
                "own_validation": plan.own_validation,
                "train_images": len(dataset.train),
                "validation_images": len(dataset.validation),
                "left_out_images": len(self.faults),
                "raw_bytes": plan.raw_bytes(),
                "stages": list(rendered.stages) if rendered else [],
                "image_size": rendered.image_size if rendered else None,
                "dtype": rendered.dtype if rendered else None,
                "shape": list(rendered.shape) if rendered else None,
                "shards": [
                    {
                        "file": plan.files[done.number],
                        "records": len(done.images),
                        "bytes": done.bytes,
                        "crc32c": f"{done.crc32c:08x}",
                    }
                    for done in shards
                ],
            },
            make_index(plan, shards, self.faults),
        )
        self.journal.remove()
        return manifest


def _unchanged(plan: Plan, before: Sequence[Done]) -> Iterator[Done]:
    """Pass on the shards that are on the disk as they were written."""

    def check(done: Done) -> bool:
        if not 0 <= done.number < len(plan.shards):
            return False
        path = plan.out / plan.files[done.number]
        try:
            if path.stat().st_size != done.bytes:
                return False
            crc = 0
            with path.open("rb", buffering=0) as file:
                while block := file.read(_BLOCK_BYTES):
                    crc = google_crc32c.extend(crc, block)
        except OSError:
            return False
        return crc == done.crc32c

    with ThreadPoolExecutor(_CHECKING_THREADS) as threads:
        for done, holds in zip(before, threads.map(check, before), strict=True):
            if holds:
                yield done


def _record_tasks(plan: Plan, todo: Sequence[int]) -> Iterator[RecordTask]:
    paths, labels = plan.paths, plan.labels
    class_names = [os.fsencode(name) for name in plan.dataset.classes]
    for number in todo:
        images = (
            ImageFile(i, paths[i], plan.names[i], labels[i], class_names[labels[i]])
            for i in plan.shards[number].tolist()
        )
        yield RecordTask(number, plan.out / plan.files[number], tuple(images))


def _check_out(plan: Plan, *, force: bool) -> None:
    """Refuse what would mix with, or overwrite, something else."""
    out = plan.out
    if not out.exists():
        return
    if not out.is_dir():
        raise OutputExistsError(f"{out} is a file; choose another place")
    if not contents.is_store(out):
        if any(not path.name.endswith(TEMPORARY_SUFFIX) for path in out.iterdir()):
            raise OutputExistsError(
                f"{out} is not empty and was not made by `dataset convert`; choose another place"
            )
        return
    if force or not contents.is_whole(out):
        return
    try:
        made = contents.read_manifest(out).plan
    except DatasetError:
        return
    if made != plan.key:
        raise OutputExistsError(
            f"{out} was made of other images or with other options; --force makes it again"
        )


def _full(out: Path) -> str:
    return (
        f"{out}: the disk is full: free some space and run the same command again; "
        "the shards that are done are kept"
    )


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:.2f} MB"


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
