"""The table of stages: work from a trace, CPU time and bytes from prefixes of the pipeline."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from timesink.ledger.stages import PipelineWork, StageWork

FRAMEWORK = "framework"


def stage_rows(
    work: PipelineWork, images: int, prefixes: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Give a row for each stage, how much of the threads' busy time they explain, and the rest.

    What was not measured is None. `work` is of threads on the clock; a thread that waits for a
    core or for the disk within an op works by this measure, but takes no CPU time.
    """
    costs = prefix_differences(prefixes)
    rows = [
        {
            "stage": each.stage,
            "kind": each.kind,
            "work_ms_per_image": _ms(each.work_ns, images) if each.calls else None,
            "cpu_ms_per_image": costs.get(each.stage, {}).get("cpu_ms_per_image"),
            "share": each.work_ns / work.busy_ns if work.busy_ns else 0.0,
            "parallelism": each.work_ns / work.wall_ns if work.wall_ns else 0.0,
            "calls_per_image": each.calls / images if images else None,
            "bytes_in": costs.get(each.stage, {}).get("bytes_in"),
            "bytes_out": costs.get(each.stage, {}).get("bytes_out"),
        }
        for each in _with_unseen(work.stages, list(costs))
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
            place = next((n + 1 for n, row in enumerate(rows) if row.stage == before), 0)
            rows.insert(place, StageWork(stage, 0, 0, "stage"))
    return rows


def prefix_differences(prefixes: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
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
