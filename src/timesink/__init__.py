"""Timesink shows where every millisecond of training an image classifier goes."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from timesink.runs.attached import Callback, capture
    from timesink.runs.own_pipeline import pipeline

__all__ = ["Callback", "__version__", "capture", "pipeline"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import what needs more than a moment only when it is used."""
    if name in ("Callback", "capture"):
        from timesink.runs import attached

        return getattr(attached, name)
    if name == "pipeline":
        from timesink.runs.own_pipeline import pipeline

        return pipeline
    raise AttributeError(f"module 'timesink' has no attribute {name!r}")
