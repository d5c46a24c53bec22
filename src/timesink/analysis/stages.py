"""The table of stages: work from a trace, CPU time and bytes from prefixes of the pipeline."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from timesink.ledger.stages import PipelineWork, StageWork
from timesink.pipelines.stages import parts_of_row

Row = Mapping[str, Any]

FRAMEWORK = "framework"


def stage_rows(
    work: PipelineWork,
    images: int,
    prefixes: Sequence[Row] = (),
    known: Sequence[str] = (),
) -> dict[str, Any]:
    """Give a row for each stage, how much of the threads' busy time they explain, and the rest.

    A stage that draws what it does has a row for the drawing, and one for each operation of
    `known`, the names of all that the pipeline does. What was not measured is None. `work` is of
    threads on the clock; a thread that waits for a core or for the disk within an op works by
    this measure, but takes no CPU time.
    """
    costs = prefix_differences(prefixes)
    operations = [name for name in known if parts_of_row(name)[1]]
    rows = [
        {
            "stage": each.stage,
            "kind": each.kind,
            "work_ms_per_image": _ms(each.work_ns, images) if each.calls else None,
            "cpu_ms_per_image": costs.get(each.stage, {}).get("cpu_ms_per_image"),
            "share": each.work_ns / work.busy_ns if work.busy_ns else 0.0,
            "parallelism": each.work_ns / work.wall_ns if work.wall_ns else 0.0,
            "calls_per_image": each.calls / images if images and each.calls else None,
            "ms_per_call": each.work_ns / each.calls / 1e6 if each.calls else None,
            "bytes_in": costs.get(each.stage, {}).get("bytes_in"),
            "bytes_out": costs.get(each.stage, {}).get("bytes_out"),
        }
        for each in _with_unseen(_with_unseen(work.stages, list(costs)), operations)
    ]
    return {
        "stages": rows,
        "closure": work.explained if work.busy_ns else None,
        "unplaced": [
            {"name": name, "work_ms_per_image": _ms(work_ns, images), "calls": calls}
            for name, work_ns, calls in work.unplaced
        ],
    }


def _with_unseen(seen: Sequence[StageWork], run: Sequence[str]) -> list[StageWork]:
    """Add stages that were run but are too cheap for the profiler to see, in their place."""
    rows = list(seen)
    for before, stage in zip(("", *run), run, strict=False):
        if all(row.stage != stage for row in rows):
            names = (before, parts_of_row(stage)[0])
            place = next((n + 1 for n, row in enumerate(rows) if row.stage in names), 0)
            rows.insert(place, StageWork(stage, 0, 0, "stage"))
    return rows


def by_stage(rows: Sequence[Row]) -> list[Row]:
    """Give the rows with the operations of a stage in the stage's own."""
    of_stage: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        of_stage.setdefault((row["kind"], parts_of_row(row["stage"])[0]), []).append(row)
    return [
        {**parts[0], "stage": stage, **_sums(parts)} if len(parts) > 1 else parts[0]
        for (_, stage), parts in of_stage.items()
    ]


def operations_in(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Give, for each stage that draws what it does, the rows of its operations."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        stage, operation = parts_of_row(row["stage"])
        if operation is not None:
            found.setdefault(stage, []).append({**row, "stage": operation})
    return found


def _sums(parts: Sequence[Row]) -> dict[str, float]:
    names = ("work_ms_per_image", "share", "parallelism")
    return {name: sum(part[name] or 0.0 for part in parts) for name in names}


def prefix_differences(prefixes: Iterable[Row]) -> dict[str, dict[str, float]]:
    """Give what each stage adds to the prefix before it; stages of one name are one."""
    costs: dict[str, dict[str, float]] = {}
    cpu_before, bytes_before = 0.0, None
    for prefix in prefixes:
        cost = costs.setdefault(prefix["stage"], {"cpu_ms_per_image": 0.0})
        # Noise may make a cheap stage negative.
        cost["cpu_ms_per_image"] += max(prefix["cpu_ms_per_image"] - cpu_before, 0.0)
        cpu_before = prefix["cpu_ms_per_image"]
        if bytes_before is not None:
            cost.setdefault("bytes_in", bytes_before)
        if prefix.get("bytes_out") is not None:
            cost["bytes_out"] = bytes_before = prefix["bytes_out"]
    return costs


def _ms(work_ns: int, images: int) -> float | None:
    return work_ns / 1e6 / images if images else None
