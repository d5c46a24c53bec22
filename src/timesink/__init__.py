"""Timesink shows where every millisecond of training an image classifier goes."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from timesink.runs.attached import Callback, capture

__all__ = ["Callback", "__version__", "capture"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what needs more than a moment only when it is used."""
    if name in ("Callback", "capture"):
        from timesink.runs import attached

        return getattr(attached, name)
    raise AttributeError(f"module 'timesink' has no attribute {name!r}")
