"""A tiny network and its data, for tests that train with TensorFlow in this very process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import polars as pl

BATCH, BATCHES = 8, 12
LOSS = keras.losses.SparseCategoricalCrossentropy

X = np.random.default_rng(0).random((BATCH * BATCHES, 12, 12, 3), np.float32)
Y = np.random.default_rng(1).integers(0, 10, BATCH * BATCHES)


def tiny(**compiled: Any) -> keras.Model:
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((12, 12, 3)),
            layers.Conv2D(4, 3, name="conv"),
            layers.Flatten(name="flat"),
            layers.Dense(10, name="fc"),
        ],
        name="tiny",
    )
    model.compile("sgd", LOSS(from_logits=True), **compiled)
    return model


class At(keras.callbacks.Callback):
    """Does something at the end of one batch."""

    def __init__(self, batch: int, action: Callable[[], object]) -> None:
        super().__init__()
        self.batch, self.action = batch, action

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch == self.batch:
            self.action()


def fit(model: keras.Model, *callbacks: Any, **asked: Any) -> Any:
    return model.fit(X, Y, batch_size=BATCH, verbose=0, callbacks=list(callbacks), **asked)


def summary_of(out: Path) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return summary


def steps_of(out: Path) -> pl.DataFrame:
    return pl.read_csv(out / "steps.csv")


def books_of(out: Path) -> pl.DataFrame:
    """The steps' part of the ledger."""
    return pl.read_parquet(out / "ledger.parquet").filter(pl.col("scope") == "step")


def assert_closed(out: Path) -> None:
    """Of each traced step the accounts sum to its length, to the nanosecond."""
    charged = books_of(out).group_by("iteration", "device").agg(pl.col("charged_ns").sum())
    assert charged.height
    rows = charged.join(steps_of(out).select("iteration", "step_ms"), on="iteration")
    for charged_ns, step_ms in rows.select("charged_ns", "step_ms").iter_rows():
        assert charged_ns == round(step_ms * 1e6)


def charged_most(out: Path, account: str) -> dict[str, Any]:
    """The row of an account that was charged most."""
    rows = [row for row in summary_of(out)["accounts"] if row["account"] == account]
    return max(rows, key=lambda row: row["charged_ms"])


def layers_in(out: Path) -> set[str]:
    return {row["layer"] for row in summary_of(out)["accounts"] if row["layer"]}
