"""Every error Timesink raises on purpose: one tree, each with the exit code of the command.

TimesinkError                    1
├── UsageError                   2   the command line or what it points at is wrong
│   ├── ExperimentError          2   the experiment's file or one of its keys
│   ├── NetworkError             2   the network cannot be built as asked
│   ├── OutputExistsError        2   would overwrite; --force allows it
│   └── MissingExtraError        2   a part of Timesink that was not installed
├── DatasetError                 3   the images
│   ├── BadImagesError           3   more broken images than dataset.max_bad allows
│   └── SyncError                3   the remote place, or the way to it
├── RunError                     4   the run went wrong
│   ├── OutOfMemoryError         5   of the host or the device
│   ├── DiskFullError            6
│   ├── TimeLimitError           4   a measurement took longer than it was given
│   ├── RunFileError             4   a run's directory cannot be read
│   └── TraceError               4   a profiler's trace cannot be read
├── RegressionError              7   slower than `compare --fail-over` allows
└── InterruptedRunError        130   Ctrl-C; 143 after SIGTERM

A message says what was wrong, where, and what to do, in one line.
"""


class TimesinkError(Exception):
    """The root of the tree."""

    exit_code = 1


class UsageError(TimesinkError):
    """The command line, or a path on it, is wrong."""

    exit_code = 2


class ExperimentError(UsageError):
    """An experiment's file cannot be read, or one of its keys is wrong."""


class NetworkError(UsageError):
    """The network does not exist, or cannot take these images or classes."""


class OutputExistsError(UsageError):
    """Writing there would overwrite something."""


class MissingExtraError(UsageError):
    """A command needs an extra that is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra: pip install 'timesink[{extra}]'")


class DatasetError(TimesinkError):
    """The images are not there, or not as they should be."""

    exit_code = 3


class BadImagesError(DatasetError):
    """More images are broken than the experiment's budget allows."""


class SyncError(DatasetError):
    """A remote dataset could not be brought here."""


class RunError(TimesinkError):
    """A run could not start, or did not end well."""

    exit_code = 4


class OutOfMemoryError(RunError):
    """The host or a device ran out of memory."""

    exit_code = 5


class DiskFullError(RunError):
    """Nothing more can be written."""

    exit_code = 6


class TimeLimitError(RunError):
    """A measurement took longer than it was given."""


class RunFileError(RunError):
    """A run's directory is missing, or one of its files is not what it should be."""


class TraceError(RunError):
    """A profiler's trace is missing, or its file is not what it should be."""


class RegressionError(TimesinkError):
    """A run is slower than another by more than was allowed, and beyond noise."""

    exit_code = 7


class InterruptedRunError(TimesinkError):
    """The run was stopped by a signal; it can be resumed."""

    exit_code = 130

    def __init__(self, message: str, *, exit_code: int = 130) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def error_named(kind: str, message: str) -> TimesinkError:
    """Make the error again that the process raised."""
    kinds = [TimesinkError]
    for each in kinds:
        kinds.extend(each.__subclasses__())
        if each.__name__ == kind:
            error = each.__new__(each)
            Exception.__init__(error, message)
            return error
    return RunError(message)
