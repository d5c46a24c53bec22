"""Progress of long work: a bar with rate and time left on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

Advance = Callable[[int], None]
"""Takes how many more units are done."""

PLAIN_LINE_EVERY_S = 5.0


class RateColumn(ProgressColumn):
    """Units a second, over the task's recent past."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        """Show the rate, or nothing before there is one."""
        speed = task.finished_speed or task.speed
        return Text(
            "" if speed is None else f"{speed:,.1f} {self.unit}/s", style="progress.data.speed"
        )


@contextmanager
def progress(console: Console, label: str, total: int | None, unit: str) -> Iterator[Advance]:
    """Show the progress of a piece of work; yields the function that advances it."""
    if console.is_terminal:
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            RateColumn(unit),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        ) as bar:
            task = bar.add_task(label, total=total)
            yield lambda n: bar.advance(task, n)
        return
    lines = PlainLines(console, label, total, unit)
    try:
        yield lines.advance
    finally:
        lines.finish()


class PlainLines:
    """A line every few seconds, for files and pipes."""

    def __init__(
        self,
        console: Console,
        label: str,
        total: int | None,
        unit: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.console, self.label, self.total, self.unit, self.clock = (
            console,
            label,
            total,
            unit,
            clock,
        )
        self.done = 0
        self.started = self.last_line = clock()
        self.printed_at = 0

    def advance(self, n: int) -> None:
        """Count n more, and print a line if the last one is long ago."""
        self.done += n
        if self.clock() - self.last_line >= PLAIN_LINE_EVERY_S:
            self.last_line = self.clock()
            self._print()

    def finish(self) -> None:
        """Print the last state, once."""
        if self.done != self.printed_at:
            self._print()

    def _print(self) -> None:
        self.printed_at = self.done
        elapsed_s = max(self.clock() - self.started, 1e-9)
        rate = self.done / elapsed_s
        of = "" if self.total is None else f"/{self.total}"
        left = ""
        if self.total is not None and rate > 0 and self.done < self.total:
            left = f", {(self.total - self.done) / rate:.0f} s left"
        self.console.print(
            f"{self.label}: {self.done}{of} {self.unit}, {rate:,.1f}/s{left}", highlight=False
        )
