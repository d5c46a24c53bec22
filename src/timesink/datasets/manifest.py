"""What a folder says of itself: which command made it, how, and whether it is complete."""

import json
from pathlib import Path
from typing import Any

import timesink
from timesink.files import write_atomically

SCHEMA_VERSION = 1
IMPORTED = "dataset.json"
"""Of a folder that `dataset import` wrote."""
GENERATED = "generated.json"
"""Of a folder that `dataset make` wrote."""


def read(path: Path) -> dict[str, Any] | None:
    """Read a manifest that Timesink wrote; None where there is none of ours."""
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    ours = isinstance(value, dict) and str(value.get("made_by", "")).startswith("timesink ")
    return value if ours else None


def write(path: Path, **facts: object) -> None:
    """Write a manifest: who made this folder and how, and whether it is complete."""
    head = {"schema_version": SCHEMA_VERSION, "made_by": f"timesink {timesink.__version__}"}
    write_atomically(path, json.dumps(head | facts, indent=2) + "\n")
