"""An experiment from start to end: images, directory, processes, tables; once or repeatedly."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

from timesink import machine
from timesink.errors import (
    InterruptedRunError,
    MissingExtraError,
    RunError,
    RunFileError,
    TimesinkError,
)
from timesink.experiment import DatasetSection, Experiment, parse
from timesink.runs.directory import RunDirectory, create
from timesink.runs.journal import Event, Journal
from timesink.runs.probing import probe
from timesink.runs.supervisor import supervise
from timesink.runs.verdict import wants_verdict

GENERATED = Path("datasets/generated")
SOURCES = ("raw", "tfrecord", "materialized", "synthetic")
"""As likely as they find the images of an experiment: the files themselves first."""
GENERATED_CLASSES, GENERATED_IMAGES, GENERATED_VALIDATION_IMAGES = 10, 64, 16


@dataclass(frozen=True)
class Watcher:
    """Who looks on: told of events, lines and long work; the command line draws them."""

    observe: Callable[[Event], None]
    say: Callable[[str], None]
    progress: Callable[[str, int | None, str], AbstractContextManager[Callable[[int], None]]]


def check_framework() -> None:
    """Refuse early, in one line, where no framework is installed."""
    from importlib.util import find_spec

    if find_spec("tensorflow") is None:
        raise MissingExtraError("training", "cpu")


def prepare(asked: Experiment, watcher: Watcher) -> Experiment:
    """Get the images and check all that can be checked first; gives the resolved experiment."""
    from timesink.pipelines.source import open_images

    check_framework()
    machine.chosen_cpus(asked.machine.cores)
    if asked.pipeline.source != "synthetic" or asked.dataset.path is not None:
        path = _local_images(asked, watcher)
        dataset = asked.dataset.model_copy(update={"path": _with_tilde(path.resolve())})
        asked = asked.model_copy(update={"dataset": dataset})
    open_images(asked)
    return asked


def prepare_all(asked: Sequence[Experiment], watcher: Watcher) -> list[Experiment]:
    """Prepare experiments; those on the same images have them looked at once."""
    for each in asked:
        machine.chosen_cpus(each.machine.cores)
    found: dict[str, DatasetSection] = {}
    for each in sorted(asked, key=lambda each: SOURCES.index(each.pipeline.source)):
        images = each.dataset.model_dump_json()
        if images not in found:
            found[images] = prepare(each, watcher).dataset
    return [
        each.model_copy(update={"dataset": found[each.dataset.model_dump_json()]}) for each in asked
    ]


def start(
    asked: Experiment, out: Path | None, watcher: Watcher, *, force: bool
) -> list[RunDirectory]:
    """Execute a prepared experiment, as often as it asks, each time in a directory of its own."""
    if asked.repetitions == 1:
        run = create(out, asked.name, force=force)
        _first_process(run, asked, watcher)
        return [run]
    base = create(out, asked.name, force=force).path
    runs = []
    for number in range(1, asked.repetitions + 1):
        run = create(base / str(number), asked.name, force=force)
        watcher.say(f"repetition {number} of {asked.repetitions}: {run.path}")
        whole = _first_process(run, asked.model_copy(update={"repetitions": 1}), watcher)
        runs.append(run)
        if not whole and number < asked.repetitions:
            raise InterruptedRunError(f"stopped after repetition {number} of {asked.repetitions}")
    return runs


def resume(path: Path, watcher: Watcher) -> RunDirectory:
    """Go on with a run from its newest checkpoint."""
    check_framework()
    run = RunDirectory(path)
    if not run.log.is_file():
        raise RunFileError(f"{path}: not a run: it has no log.txt")
    lock = run.lock()
    try:
        record = run.record()
        if record.attached is not None:
            raise RunError(f"{path}: made by {record.attached} in a script: run the script again")
        if record.status == "complete":
            raise RunError(f"{path}: the run is complete; there is nothing to resume")
        asked = parse(record.experiment, str(run.log))
        machine.chosen_cpus(asked.machine.cores)  # there may be fewer than there were
        # The kill may have come before these were written.
        run.write_inputs(asked, record.machine)
        _process(run, max(record.processes, default=0) + 1, lock, watcher)
    finally:
        os.close(lock)
    return run


def _first_process(run: RunDirectory, asked: Experiment, watcher: Watcher) -> bool:
    lock = run.lock()
    try:
        facts = machine.describe(run.path, asked.machine.cores)
        journal = Journal(run.log, 1, 0, clock_ns=lambda: 0)
        journal.write("run", experiment=asked.model_dump(mode="json"), machine=facts)
        journal.close()
        run.write_inputs(asked, facts)
        return _process(run, 1, lock, watcher)
    finally:
        os.close(lock)


def _process(run: RunDirectory, number: int, lock: int, watcher: Watcher) -> bool:
    """Train to the end and measure what the verdict needs; False when that was interrupted."""
    run.remove_leftovers()
    run.hold_back_space()
    try:
        origin_ns = supervise(run, number, lock, watcher.observe, watcher.say)
    except TimesinkError as error:
        _write_tables_after(error, run)
        raise
    whole = True
    if wants_verdict(run.record()):
        whole = probe(run, number, origin_ns, watcher.say)
    run.write_tables()
    return whole


def _write_tables_after(error: TimesinkError, run: RunDirectory) -> None:
    """Leave a whole directory behind a failure too; the failure is what is told."""
    try:
        run.release_space()
        run.write_tables()
    except TimesinkError as second:
        error.add_note(str(second))


def _local_images(asked: Experiment, watcher: Watcher) -> Path:
    section = asked.dataset
    if section.path is None:
        return _generated_images(watcher)
    path = Path(section.path).expanduser()
    if section.remote is not None:
        from timesink.datasets.sync import sync

        key = Path(section.remote_key).expanduser() if section.remote_key else None
        with ExitStack() as stack:
            bars: list[Callable[[int], None]] = []
            summary = sync(
                section.remote,
                path,
                classes=section.classes,
                key=key,
                on_total=lambda files: bars.append(
                    stack.enter_context(watcher.progress("Syncing images", files, "files"))
                ),
                advance=lambda files: bars[0](files),
            )
        watcher.say(summary.sentence)
        summary.check()
    return path


def _generated_images(watcher: Watcher) -> Path:
    from timesink.datasets.generate import make_images

    total = GENERATED_CLASSES * (GENERATED_IMAGES + GENERATED_VALIDATION_IMAGES)
    with watcher.progress(f"Making images in {GENERATED}", total, "images") as advance:
        make_images(
            GENERATED,
            classes=GENERATED_CLASSES,
            images=GENERATED_IMAGES,
            validation_images=GENERATED_VALIDATION_IMAGES,
            seed=0,
            advance=advance,
        )
    return GENERATED


def _with_tilde(path: Path) -> str:
    """Write a path without the home directory's name in it."""
    home = Path.home()
    if path.is_relative_to(home) and home != Path("/"):
        return str(Path("~") / path.relative_to(home))
    return str(path)
