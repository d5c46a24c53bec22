"""TensorFlow's profiler: one trace from start to stop, and the one file it leaves.

The file stands where TensorBoard and XProf look, `DIRECTORY/plugins/profile/NAME/HOST.xplane.pb`;
NAME may be any. TensorFlow itself names that folder by the second, so each trace is written into a
place of its own and then moved.
"""

import ctypes
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import tensorflow as tf

from timesink.errors import DiskFullError, RunError
from timesink.files import TEMPORARY_SUFFIX, replacing

OPTIONS = {"host_tracer_level": 2, "python_tracer_level": 0, "device_tracer_level": 1}

DISK_FULL = "the disk is full, or would be with this trace"


class BusyError(RunError):
    """There is one trace in a process at a time, and another has it."""


class Trace:
    """A trace that is being taken; there is one in a process at a time."""

    def __init__(self, directory: Path, name: str) -> None:
        self._folder = directory / "plugins" / "profile" / name
        self._workplace = directory / f".{name}{TEMPORARY_SUFFIX}"
        self._workplace.mkdir(parents=True, exist_ok=True)
        options = tf.profiler.experimental.ProfilerOptions(**OPTIONS)
        try:
            tf.profiler.experimental.start(str(self._workplace), options)
        except tf.errors.AlreadyExistsError:
            self._clean()
            raise BusyError("another profiler is running in this process") from None
        except BaseException:
            self._clean()
            raise
        leave_out_the_thread_pools()

    def stop(self) -> Path:
        """End the trace; gives its file, which is whole.

        One that would leave less room on the disk than it takes is not kept: the journal and the
        checkpoints come first.
        """
        try:
            with replacing(self._folder) as temporary:
                tf.profiler.experimental.stop()
                (written,) = self._workplace.glob("plugins/profile/*")
                written.rename(temporary)
                (file,) = temporary.glob("*.xplane.pb")
                if shutil.disk_usage(temporary).free < file.stat().st_size:
                    raise DiskFullError(DISK_FULL)
        except (tf.errors.OpError, DiskFullError) as error:
            if isinstance(error, DiskFullError) or "No space left" in error.message:
                raise DiskFullError(DISK_FULL) from error
            raise
        finally:
            self._clean()
        return self._folder / file.name

    def discard(self) -> None:
        """End the trace and keep nothing."""
        try:
            tf.profiler.experimental.stop(save=False)
        finally:
            self._clean()

    def _clean(self) -> None:
        shutil.rmtree(self._workplace, ignore_errors=True)


def remove_leftovers(directory: Path) -> None:
    """Delete what a killed process was still writing."""
    for pattern in (f".*{TEMPORARY_SUFFIX}", f"plugins/profile/.*{TEMPORARY_SUFFIX}"):
        for leftover in directory.glob(pattern):
            shutil.rmtree(leftover, ignore_errors=True)


SET_EVENT_COLLECTOR = (  # of tsl::tracing: (EventCategory, const EventCollector*) → void
    "_ZN3tsl7tracing17SetEventCollectorENS0_13EventCategoryEPKNS0_14EventCollectorE"
)
SCHEDULE_CLOSURE, RUN_CLOSURE = 0, 1


def leave_out_the_thread_pools() -> None:
    """Take the thread pools' bookkeeping out of the trace that has just begun.

    Four of five events are `ThreadpoolListener::*`, which no account uses; without them `stop()`
    and the file are a quarter, and XProf's pages the same (TensorFlow 2.21, XProf 2.24). There is
    no option for it: this is what the profiler itself calls when it ends.
    """
    unset = _collector_setter()
    if unset is not None:
        for category in (SCHEDULE_CLOSURE, RUN_CLOSURE):
            unset(category, None)


@cache
def _collector_setter() -> Any:
    """Find TensorFlow's function; None where this build has none, and traces are just larger."""
    for library in Path(tf.sysconfig.get_lib()).glob("libtensorflow_framework.*"):
        try:
            found = ctypes.CDLL(str(library))[SET_EVENT_COLLECTOR]
        except (OSError, AttributeError):
            continue
        found.argtypes, found.restype = (ctypes.c_uint, ctypes.c_void_p), None
        return found
    return None
