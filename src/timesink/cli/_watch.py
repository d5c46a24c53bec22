"""A run as it goes: its events drawn as a bar and lines on stderr."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

from rich.console import Console
from rich.markup import escape

from timesink.cli._progress import progress
from timesink.runs.journal import Event
from timesink.runs.start import Watcher


class RunWatch:
    """Turns a run's events into a progress bar and short lines."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._bar = ExitStack()
        self._advance: Callable[[int], None] | None = None
        self._left = self._last = 0
        self._warned = False

    def watcher(self) -> Watcher:
        """Give the functions that a run calls."""
        return Watcher(self.observe, self.say, self._progress)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()
        self._advance = None

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self.console.print(escape(line), soft_wrap=True)

    def _progress(
        self, label: str, total: int | None, unit: str
    ) -> AbstractContextManager[Callable[[int], None]]:
        return progress(self.console, label, total, unit)

    def observe(self, event: Event) -> None:
        """Show one event."""
        fields = event.fields
        match event.name:
            case "process_started":
                self.say("starting TensorFlow …")
            case "dataset":
                self.say(
                    f"{fields['classes']} classes, {fields['train']} training and "
                    f"{fields['validation']} validation images"
                )
                for note in fields["notes"]:
                    self.say(note)
            case "network":
                at = f", resumed at {fields['resumed_at']}" if fields["resumed_at"] else ""
                self.say(
                    f"{fields['network']}: {fields['parameters']:,} parameters on "
                    f"{', '.join(fields['devices'])}; {fields['iterations']} steps{at}"
                )
                self._last = fields["iterations"]
                self._left = fields["iterations"] - fields["resumed_at"]
                if self._left > 0:
                    self.say("tracing the graph in the first step …")
            case "step" if fields["split"] == "train":
                if self._advance is None:
                    # Not before: the first step would spoil the rate and the time left.
                    self._advance = self._bar.enter_context(
                        progress(self.console, "Training", self._left, "steps")
                    )
                self._advance(1)
                # JSON has no NaN: in the journal it is a word.
                if isinstance(fields["loss"], str) and not self._warned:
                    self._warned = True
                    self.say(f"the loss is {fields['loss']} at iteration {fields['iteration']}")
                if fields["iteration"] == self._last:
                    self.close()
            case "validation":
                self.say(
                    f"after epoch {fields['epoch']}: validation loss {float(fields['loss']):.4f}, "
                    f"top-1 {float(fields['top1']):.1%}"
                )
            case "bad_image":
                self.say(f"skipped a broken image: {fields['path']} ({fields['reason']})")
            case "profile_failed":
                self.say(f"no more traces: {fields['reason']}; training goes on")
            case "process_ended":
                self.close()
