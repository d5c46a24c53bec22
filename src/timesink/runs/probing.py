"""The parent of the probes: runs one after the other, writes what they found to the journal."""

import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from timesink.runs.asking import answer_of, child_process, kill
from timesink.runs.directory import RunDirectory
from timesink.runs.journal import Journal
from timesink.runs.record import PROBES

TIME_LIMIT_S = 120.0


def probe(run: RunDirectory, process: int, origin_ns: int, say: Callable[[str], None]) -> bool:
    """Measure input alone and compute alone; False when it was interrupted.

    `process` is the one that completed the run, and `origin_ns` when it was started: the probes
    are charged to its ledger. One that fails is written down and fails nothing else.
    """
    cores = run.experiment().machine.cores
    journal = Journal(run.log, process, origin_ns)
    stop = _Stop()
    try:
        with _heeding_signals(stop):
            for kind in PROBES:
                say(f"measuring {kind} alone …")
                begin_ns = journal.now_ns()
                cpu_before_s = _cpu_s_of_children()
                figures = _figures(run.path, kind, stop, cores)
                journal.write(
                    "probe",
                    kind=kind,
                    begin_ns=begin_ns,
                    wall_ns=journal.now_ns() - begin_ns,
                    process_cpu_s=_cpu_s_of_children() - cpu_before_s,
                    **figures,
                )
                if "failed" in figures:
                    break  # the other one alone says nothing
    finally:
        journal.close()
    return not stop.wished


class _Stop:
    """A wish to stop: ends the probe at once, since the run itself is complete."""

    def __init__(self) -> None:
        self.wished = False
        self.child: subprocess.Popen[str] | None = None

    def wish(self, _number: int, _frame: FrameType | None) -> None:
        self.wished = True
        if self.child is not None:
            kill(self.child)


def _cpu_s_of_children() -> float:
    """Sum what all processes used that were waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _figures(directory: Path, kind: str, stop: _Stop, cores: int | None) -> dict[str, Any]:
    """Run one probe; what went wrong stands under `failed`."""
    arguments = [str(directory.resolve()), kind, str(os.getpid())]
    with child_process("timesink.runs.probe", arguments, cores=cores) as child:
        stop.child = child
        if stop.wished:  # before there was a child to end
            kill(child)
        figures = answer_of(child, "", TIME_LIMIT_S)
        stop.child = None
    return {"failed": "interrupted"} if stop.wished else figures


@contextmanager
def _heeding_signals(stop: _Stop) -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop.wish) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
