"""A run's record made into tables: steps.csv, summary.csv, the run's ledger."""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from timesink.runs.record import MISSING, ProcessRecord, RunRecord

WARM_UP_ITERATIONS = 20
PERCENTS = (25, 50, 75, 100)

STEP_COLUMNS = {
    "process": pl.Int64,
    "epoch": pl.Int64,
    "split": pl.String,
    "iteration": pl.Int64,
    "data_ms": pl.Float64,
    "step_ms": pl.Float64,
    "loss": pl.Float64,
    "top1": pl.Float64,
    "topn": pl.Float64,
    "end_s": pl.Float64,
    "compute_ms": pl.Float64,
    "images": pl.Int64,
    "executed": pl.Int64,
}

LEDGER_COLUMNS = {
    "scope": pl.String,
    "process": pl.Int64,
    "iteration": pl.Int64,
    "device": pl.String,
    "account": pl.String,
    "layer": pl.String,
    "phase": pl.String,
    "place": pl.String,
    "op_ns": pl.Int64,
    "charged_ns": pl.Int64,
    "estimated": pl.Boolean,
}

CONFIGURATION = (
    ("name", "name"),
    ("network", "training.network"),
    ("batch_size", "training.batch_size"),
    ("epochs", "training.epochs"),
    ("optimizer", "training.optimizer"),
    ("learning_rate", "training.learning_rate"),
    ("momentum", "training.momentum"),
    ("schedule", "training.schedule"),
    ("decay_epochs", "training.decay_epochs"),
    ("decay_factor", "training.decay_factor"),
    ("weight_decay", "training.weight_decay"),
    ("label_smoothing", "training.label_smoothing"),
    ("dropout", "training.dropout"),
    ("topn", "training.topn"),
    ("precision", "training.precision"),
    ("xla", "training.xla"),
    ("replicas", "training.replicas"),
    ("synchronized_batch_norm", "training.synchronized_batch_norm"),
    ("deterministic", "training.deterministic"),
    ("profile", "profile.mode"),
    ("checkpoint_every", "training.checkpoint_every"),
    ("source", "pipeline.source"),
    ("stages", "pipeline.stages"),
    ("image_size", "pipeline.image_size"),
    ("stored", "pipeline.stored"),
    ("mode", "pipeline.mode"),
    ("workers", "pipeline.workers"),
    ("prefetch", "pipeline.prefetch"),
    ("shuffle", "pipeline.shuffle"),
    ("input_deterministic", "pipeline.deterministic"),
    ("cache", "pipeline.cache"),
    ("images_per_class", "dataset.images_per_class"),
    ("max_bad", "dataset.max_bad"),
    ("seed", "seed"),
)


def steps_table(run: RunRecord) -> pl.DataFrame:
    """Give a row for each step of each process, in the order they ran."""
    frames = [_steps_of(process) for process in run.processes.values() if process.steps]
    return pl.concat(frames) if frames else pl.DataFrame(schema=STEP_COLUMNS)


def _steps_of(process: ProcessRecord) -> pl.DataFrame:
    steps = process.steps
    integers = {name: np.array(column, np.int64) for name, column in steps.integers.items()}
    floats = {name: np.array(column, np.float64) for name, column in steps.floats.items()}
    begin_ns, data_ns = integers["begin_ns"], integers["data_ns"]
    compute_ns = integers["compute_ns"]
    end_ns = _ends_ns(process)
    return (
        pl.DataFrame(
            {
                "process": np.full(len(steps), process.number),
                "epoch": integers["epoch"],
                "split": steps.split,
                "iteration": integers["iteration"],
                "data_ms": np.where(data_ns == MISSING, np.nan, data_ns / 1e6),
                "step_ms": (end_ns - begin_ns) / 1e6,
                **floats,
                "end_s": end_ns / 1e9,
                "compute_ms": compute_ns / 1e6,
                "images": integers["images"],
                "executed": np.array(steps.executed, np.int64),
            },
        )
        .with_columns(
            pl.col("data_ms", "top1", "topn").fill_nan(None),
            pl.col("images").replace(MISSING, None),
        )
        .select(pl.col(name).cast(kind) for name, kind in STEP_COLUMNS.items())
    )


def _ends_ns(process: ProcessRecord) -> npt.NDArray[np.int64]:
    """Give each step's end: where the next one, or another account of the run, begins."""
    columns = process.steps.integers
    begin_ns = np.array(columns["begin_ns"], np.int64)
    changes = [at for at, _ in process.transitions]
    boundaries = np.unique(np.concatenate([begin_ns, np.array(changes, np.int64)]))
    following = np.searchsorted(boundaries, begin_ns, side="right")
    end_ns: npt.NDArray[np.int64] = (
        begin_ns
        + np.maximum(np.array(columns["data_ns"], np.int64), 0)
        + np.array(columns["compute_ns"], np.int64)
    )
    known = following < len(boundaries)
    end_ns[known] = boundaries[following[known]]
    return end_ns


