"""A run's verdict: its probes, its own steps and its ledger brought before `analysis.verdict`."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from timesink.analysis.stages import by_stage
from timesink.analysis.verdict import InputWork, Rates, StepWork, judge
from timesink.errors import ExperimentError
from timesink.ledger.opmap import LAYER
from timesink.pipelines.stages import parse_stages, split_for_store
from timesink.runs.record import PROBES, RunRecord
from timesink.runs.step_tables import is_traced
from timesink.runs.tables import WARM_UP_ITERATIONS, images_per_s, training_lineage

FEWEST_STEPS = 5
TRACED_TOO = "training was timed in traced steps too: too few were untraced"


def wants_verdict(run: RunRecord) -> bool:
    """Tell whether a run that is complete asks for a verdict, and is long enough for one."""
    return run.status == "complete" and _asked(run) and _long_enough(run)


def verdict_facts(
    run: RunRecord, steps: pl.DataFrame, facts: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, list[str]]:
    """Give what summary.json says; where there is no verdict, a note says why.

    `facts` are those of summary.json: `accounts` and `stages` of the traced steps.
    """
    if run.status != "complete" or not _asked(run):
        return None, []
    if not _long_enough(run):
        return None, [f"no verdict: it needs {FEWEST_STEPS} steps after each process's first"]
    for kind in PROBES:
        failed = run.probes.get(kind, {"failed": "interrupted"}).get("failed")
        if failed is not None:
            return None, [f"no verdict: {kind} alone could not be measured: {failed}"]
    counted, notes = _counted(run, steps)
    both = images_per_s(counted)
    if both is None:
        return None, ["no verdict: the steps' images are not known"]
    rates = _rates(run, both, counted)
    found = judge(rates, _input_work(run, facts["stages"]), _step_work(facts["accounts"]))
    return {
        "bound": found.bound,
        "share": found.share,
        "sentence": found.sentence,
        "first": found.first,
        "input_images_per_s": rates.input_images_per_s,
        "compute_images_per_s": rates.compute_images_per_s,
        "both_images_per_s": rates.both_images_per_s,
        "notes": [*found.notes, *notes],
    }, []


def _asked(run: RunRecord) -> bool:
    profile = run.experiment.get("profile", {})
    return bool(
        run.attached is None and profile.get("verdict") and profile.get("mode", "off") != "off"
    )


def _long_enough(run: RunRecord) -> bool:
    after_the_first = [
        process.steps.split.count("train") - 1
        for process in run.processes.values()
        if process.steps
    ]
    return max(after_the_first, default=0) >= FEWEST_STEPS


def _counted(run: RunRecord, steps: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Choose the steps that say how fast training ran: steady and untraced, if there are enough."""
    lineage = training_lineage(steps).with_columns(
        nth=pl.col("iteration").rank("dense").over("process")
    )
    if run.experiment.get("pipeline", {}).get("mode") == "whole_dataset":
        return _whole_epochs(lineage), []
    untraced = lineage.filter(~is_traced(run, lineage))
    for chosen, note in (
        (untraced.filter(pl.col("nth") > WARM_UP_ITERATIONS), []),
        (untraced.filter(pl.col("nth") > 1), []),
        (lineage.filter(pl.col("nth") > 1), [TRACED_TOO]),
    ):
        if chosen.height >= FEWEST_STEPS:
            return chosen, note
    return chosen, note


def _whole_epochs(lineage: pl.DataFrame) -> pl.DataFrame:
    """Count each process's first step too: all of an epoch is made in it. Its tracing is not."""
    first = pl.col("nth") == 1
    compute_ms = pl.col("compute_ms").filter(~first).median()
    untraced_ms = pl.col("data_ms") + compute_ms
    return lineage.with_columns(step_ms=pl.when(first).then(untraced_ms).otherwise("step_ms"))


def _rates(run: RunRecord, both: float, counted: pl.DataFrame) -> Rates:
    made, taken = (run.probes[kind] for kind in PROBES)
    waits = counted.filter(pl.col("data_ms").is_not_null())
    wall_ms = float(waits["step_ms"].sum())
    return Rates(
        made["images_per_s"],
        taken["images_per_s"],
        both,
        waited=float(waits["data_ms"].sum()) / wall_ms if wall_ms else None,
        cores=run.experiment.get("machine", {}).get("cores")
        or run.machine.get("cpu", {}).get("cores", 1),
        input_cores=made["cpu_s"] / made["wall_s"],
        compute_cores=taken["cpu_s"] / taken["wall_s"],
        shares_cores=not any(device.startswith("GPU") for device in run.network.get("devices", ())),
    )


def _input_work(run: RunRecord, stages: Sequence[Mapping[str, Any]]) -> InputWork:
    asked = run.experiment["pipeline"]
    return InputWork(
        asked["mode"],
        asked["workers"],
        asked["prefetch"],
        [(row["stage"], row["share"]) for row in by_stage(stages) if row["kind"] == "stage"],
        _storable(asked),
    )


def _storable(asked: Mapping[str, Any]) -> list[str]:
    """Name the stages that `dataset convert` would do once."""
    if asked["source"] not in ("raw", "tfrecord"):
        return []
    try:
        prefix, _ = split_for_store(parse_stages(asked["stages"]), asked["stored"])
    except ExperimentError:  # no prefix of these stages can be stored
        return []
    return [stage.name for stage in prefix if stage.name != "read"]


def _step_work(accounts: Sequence[Mapping[str, Any]]) -> StepWork:
    if not accounts:
        return StepWork()
    rows = pl.DataFrame(
        [(row["account"], row["layer"], row["device"], row["share"]) for row in accounts],
        schema=["account", "layer", "device", "share"],
        orient="row",
    )
    devices = rows["device"].n_unique()
    of_accounts = rows.group_by("account").agg(pl.sum("share") / devices)
    layers = (
        rows.filter((pl.col("account") == LAYER) & pl.col("layer").is_not_null())
        .group_by("layer")
        .agg(pl.sum("share") / devices)
        .sort("share", "layer", descending=[True, False])
    )
    layer, share = layers.row(0) if layers.height else (None, 0.0)
    return StepWork(dict(of_accounts.iter_rows()), layer, share)
