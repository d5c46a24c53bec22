"""The parent of a training process: starts it, keeps its ledger's ends, and tells how it ended."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import IO, Any

from timesink import machine
from timesink.errors import (
    DiskFullError,
    InterruptedRunError,
    OutOfMemoryError,
    RunError,
    TimesinkError,
    error_named,
)
from timesink.runs.directory import RunDirectory
from timesink.runs.journal import Event, Journal, Tail

POLL_S = 0.1
STOPPED_EXIT = 10
"""Exit code of a training process that stopped when asked, with a checkpoint."""
KEPT_LINES = 30

# What TensorFlow and absl print however it goes. Errors (E…, F…, tracebacks) pass.
NOISE = re.compile(
    r"^(WARNING: All log messages before absl|[IW]\d{4} |\d{4}-\d\d-\d\d [\d:.]+: [IW] )"
    r"|cuda_(dnn|fft|blas)\.cc.*Unable to register"
    r"|node_def_util\.cc.*Unknown attributes will be ignored"
)


@dataclass
class _Child:
    """What the threads around a training process learn of it."""

    process: subprocess.Popen[str]
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    exit: int = 0
    gone_ns: int = 0
    peak_memory_bytes: int = 0
    cpu_s: float = 0.0
    """User and system, with that of processes it waited for."""
    signals: list[int] = field(default_factory=list)


def supervise(
    run: RunDirectory,
    process: int,
    lock: int,
    observe: Callable[[Event], None],
    say: Callable[[str], None],
) -> int:
    """Run one training process to its end; raises what went wrong, in one line.

    Gives when the process was started, on the clock that all processes share.

    `observe` is given the journal's events as they come, `say` the lines the process prints.
    """
    cores = run.experiment().machine.cores
    cpus = machine.chosen_cpus(cores)
    kills_before = machine.oom_kills()
    origin_ns = time.monotonic_ns()
    journal = Journal(run.log, process, origin_ns)
    tail = Tail(run.log)
    journal.write(
        "process_started",
        utc=datetime.now(UTC).isoformat(),
        pid=os.getpid(),
        cores=cores or machine.cores(),
        cpus=cpus,
    )
    failure: dict[str, Any] | None = None
    told = False

    def take(event: Event) -> None:
        nonlocal failure
        if event.name == "error":
            failure = event.fields
        observe(event)

    try:
        child = _start(run.path, process, origin_ns, lock, cores)
        with _forwarding_signals(child):
            threads = [
                threading.Thread(target=_wait, args=(child,)),
                threading.Thread(target=_read_lines, args=(child, say)),
            ]
            for thread in threads:
                thread.start()
            while threads[0].is_alive():
                threads[0].join(POLL_S)
                if child.signals and not told:
                    told = True
                    say("stopping at the end of the step; once more ends it at once")
                for event in tail.new_events():
                    take(event)
            threads[1].join(timeout=2)  # a grandchild may still hold the pipe
        for event in tail.new_events():
            take(event)
        run.release_space()
        journal.end_a_torn_line()
        error = _error_of(run, child, failure, kills_before)
        if error is not None and failure is None and not isinstance(error, InterruptedRunError):
            journal.write("lost", kind=type(error).__name__, message=str(error))
        journal.write(
            "process_ended",
            exit=child.exit,
            wall_ns=child.gone_ns - origin_ns,
            peak_memory_bytes=child.peak_memory_bytes,
            cpu_s=child.cpu_s,
            last_lines=list(child.last_lines) if child.exit else [],
        )
    finally:
        tail.close()
        journal.close()
    if error is not None:
        raise error
    return origin_ns


def _start(directory: Path, process: int, origin_ns: int, lock: int, cores: int | None) -> _Child:
    environment = child_environment(cores)
    environment["PYTHONUNBUFFERED"] = "1"
    arguments = [str(directory.resolve()), str(process), str(origin_ns), str(os.getpid())]
    with machine.confined(machine.chosen_cpus(cores)):
        return _Child(
            subprocess.Popen(
                [sys.executable, "-m", "timesink.runs.worker", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=environment,
                pass_fds=[lock],
                # Ctrl-C reaches this process only; it passes the wish on.
                start_new_session=True,
            )
        )


def child_environment(cores: int | None) -> dict[str, str]:
    """Give the environment of a process that trains or measures; what a user set stays."""
    environment = dict(os.environ)
    environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # OpenBLAS, which NumPy brings, sizes its threads by the affinity mask and knows no quota.
    environment.setdefault("OMP_NUM_THREADS", str(cores or machine.cores()))
    return environment


def _wait(child: _Child) -> None:
    _, status, usage = os.wait4(child.process.pid, 0)
    child.gone_ns = time.monotonic_ns()
    child.exit = os.waitstatus_to_exitcode(status)
    child.process.returncode = child.exit  # Popen must not wait for it again
    child.cpu_s = usage.ru_utime + usage.ru_stime
    child.peak_memory_bytes = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _read_lines(child: _Child, say: Callable[[str], None]) -> None:
    output: IO[str] | None = child.process.stdout
    assert output is not None
    for line in output:
        text = line.rstrip("\n")
        if not NOISE.search(text):
            child.last_lines.append(text)
            say(text)


@contextmanager
def _forwarding_signals(child: _Child) -> Iterator[None]:
    """Pass a wish to stop on to the child; the second one is an order."""

    def forward(number: int, _: FrameType | None) -> None:
        child.signals.append(number)
        with suppress(ProcessLookupError):
            if len(child.signals) == 1:
                os.kill(child.process.pid, signal.SIGTERM)
            else:
                os.kill(child.process.pid, signal.SIGKILL)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, forward) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _error_of(
    run: RunDirectory, child: _Child, failure: dict[str, Any] | None, kills_before: int
) -> TimesinkError | None:
    """Tell what a process's end means; None if it ended well."""
    resume = f"timesink run --resume {run.path}"
    if child.exit == 0:
        return None
    if failure is not None:
        return error_named(failure["kind"], failure["message"])
    batch_size = run.experiment().training.batch_size
    text = "\n".join(child.last_lines)
    killed_for_memory = child.exit == -signal.SIGKILL and machine.oom_kills() > kills_before
    if killed_for_memory or "bad_alloc" in text:
        return OutOfMemoryError(
            f"out of host memory at batch size {batch_size} "
            f"(peak {child.peak_memory_bytes / 2**30:.1f} GiB); "
            f"lower training.batch_size or pipeline.image_size"
        )
    if child.signals or child.exit == STOPPED_EXIT:
        number = child.signals[0] if child.signals else signal.SIGTERM
        return InterruptedRunError(f"stopped; go on with: {resume}", exit_code=128 + number)
    if child.exit == DiskFullError.exit_code:
        return DiskFullError(f"{run.path}: the disk is full; free some space, then: {resume}")
    if child.exit < 0:
        name = signal.Signals(-child.exit).name
        return RunError(f"the training process was ended by {name}; go on with: {resume}")
    return RunError(f"the training process ended with code {child.exit}; see {run.log}")
