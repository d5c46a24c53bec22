"""Measurements of a study, made without measuring: planned by a file, found in files."""

import json
from pathlib import Path

import polars as pl

from timesink.studies.measured import Done, Failed, Measured
from timesink.studies.plan import plan_of, read_parts


def planned_by(place: Path, text: str):
    """Plan what a study's file says."""
    path = place / "study.toml"
    path.write_text(text)
    return plan_of(read_parts(path, "study"))


def measured(place: Path, text: str, write, failed=lambda _each: None) -> Measured:
    """Plan, and let `write(each, directory)` leave behind what a measurement would."""
    done, lost = [], []
    for each in planned_by(place, text):
        outcome = failed(each)
        if outcome:
            lost.append(Failed(each, {"exit": 5, "reason": "", "kind": outcome, "wall_s": 1.0}))
            continue
        folder = place / each.place
        folder.mkdir(exist_ok=True)
        wall_s = write(each, folder)
        done.append(Done(each, folder, wall_s or 1.0))
    return Measured(done, lost)


def steps(folder: Path, rows) -> None:
    """Write steps.csv: one row a step."""
    filled = [
        {"process": 1, "split": "train", "epoch": 1, "iteration": number, "images": 8, **row}
        for number, row in enumerate(rows, 1)
    ]
    pl.DataFrame(filled).write_csv(folder / "steps.csv")


def summary(folder: Path, **facts) -> None:
    """Write summary.json beside an older journal."""
    (folder / "log.txt").write_text("")
    (folder / "summary.json").write_text(json.dumps({"devices": ["CPU:0"], **facts}))


def pipeline(folder: Path, *, mean=None, stages=(), cache_before=None) -> None:
    """Write pipeline.json."""
    facts = {
        "batch_ms": {"mean": mean},
        "stages": [
            {"stage": name, "kind": kind, "share": share, "cpu_ms_per_image": cpu}
            for name, kind, share, cpu in stages
        ],
        "cache_before": cache_before,
    }
    (folder / "pipeline.json").write_text(json.dumps(facts))


def layers(folder: Path, rows) -> None:
    """Write layers.csv of (iteration, device, layer, phase, op_ms)."""
    columns = ("iteration", "device", "layer", "phase", "op_ms")
    pl.DataFrame([dict(zip(columns, row, strict=True)) for row in rows]).write_csv(
        folder / "layers.csv"
    )
