"""The TFRecords and arrays that a study's cells read: made where there are none."""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from timesink.datasets.stores import contents
from timesink.errors import DatasetError, RunError
from timesink.experiment import Experiment
from timesink.pipelines.source import open_images
from timesink.pipelines.stages import parse_stages, split_for_store, store_key
from timesink.runs.asking import answer_of, child_process
from timesink.studies.plan import Planned

FOLDER = "stores"
"""Of a study's directory: the user's own images are not added to."""
STORED = ("tfrecord", "materialized")
LIMIT_S = 7 * 24 * 3600.0


def with_stores(planned: Sequence[Planned], out: Path, say: Callable[[str], None]) -> list[Planned]:
    """Have a store for each cell that reads one; gives the cells with the places they read."""
    return [replace(each, experiment=_with_store(each.experiment, out, say)) for each in planned]


def _with_store(asked: Experiment, out: Path, say: Callable[[str], None]) -> Experiment:
    if asked.pipeline.source not in STORED or asked.dataset.path is None:
        return asked
    place = out / FOLDER / _name(asked)
    if not contents.is_whole(place):
        try:
            open_images(asked)
        except DatasetError:
            say(f"making {place} of {asked.dataset.path} …")
            _make(asked, place)
        else:
            return asked  # made before, by `dataset convert`
    dataset = asked.dataset.model_copy(update={"path": str(place.resolve())})
    found = asked.model_copy(update={"dataset": dataset})
    open_images(found)
    return found


def _name(asked: Experiment) -> str:
    """Name a store by all that it is made by."""
    pipeline = asked.pipeline
    made = [str(asked.dataset.path), pipeline.source]
    if pipeline.source == "materialized":
        prefix, _ = split_for_store(parse_stages(pipeline.stages), pipeline.stored)
        made += [str(pipeline.image_size), pipeline.stored, *store_key(prefix)]
    key = hashlib.blake2b(json.dumps(made).encode(), digest_size=4).hexdigest()
    return f"{pipeline.source}-{key}"


def _make(asked: Experiment, place: Path) -> None:
    """Convert in a process that ends with this one; cut, it goes on where it was."""
    request = {"experiment": asked.model_dump(mode="json"), "out": str(place)}
    with child_process("timesink.studies.one_store", [str(os.getpid())]) as child:
        answer = answer_of(child, json.dumps(request), LIMIT_S)
    if "failed" in answer:
        raise RunError(f"{place} could not be made: {answer['failed']}")
    if "error" in answer:
        raise DatasetError(answer["error"])
