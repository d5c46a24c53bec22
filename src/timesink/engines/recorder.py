"""What an engine tells while it trains: which account time goes to, and what happened."""

from typing import Any, Protocol


class Recorder(Protocol):
    """The run's journal as an engine sees it."""

    process: int
    """Which process of the run this is, from 1."""

    def now_ns(self) -> int:
        """Give the time since the process was started."""

    def account(self, name: str) -> None:
        """Charge the time from now on to this account of the run."""

    def write(self, event: str, **fields: Any) -> None:
        """Record that something happened."""
