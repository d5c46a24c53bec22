"""Checkpoints: every variable and the place in the stream, whole or absent, the last k kept."""

import json
import shutil
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from timesink.errors import RunFileError
from timesink.files import TEMPORARY_SUFFIX, replacing

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    iteration: int
    next_position: int  # in the stream: the image after the last one trained on
    bad_images: tuple[int, ...]


def save(directory: Path, progress: Progress, variables: Sequence[Any], keep: int) -> Path:
    """Write one checkpoint and delete those before the last `keep`."""
    directory.mkdir(parents=True, exist_ok=True)
    final = directory / f"{progress.iteration:08d}"
    with replacing(final) as temporary:
        temporary.mkdir()
        arrays = {f"v{i:05d}": np.asarray(v) for i, v in enumerate(variables)}
        np.savez(temporary / "variables.npz", **arrays)  # type: ignore[arg-type]
        state = {
            "schema_version": SCHEMA_VERSION,
            **asdict(progress),
            "variables": [[v.path, list(v.shape)] for v in variables],
        }
        (temporary / "state.json").write_text(json.dumps(state, indent=1))
    for old in _checkpoints(directory)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    for leftover in directory.glob(f".*{TEMPORARY_SUFFIX}"):
        shutil.rmtree(leftover, ignore_errors=True)
    return final


def restore(directory: Path, variables: Sequence[Any]) -> Progress | None:
    """Set the variables from the newest checkpoint; None where there is none."""
    found = _checkpoints(directory)
    if not found:
        return None
    newest = found[-1]
    try:
        state = json.loads((newest / "state.json").read_text())
        with np.load(newest / "variables.npz", allow_pickle=False) as stored:
            arrays = [stored[f"v{i:05d}"] for i in range(len(state["variables"]))]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise RunFileError(
            f"{newest}: not a whole checkpoint ({error}); delete it to resume from the one before"
        ) from error
    if [list(v.shape) for v in variables] != [list(a.shape) for a in arrays]:
        raise RunFileError(f"{newest}: the network has changed since this checkpoint was written")
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)
    return Progress(state["iteration"], state["next_position"], tuple(state["bad_images"]))


def _checkpoints(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if path.name.isdigit())
