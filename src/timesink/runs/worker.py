"""The training process: `python -m timesink.runs.worker DIRECTORY PROCESS ORIGIN_NS PARENT`."""

import atexit
import ctypes
import os
import re
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from timesink.errors import OutOfMemoryError, RunError, TimesinkError
from timesink.runs.directory import RunDirectory
from timesink.runs.journal import Journal
from timesink.runs.supervisor import STOPPED_EXIT

if TYPE_CHECKING:
    from timesink.engines.job import Job
    from timesink.engines.tensorflow.train import Trainer
    from timesink.page_cache import Cache

PR_SET_PDEATHSIG = 1


class StopWish:
    """Set by SIGTERM or SIGINT; the loop looks at it at the end of each step."""

    def __init__(self) -> None:
        self.wished = False
        signal.signal(signal.SIGTERM, self._wish)
        signal.signal(signal.SIGINT, self._wish)

    def _wish(self, _number: int, _frame: FrameType | None) -> None:
        self.wished = True

    def __call__(self) -> bool:
        """Tell whether a stop was wished for."""
        return self.wished


def main(arguments: list[str]) -> NoReturn:
    """Train; what goes wrong is written to the journal for the supervisor to tell."""
    should_stop = StopWish()
    directory, process, origin_ns, parent = arguments
    end_with_parent(int(parent))
    run = RunDirectory(Path(directory))
    journal = Journal(run.log, int(process), int(origin_ns))
    try:
        trainer = _trainer(run, journal, should_stop)
        completed = trainer.run()
        journal.write("completed" if completed else "stopped")
        code = 0 if completed else STOPPED_EXIT
    except TimesinkError as error:
        code = _fail(journal, error)
    except Exception as error:
        code = _fail(journal, _translate(error, run), traceback.format_exc())
    journal.close()
    leave(code)  # with the trainer alive: taking its iterator apart can take seconds


def open_job(run: RunDirectory, should_stop: Callable[[], bool]) -> "Job":
    """Read what a run asks for, and open its images."""
    from timesink.engines.job import Job
    from timesink.pipelines.source import open_images
    from timesink.pipelines.stages import parse_stages

    asked = run.experiment()
    dataset = open_images(asked)
    stages = parse_stages(asked.pipeline.stages)
    path = run.path.absolute()
    return Job(asked, dataset, stages, path / "checkpoints", path / "profile", should_stop)


def _trainer(run: RunDirectory, journal: Journal, should_stop: StopWish) -> "Trainer":
    job = open_job(run, should_stop)
    journal.write(
        "dataset",
        classes=len(job.dataset.classes),
        train=len(job.dataset.train),
        validation=len(job.dataset.validation),
        notes=list(job.dataset.notes),
    )
    job.check()
    cache = prepare_cache(job)
    if cache is not None:
        journal.write("cache", asked=job.experiment.pipeline.cache, **asdict(cache))

    from timesink.engines.tensorflow.train import Trainer

    return Trainer(job, journal)


def prepare_cache(job: "Job") -> "Cache | None":
    """Drop or read the files of the images, where the experiment asks for it."""
    from timesink import page_cache

    pipeline = job.experiment.pipeline
    if pipeline.source == "synthetic" or pipeline.cache == "any":
        return None
    prepare = page_cache.drop if pipeline.cache == "cold" else page_cache.warm
    return prepare(page_cache.files_of(job.dataset.train))


def leave(code: int) -> NoReturn:
    """End the process now: exit handlers run, but nothing is taken apart."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _fail(journal: Journal, error: TimesinkError, trace: str | None = None) -> int:
    with suppress(TimesinkError, OSError):  # the disk may be full
        journal.account("teardown")
        journal.write("error", kind=type(error).__name__, message=str(error), traceback=trace)
    return error.exit_code


OUT_OF_MEMORY_WORDS = ("OOM when allocating", "Cannot parse tensor from proto", "bad_alloc")
"""How TensorFlow says it; the second is a constant of the graph that found no room."""

EMPTY_WORDS = (
    *("in user code:", "Graph execution error:", "Detected at node", "<stack traces"),
    "Exception encountered when calling",
)
"""How lines begin that say nothing of what went wrong."""
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""Keras writes for a terminal, whoever reads."""


def out_of_memory(error: Exception, batch_size: int) -> OutOfMemoryError | None:
    """Say in one line that memory ran out; None where the error is another."""
    text = str(error)
    if (
        isinstance(error, MemoryError)
        or type(error).__name__ == "ResourceExhaustedError"
        or any(words in text for words in OUT_OF_MEMORY_WORDS)
    ):
        place = "device" if "GPU" in text else "host"
        said = _said(text)
        detail = f" ({said[0][:160]})" if said else ""
        return OutOfMemoryError(
            f"out of {place} memory at batch size {batch_size}; "
            f"lower training.batch_size or pipeline.image_size{detail}"
        )
    return None


def _said(text: str) -> list[str]:
    """Give the lines of an error's text that say something."""
    lines = [COLOURS.sub("", line).strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(EMPTY_WORDS)]


def _translate(error: Exception, run: RunDirectory) -> TimesinkError:
    """Put an exception of TensorFlow's or of the user's network into one line."""
    if (full := out_of_memory(error, run.experiment().training.batch_size)) is not None:
        return full
    text = str(error)
    said = _said(text)
    # An error inside a traced function tells the place first and what it is last.
    line = (said[-1] if text.startswith("in user code:") else said[0]) if said else ""
    return RunError(
        f"training failed: {type(error).__name__}: {line[:300]}; the traceback is in log.txt"
    )


def end_with_parent(parent: int) -> None:
    """Stop, with a checkpoint, when the supervisor is killed; be the first the kernel ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("500")


if __name__ == "__main__":
    main(sys.argv[1:])
