"""The directory, the lock and the journal of a run that somebody else's process is."""

import atexit
import os
import resource
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timesink import machine
from timesink.errors import OutputExistsError, RunError, TimesinkError
from timesink.experiment import ProfileSection
from timesink.runs.directory import RunDirectory, create, runs_only
from timesink.runs.journal import Journal

if TYPE_CHECKING:
    from timesink.engines.tensorflow.observed import ObservedLoop


class AttachedRun:
    """Begun and ended once for each training; the second goes on as process 2 of the run."""

    def __init__(self, path: Path, profile: ProfileSection, how: str, *, force: bool) -> None:
        from timesink.runs.start import check_framework

        check_framework()
        # The script may change its directory.
        self.shown, self.path = path, path.absolute()
        self.profile, self.how, self.force = profile, how, force
        self._run: RunDirectory | None = None
        self._journal: Journal | None = None
        self._lock = -1
        self._process = self._iteration = self._pid = 0
        self._loop: ObservedLoop | None = None
        self._refuse_to_overwrite()

    def begin_or_tell(self, facts: dict[str, Any]) -> "ObservedLoop | None":
        """Begin; where that is not possible, say so and let the training be."""
        try:
            return self.begin(facts)
        except OutputExistsError:
            raise
        except (TimesinkError, OSError) as error:
            print(f"timesink: observes nothing, training goes on: {error}", file=sys.stderr)
            return None

    def begin(self, facts: dict[str, Any]) -> "ObservedLoop":
        """Make the directory, or go on in it where this is the second fit; gives the observer."""
        from timesink.engines.tensorflow.callback import leave_the_abandoned
        from timesink.engines.tensorflow.observed import ObservedLoop

        leave_the_abandoned()
        if self._run is None:
            self._run = self._made(facts)
        self._process += 1
        self._lock = self._run.lock()
        try:
            journal = Journal(self._run.log, self._process, time.monotonic_ns())
            started = datetime.now(UTC).isoformat()
            journal.write("process_started", utc=started, pid=os.getpid())
            journal.write("network", resumed_at=self._iteration, **facts)
        except BaseException:
            os.close(self._lock)
            raise
        self._journal, self._pid = journal, os.getpid()
        self._loop = ObservedLoop(journal, self._run.path, self._iteration)
        atexit.register(self._at_exit)
        return self._loop

    def end(self, error: BaseException | None = None) -> None:
        """Write how it ended, and the tables."""
        journal, self._journal = self._journal, None
        loop, self._loop = self._loop, None
        if journal is None or self._run is None:
            return
        atexit.unregister(self._at_exit)
        if loop is not None:
            self._iteration = loop.iteration
        try:
            _write_the_end(journal, error)
            self._run.write_tables()
            print(f"timesink: next: timesink show {self.shown}", file=sys.stderr)
        except (TimesinkError, OSError) as failure:
            print(f"timesink: {failure}", file=sys.stderr)
        finally:
            with suppress(OSError):
                journal.close()
            os.close(self._lock)

    def _at_exit(self) -> None:
        """End a run whose training never ended, as far as anybody told."""
        if os.getpid() != self._pid:  # a fork of the training process is not it
            return
        with suppress(Exception):
            if self._loop is not None:
                self._loop.finish(raised=True)
            raised = getattr(sys, "last_value", None)
            self.end(raised or RunError("the training ended before its end"))

    def _refuse_to_overwrite(self) -> None:
        path = self.path
        if not path.exists() or (path.is_dir() and not any(path.iterdir())):
            return
        if not self.force:
            raise OutputExistsError(f"{self.shown} exists; force=True overwrites it")
        if not runs_only(path):
            raise OutputExistsError(
                f"{self.shown} exists and is not a run: force=True does not delete it"
            )

    def _made(self, facts: Mapping[str, Any]) -> RunDirectory:
        run = create(self.path, self.path.name, force=self.force)
        about, asked = machine.describe(run.path), self._experiment(facts)
        journal = Journal(run.log, 1, 0, clock_ns=lambda: 0)
        journal.write("run", experiment=asked, machine=about, attached=self.how)
        journal.close()
        run.write_attached(asked, about)
        return run

    def _experiment(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        keys = ("network", "batch_size", "epochs", "optimizer", "precision", "xla", "replicas")
        training = {key: facts[key] for key in keys if facts.get(key) is not None}
        if facts.get("iterations"):
            training["iterations"] = facts["iterations"]
        name = "".join(c if c.isalnum() or c in "._-" else "-" for c in self.path.name) or "run"
        return {
            "name": name,
            "attached": self.how,
            "training": training,
            "profile": self.profile.model_dump(mode="json", exclude_none=True, exclude={"verdict"}),
        }


def _write_the_end(journal: Journal, error: BaseException | None) -> None:
    journal.account("teardown")
    if error is None:
        journal.write("completed")
    elif isinstance(error, KeyboardInterrupt):
        journal.write("stopped")
    else:
        said = str(error).strip().splitlines()
        told = said[0] if said else ""
        if not isinstance(error, TimesinkError):
            told = f"{type(error).__name__}: {told}"
        journal.write("error", kind="RunError", message=told[:300], traceback=None)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    journal.write(
        "process_ended",
        exit=0 if error is None else 1,
        wall_ns=journal.now_ns(),
        peak_memory_bytes=peak * (1 if sys.platform == "darwin" else 1024),
        last_lines=[],
    )
