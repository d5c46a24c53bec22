"""Checkpoints: every variable and the place in the stream, whole or absent, the last k kept."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from timesink.errors import RunFileError
from timesink.files import TEMPORARY_SUFFIX, replacing

SCHEMA_VERSION = 1
VARIABLES = "variables.npy"
"""One .npy after the other: read with one `numpy.load` for each variable of state.json."""


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    iteration: int
    next_position: int  # in the stream: the image after the last one trained on
    bad_images: tuple[int, ...]
    images: str  # the fingerprint of the dataset that the positions count in


def save(directory: Path, progress: Progress, variables: Sequence[Any], keep: int) -> Path:
    """Write one checkpoint and delete those before the last `keep`."""
    directory.mkdir(parents=True, exist_ok=True)
    final = directory / f"{progress.iteration:08d}"
    with replacing(final) as temporary:
        temporary.mkdir()
        with (temporary / VARIABLES).open("wb") as file:
            for variable in variables:
                _write_array(file, np.asarray(variable, order="C"))
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


def _write_array(file: IO[bytes], array: np.ndarray[Any, Any]) -> None:
    """Write what `numpy.save` writes; its own short write on a full disk has no error number."""
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(file, header)
    file.write(array.tobytes())


def restore(directory: Path, variables: Sequence[Any]) -> Progress | None:
    """Set the variables from the newest checkpoint; None where there is none."""
    found = _checkpoints(directory)
    if not found:
        return None
    newest = found[-1]
    try:
        state = json.loads((newest / "state.json").read_text())
        with (newest / VARIABLES).open("rb") as file:
            arrays = [np.load(file, allow_pickle=False) for _ in state["variables"]]
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise RunFileError(
            f"{newest}: not a whole checkpoint ({error}); delete it to resume from the one before"
        ) from error
    if [list(v.shape) for v in variables] != [list(a.shape) for a in arrays]:
        raise RunFileError(f"{newest}: the network has changed since this checkpoint was written")
    for variable, array in zip(variables, arrays, strict=True):
        variable.assign(array)
    return Progress(
        state["iteration"], state["next_position"], tuple(state["bad_images"]), state["images"]
    )


def _checkpoints(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if path.name.isdigit())
