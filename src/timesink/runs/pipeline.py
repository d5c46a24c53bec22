"""`timesink pipeline`: an experiment's input pipeline measured alone, in processes of its own."""

import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from timesink import machine, page_cache
from timesink.analysis.stages import stage_rows
from timesink.datasets.sizes import source_sizes
from timesink.errors import OutputExistsError
from timesink.experiment import Experiment
from timesink.files import replacing, write_atomically
from timesink.ledger.stages import ALONE, stage_work
from timesink.pipelines.source import check_batch, open_images
from timesink.pipelines.stages import parse_stages
from timesink.runs.asking import ask
from timesink.runs.stage_tables import counter_facts, stage_names, stages_table
from timesink.traces.events import Events, Kind
from timesink.traces.xplane import read_xplane

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Asked:
    """What is measured: every batch size with every number of workers, and how long each."""

    batch_sizes: tuple[int, ...] = ()
    workers: tuple[int | str, ...] = ()
    seconds: float = 5.0
    cpu: bool = True
    """Whether CPU time by stage is measured too, by prefixes of the pipeline."""
    time_limit_s: float = math.inf
    """For all of it."""


def measure_pipeline(
    experiment: Experiment, asked: Asked, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure every cell, and the stages of the first; gives plain values for JSON."""
    dataset = open_images(experiment)
    stages = parse_stages(experiment.pipeline.stages)
    files = page_cache.files_of(dataset.train) if experiment.pipeline.source != "synthetic" else []
    cells, cores = _cells(experiment, asked), experiment.machine.cores
    until_s = time.monotonic() + asked.time_limit_s
    for cell in cells:
        check_batch(dataset, cell.training.batch_size)
    measured = []
    with tempfile.TemporaryDirectory(prefix="timesink-") as place:
        for number, cell in enumerate(cells):
            say(
                f"measuring batch {cell.training.batch_size}, workers {cell.pipeline.workers}, "
                f"for {asked.seconds:g} s …"
            )
            measured.append(_measure(cell, files, asked, Path(place) / str(number), until_s))
        prefixes = []
        if asked.cpu and files:
            say("measuring CPU time by stage …")
            request = _request(asked, cells[0], part="prefixes")
            limit_s = _left(until_s, 120 + 30 * asked.seconds)
            prefixes = ask(request, time_limit_s=limit_s, cores=cores)["prefixes"]
        names = stage_names(stages)
        table = stages_of(measured[0], names, prefixes)
    size = experiment.pipeline.image_size
    return {
        "schema_version": SCHEMA_VERSION,
        "own": None,
        "source": experiment.pipeline.source,
        "stages_asked": [str(stage) for stage in stages],
        "cores": cores or machine.cores(),
        "images": len(dataset.train),
        **measured[0],
        **table,
        "cells": measured,
        "sizes": _sizes(experiment),
        "memory_bytes_per_image": size * size * 3 * 4,
        "notes": list(dataset.notes),
    }


def measure_own(target: str, asked: Asked, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure a user's own tf.data.Dataset, made by `package.module:function` in a child."""
    with tempfile.TemporaryDirectory(prefix="timesink-") as place:
        say(f"measuring {target} for {asked.seconds:g} s …")
        request = _request(asked, own=target, trace_to=Path(place))
        return own_facts(target, ask(request, time_limit_s=300 + 4 * asked.seconds))


def own_facts(target: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Put what was measured of a user's own pipeline into plain values for JSON."""
    measured = {"cache": "any", "cache_before": None, **facts_of(answer)}
    return {
        "schema_version": SCHEMA_VERSION,
        "own": target,
        "source": None,
        "stages_asked": [],
        "cores": machine.cores(),
        "images": None,
        **measured,
        **stages_of(measured, (), ()),
        "cells": [measured],
        "sizes": [],
        "memory_bytes_per_image": None,
        "notes": [],
    }


@dataclass(frozen=True)
class Files:
    """Where the facts go, if anywhere: refused before anything is measured, not after."""

    directory: Path
    force: bool

    def __post_init__(self) -> None:
        for name in ("pipeline.json", "stages.csv"):
            if (self.directory / name).exists() and not self.force:
                raise OutputExistsError(f"{self.directory / name} exists; --force overwrites it")

    def write(self, facts: Mapping[str, Any]) -> None:
        """Write pipeline.json and stages.csv."""
        text = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False)
        write_atomically(self.directory / "pipeline.json", text + "\n")
        with replacing(self.directory / "stages.csv") as temporary:
            stages_table(facts["stages"]).write_csv(temporary)


def _cells(experiment: Experiment, asked: Asked) -> list[Experiment]:
    return [
        experiment.model_copy(
            update={
                "training": experiment.training.model_copy(update={"batch_size": batch_size}),
                "pipeline": experiment.pipeline.model_copy(update={"workers": workers}),
            }
        )
        for batch_size in asked.batch_sizes or (experiment.training.batch_size,)
        for workers in asked.workers or (experiment.pipeline.workers,)
    ]


def _request(
    asked: Asked,
    experiment: Experiment | None = None,
    *,
    part: str = "batches",
    trace_to: Path | None = None,
    own: str | None = None,
) -> dict[str, Any]:
    return {
        "experiment": experiment.model_dump(mode="json") if experiment else None,
        "own": own,
        "part": part,
        "trace_to": str(trace_to) if trace_to else None,
        "length": {"seconds": asked.seconds},
    }


def _left(until_s: float, usual_s: float) -> float:
    """Give what one measurement may take."""
    return max(0.0, min(usual_s, until_s - time.monotonic()))


def _measure(
    cell: Experiment, files: Sequence[str], asked: Asked, place: Path, until_s: float
) -> dict[str, Any]:
    cache = None
    if files and cell.pipeline.cache != "any":
        prepare = page_cache.drop if cell.pipeline.cache == "cold" else page_cache.warm
        cache = prepare(files)
    answer = ask(
        _request(asked, cell, trace_to=place),
        time_limit_s=_left(until_s, 300 + 4 * asked.seconds),
        cores=cell.machine.cores,
    )
    return {
        "batch_size": cell.training.batch_size,
        "workers": cell.pipeline.workers,
        "mode": cell.pipeline.mode,
        "cache": cell.pipeline.cache,
        "cache_before": asdict(cache) if cache else None,
        **facts_of(answer),
    }


def facts_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Put the answer of a measurement into the words of the summary."""
    times, wall_s, images = answer["batch_ms"], answer["wall_s"], answer["images"]
    return {
        "images_per_s": images / wall_s if wall_s else None,
        "batch_ms": {
            "mean": statistics.fmean(times) if times else None,
            "median": statistics.median(times) if times else None,
            "p95": _quantile(times, 0.95),
        },
        "batches": len(times),
        "measured_images": images,
        "measured_s": wall_s,
        "cpu_ms_per_image": 1e3 * answer["cpu_s"] / images if images else None,
        "cores_used": answer["cpu_s"] / wall_s if wall_s else None,
        "warm_up": {"batches": answer["warm_up_batches"], "s": answer["warm_up_s"]},
        "bytes_read": answer["read_bytes"],
        "taken_images": answer["taken_images"],
        **counter_facts(answer["nodes"]),
        "bad_images": answer.get("bad_images", []),
        "ended": answer["ended"],
        "trace": answer["trace"],
        "trace_images": answer["trace_images"],
    }


def stages_of(
    cell: Mapping[str, Any], names: Sequence[str], prefixes: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Make the table of stages out of the trace and the prefixes."""
    if cell["trace"] is None:
        return {"stages": [], "closure": None, "unplaced": []}
    events = read_xplane(Path(cell["trace"]))
    begin_ns, end_ns = _window(events)
    work = stage_work(events, begin_ns, end_ns, names)
    return stage_rows(work, cell["trace_images"], prefixes, names)


def _window(events: Events) -> tuple[int | None, int | None]:
    """Find the stretch in which batches were taken."""
    for row in (events.kind == Kind.SPAN).nonzero()[0]:
        if events.names[events.name[row]].text == ALONE:
            return int(events.begin_ns[row]), int(events.end_ns[row])
    return None, None


def _quantile(values: Sequence[float], share: float) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _sizes(experiment: Experiment) -> list[dict[str, Any]]:
    """Tell what every source of the images that is there takes on the disk."""
    path, pipeline = experiment.dataset.path, experiment.pipeline
    if path is None or pipeline.source == "synthetic":
        return []
    measured: str = pipeline.source
    if measured == "materialized":
        measured += f" {pipeline.image_size} {pipeline.stored}"
    return [
        {
            **asdict(each),
            "bytes_per_image": each.disk_bytes / max(each.images, 1),
            "measured": each.source == measured,
        }
        for each in source_sizes(Path(path).expanduser())
    ]
