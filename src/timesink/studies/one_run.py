"""One run of a sweep, in a process that ends with the sweep: `one_run EXPERIMENT OUT PARENT`.

It says how it ended as `timesink run` does: a line on stderr and an exit code.
"""

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from timesink.errors import TimesinkError
from timesink.experiment import load
from timesink.runs import start
from timesink.runs.worker import end_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def main(arguments: list[str]) -> NoReturn:
    """Run, and end with what became of it."""
    experiment, out, parent = arguments
    end_with_parent(int(parent))
    watcher = start.Watcher(lambda _: None, lambda _: None, _no_progress)
    try:
        start.start(load(Path(experiment)), Path(out), watcher, force=True)
    except TimesinkError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
    sys.exit(0)


@contextmanager
def _no_progress(_what: str, _total: int | None, _unit: str) -> "Iterator[Callable[[int], None]]":
    yield lambda _count: None


if __name__ == "__main__":
    main(sys.argv[1:])
