"""Delays of known length, planted into a training: does the ledger find them where they are?

A small network is trained by `fit`, every step traced. Each plant is switched on for a block of
steps and off for the block before it, over and over, in one process and one graph; what its
account gained from block to block is compared with what a clock inside the delay measured.
A plant inside the graph sleeps in an op that takes what its layer takes and feeds what it gives,
where no other op can run: on the critical path, alone. `left` and `right` sleep beside each other.

    python benchmarks/planted_delays.py [--delay-ms 50] [--rounds 8] [--steps 6] [--plant forward]

To reach: each plant's account gains the delay, within 5 %; no other changes by more than 5 % of
it, beyond its noise (95 % interval of the change's median, over the pairs of blocks); and what
all accounts gain is what the step took longer. Exit code 1 where that fails.
"""

import argparse
import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import polars as pl

import timesink
from _plants import INPUT, PLANTS, PREFETCHED, Delays, Plant, Switchboard, batches, network

SETTLING = 3
"""Steps at the head of a block in which a prefetched input is still the block before's."""
TOLERANCE = 0.05
LEDGER_MS = 1e-5
"""Both sums are of whole nanoseconds; the rest is of floating point."""


def ledger(board: Switchboard, plant: Plant | None, directory: Path) -> pl.DataFrame:
    """Train, and give a row for each iteration and account: what it was charged, its ops' time."""
    model = network(board)
    observed = timesink.Callback(
        directory, mode="every", start=2, steps=len(board.schedule), sample_ms=5.0
    )
    with contextlib.redirect_stderr(io.StringIO()):
        model.fit(
            batches(board, plant),
            steps_per_epoch=len(board.schedule),
            verbose=0,
            callbacks=[Delays(board), observed],
        )
    rows = pl.read_parquet(directory / "ledger.parquet").filter(pl.col("scope") == "step")
    name = (
        pl.when(pl.col("account") == "layer")
        .then(pl.col("layer").fill_null("(no layer)") + " " + pl.col("phase"))
        .when((pl.col("account") == "python") & pl.col("place").is_not_null())
        .then("python: " + pl.col("place").str.split(", ").list.first())
        .otherwise("account")
    )
    accounts = rows.group_by("iteration", name.alias("account")).agg(
        charged=pl.col("charged_ns").sum() / 1e6, op=pl.col("op_ns").sum() / 1e6
    )
    steps = pl.read_csv(directory / "steps.csv").select(
        "iteration", pl.lit("(step)").alias("account"), charged="step_ms", op="step_ms"
    )
    return pl.concat([accounts, steps.cast({"iteration": pl.Int64})])


def interval(changes: np.ndarray) -> float:
    """Give half of the 95 % interval of the changes' median, by resampling the pairs."""
    drawn = np.random.default_rng(0).choice(changes, (2000, len(changes)))
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
    return float(high - low) / 2


def judge(plant: Plant, board: Switchboard, rows: pl.DataFrame) -> bool:
    """Print what a plant did; gives whether it did what it should."""
    tables = {
        figure: rows.pivot("iteration", index="account", values=figure).fill_null(0)
        for figure in ("charged", "op")
    }
    names = tables["charged"]["account"].to_list()
    pairs = list(board.blocks(plant.name, SETTLING if plant is PREFETCHED else 0))

    def changes(figure: str, of: Callable[..., Any]) -> dict[str, np.ndarray]:
        """Give each account's change from each block to the next."""
        table = tables[figure]

        def middle(iterations: list[int]) -> np.ndarray:
            return of(table.select(map(str, iterations)).to_numpy(), axis=1)

        found = np.array([middle(on) - middle(off) for off, on in pairs])
        return dict(zip(names, found.T, strict=True))

    gained = changes(plant.figure, np.median)
    means = {name: float(each.mean()) for name, each in changes("charged", np.mean).items()}
    longer_ms = means.pop("(step)")
    step_ms = float(np.median(gained.pop("(step)")))
    # In blocks as the steps are, because a collection is not always as long.
    clock = np.reshape(board.measured_ms[plant.name], (len(pairs), -1))
    planted_ms = float(np.median(np.median(clock, axis=1)))
    if plant.planted == "step":
        planted_ms = step_ms
    landed_ms = float(np.median(gained.pop(plant.account, np.zeros(1))))
    if plant.name == "beside":
        gained.pop("right forward")  # its twin
    middles = {name: float(np.median(each)) for name, each in gained.items()}
    beyond = {name: max(abs(middles[name]) - interval(each), 0) for name, each in gained.items()}
    other = max(gained, key=lambda name: (beyond[name], abs(middles[name])))
    closed = abs(sum(means.values()) - longer_ms) <= LEDGER_MS
    good = (
        abs(landed_ms / planted_ms - 1) <= TOLERANCE
        and beyond[other] <= TOLERANCE * planted_ms
        and closed
    )
    print(
        f"{plant.name:16} {planted_ms:8.2f} {landed_ms:8.2f} {landed_ms / planted_ms:6.3f}"
        f" {step_ms:8.2f} {longer_ms:8.2f} {sum(means.values()):8.2f}"
        f"  {middles[other]:+6.2f} ± {interval(gained[other]):4.2f} {other[:28]:28}"
        f" {'within 5 %' if good else 'NOT within 5 %' if closed else 'NOT CLOSED'}"
    )
    if plant.name == "beside":
        halves = changes("charged", np.median)
        left, right = (np.median(halves[f"{name} forward"]) for name in ("left", "right"))
        print(f"{'':16} (op_ms; of the wall, `left` was charged {left:.2f}, `right` {right:.2f})")
    return good


def main() -> int:
    """Plant each delay; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = {plant.name: plant for plant in (*PLANTS, INPUT, PREFETCHED)}
    parser.add_argument("--plant", action="append", choices=known, help="only this; repeatable")
    parser.add_argument("--delay-ms", type=float, default=50.0)
    parser.add_argument("--rounds", type=int, default=8, help="pairs of blocks for each plant")
    parser.add_argument("--steps", type=int, default=6, help="steps a block, at least 5")
    options = parser.parse_args()
    wanted = [known[name] for name in options.plant or known]
    inside = tuple(plant for plant in wanted if plant in PLANTS)
    fits = [(inside, None)] if inside else []
    fits += [((plant,), plant) for plant in wanted if plant not in PLANTS]
    print(
        "In ms a step, medians over the pairs of blocks; the step's mean change is Σ of accounts'"
    )
    print(
        f"{'plant':16}  planted   landed  ratio   longer     mean = Σ mean"
        "  largest change elsewhere                    verdict"
    )
    good = []
    with tempfile.TemporaryDirectory() as directory:
        for number, (plants, source) in enumerate(fits):
            # What is prefetched settles slowly, and only what is longer than the step can land.
            times = 2 if source is PREFETCHED else 1
            steps = max(options.steps, 5) * times
            board = Switchboard(plants, options.rounds, steps, options.delay_ms * times)
            rows = ledger(board, source, Path(directory) / str(number))
            good += [judge(plant, board, rows) for plant in plants]
    print(f"{sum(good)} of {len(good)} plants came back as they should")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