def step_spans(process: ProcessRecord) -> list[tuple[int, int, int]]:
    """Give each training step's iteration, beginning and end, on the process's clock."""
    columns = process.steps.integers
    return [
        (iteration, begin_ns, end_ns)
        for split, iteration, begin_ns, end_ns in zip(
            process.steps.split,
            columns["iteration"],
            columns["begin_ns"],
            _ends_ns(process).tolist(),
            strict=True,
        )
        if split == "train"
    ]


def training_lineage(steps: pl.DataFrame) -> pl.DataFrame:
    """Keep, of iterations that a resumed run did twice, the ones its weights come from."""
    return (
        steps.filter(pl.col("split") == "train")
        .sort("iteration", "process")
        .unique("iteration", keep="last", maintain_order=True)
    )


def summary_table(run: RunRecord, steps: pl.DataFrame) -> pl.DataFrame:
    """Give the times at 25, 50, 75 and 100 % of the iterations, with and without the first 20."""
    lineage = training_lineage(steps)
    configuration = {column: _value(run.experiment, key) for column, key in CONFIGURATION}
    configuration["parameters"] = run.network.get("parameters")
    configuration["classes"] = run.dataset.get("classes")
    configuration["training_images"] = run.dataset.get("train")
    configuration["planned_iterations"] = run.network.get("iterations")
    configuration["peak_memory_bytes"] = peak_memory_bytes(run)
    before = lineage["executed"].cum_sum() - lineage["executed"]
    rows = []
    for skipped in (0, WARM_UP_ITERATIONS):
        for percent in PERCENTS:
            last = int(np.ceil(int(lineage["executed"].sum()) * percent / 100))
            counted = lineage.filter((before >= skipped) & (before < last))
            times = _times(counted, steps, whole=percent == 100)
            rows.append({**configuration, "percent": percent, "skipped": skipped, **times})
    return pl.DataFrame(rows, infer_schema_length=None)


def _times(counted: pl.DataFrame, steps: pl.DataFrame, *, whole: bool) -> dict[str, Any]:
    names = ("data_s", "training_s", "validation_s", "overall_s", "missing_s", "images_per_s")
    if counted.is_empty():
        return {"iterations": 0, "images": 0, **dict.fromkeys(names), "loss": None, "top1": None}
    begin_s = pl.col("end_s") - pl.col("step_ms") / 1e3
    windows = counted.group_by("process").agg(
        begin_s.min().alias("from_s"), pl.col("end_s").max().alias("to_s")
    )
    validation_s = overall_s = 0.0
    for process, from_s, to_s in windows.iter_rows():
        validations = steps.filter(
            (pl.col("split") == "validation") & (pl.col("process") == process) & (begin_s >= from_s)
        )
        if not whole:
            validations = validations.filter(pl.col("end_s") <= to_s)
        elif not validations.is_empty():
            to_s = max(to_s, float(validations["end_s"].max()))  # type: ignore[arg-type]
        validation_s += float(validations["step_ms"].sum()) / 1e3
        overall_s += to_s - from_s
    data_s = float(counted["data_ms"].sum()) / 1e3
    training_s = float(counted["compute_ms"].sum()) / 1e3
    return {
        "iterations": int(counted["executed"].sum()),
        "images": int(counted["images"].sum()),
        "data_s": data_s,
        "training_s": training_s,
        "validation_s": validation_s,
        "overall_s": overall_s,
        "missing_s": overall_s - data_s - training_s - validation_s,
        "images_per_s": images_per_s(counted),
        "loss": counted["loss"][-1],
        "top1": counted["top1"][-1],
    }


def images_per_s(steps: pl.DataFrame) -> float | None:
    """Give the throughput over the steps whose images are known; None where most are not."""
    known = steps.filter(pl.col("images").is_not_null())
    total_s = float(known["step_ms"].sum()) / 1e3
    if not total_s or 2 * known.height < steps.height:
        return None
    return float(known["images"].sum()) / total_s


def ledger_table(run: RunRecord, steps: pl.DataFrame | None = None) -> pl.DataFrame:
    """Give the run's accounts, a row for each process and account; then those of the steps."""
    rows = [
        {"scope": "run", "process": process.number, "account": account, "charged_ns": charged_ns}
        for process in run.processes.values()
        for account, charged_ns in process.accounts().items()
    ]
    frames = [pl.DataFrame(rows, schema_overrides=LEDGER_COLUMNS)]
    if steps is not None:
        frames.append(steps.with_columns(scope=pl.lit("step")))
    return pl.concat(
        [
            frame.select(
                pl.col(name).cast(kind) if name in frame.columns else pl.lit(None, kind).alias(name)
                for name, kind in LEDGER_COLUMNS.items()
            )
            for frame in frames
        ]
    ).with_columns(pl.col("estimated").fill_null(value=False))


def _value(experiment: dict[str, Any], key: str) -> Any:
    value: Any = experiment
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, list):
        return " ".join(map(str, value))
    # These are a number or a word: one column has one type.
    mixed = ("pipeline.workers", "pipeline.prefetch", "pipeline.shuffle")
    return str(value) if key in mixed and value is not None else value


def peak_memory_bytes(run: RunRecord) -> int | None:
    """Give the largest resident set of the processes; None where no supervisor saw one end."""
    peaks = [p.ended["peak_memory_bytes"] for p in run.processes.values() if p.ended]
    return max(peaks) if peaks else None
