"""What the allocators held in each step, from the profiler's own words."""

import numpy as np
import polars as pl

from timesink.ledger.steps import StepSpans
from timesink.traces.events import Events, Kind

SCHEMA = {
    "iteration": pl.Int64,
    "allocator": pl.String,
    "peak_bytes": pl.Int64,
    "changes": pl.Int64,
}


def memory_by_step(events: Events, steps: StepSpans) -> pl.DataFrame:
    """Give for each step and allocator the most it held, and how often that changed."""
    found = np.flatnonzero(events.kind == Kind.MEMORY)
    at = events.begin_ns[found]
    step = np.searchsorted(steps.begin_ns, at, side="right") - 1
    inside = (step >= 0) & (at < steps.end_ns[np.maximum(step, 0)]) if len(steps) else step < -1
    found, step = found[inside], step[inside]
    frame = pl.DataFrame(
        {
            "iteration": steps.iteration[step],
            "name": events.name[found].astype(np.int64),
            "bytes": events.number[found],
        }
    )
    names = {number: events.names[number].text for number in frame["name"].unique()}
    return (
        frame.group_by("iteration", "name")
        .agg(pl.col("bytes").max().alias("peak_bytes"), pl.len().cast(pl.Int64).alias("changes"))
        .with_columns(
            pl.col("name").replace_strict(names, return_dtype=pl.String).alias("allocator")
        )
        .select(list(SCHEMA))
        .sort("iteration", "allocator")
    )
