"""The one table of a study's measurements: a row each, what is varied first."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from timesink.files import replacing
from timesink.studies.conducting import Ended, run_facts
from timesink.studies.measured import read_pipeline
from timesink.studies.measuring import Outcome
from timesink.studies.plan import Planned


def write_results(out: Path, planned: Sequence[Planned], ended: Ended) -> list[dict[str, Any]]:
    """Write results.csv and results.parquet; gives their rows."""
    rows = [_row(out, each, ended.get(each.number)) for each in planned]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = pl.DataFrame(
        [{key: row.get(key) for key in columns} for row in rows], infer_schema_length=None
    )
    with replacing(out / "results.csv") as temporary:
        table.write_csv(temporary)
    with replacing(out / "results.parquet") as temporary:
        table.write_parquet(temporary)
    return rows


def _row(out: Path, each: Planned, outcome: Outcome | None) -> dict[str, Any]:
    status = "planned" if outcome is None else "complete" if outcome["exit"] == 0 else "failed"
    place = out / each.place
    return {
        "run": each.place,
        **({"part": each.part} if each.part else {}),
        **{key: _plain(value) for key, value in each.values.items()},
        "repetition": each.repetition,
        "status": status,
        "kind": outcome["kind"] if outcome else None,
        "reason": outcome["reason"] if outcome else None,
        "wall_s": outcome["wall_s"] if outcome else None,
        **_found(each, place, outcome),
    }


def _found(each: Planned, place: Path, outcome: Outcome | None) -> dict[str, Any]:
    """Give what was measured; cells of three sides have a table of their own."""
    if each.measure.how == "run":
        return _of_run(place, outcome)
    if each.measure.how == "pipeline":
        return _of_pipeline(place, outcome)
    return {}


def _of_run(place: Path, outcome: Outcome | None) -> dict[str, Any]:
    facts = run_facts(place) if outcome is not None else {}
    verdict = facts.get("verdict") or {}
    slowdown = facts.get("slowdown") or {}
    return {
        **{
            f"{key}_{part}": (facts.get(key) or {}).get(part)
            for key in ("step_ms", "data_ms", "compute_ms")
            for part in ("median", "p95")
        },
        **{
            key: facts.get(key)
            for key in ("images_per_s", "loss", "top1", "topn", "explained", "layer_share")
        },
        "slowdown_window": slowdown.get("window"),
        "bound": verdict.get("bound"),
        "bound_share": verdict.get("share"),
        "peak_memory_bytes": facts.get("peak_memory_bytes"),
    }


def _of_pipeline(place: Path, outcome: Outcome | None) -> dict[str, Any]:
    facts = read_pipeline(place) if outcome is not None and outcome["exit"] == 0 else {}
    batch_ms = facts.get("batch_ms") or {}
    return {
        "images_per_s": facts.get("images_per_s"),
        **{f"batch_ms_{part}": batch_ms.get(part) for part in ("mean", "median", "p95")},
        **{key: facts.get(key) for key in ("cpu_ms_per_image", "cores_used", "bytes_read")},
    }


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value
