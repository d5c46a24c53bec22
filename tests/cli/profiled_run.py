"""A profiled run's directory, written without training: a journal, tables, a ledger of steps."""

import numpy as np
import polars as pl

from timesink.experiment import Experiment
from timesink.runs.directory import RunDirectory
from timesink.runs.journal import Journal

MACHINE = {
    "cpu": {"model": "A CPU", "cores": 4},
    "disk": {"filesystem": "ext4", "free_bytes": 1},
    "versions": {"tensorflow-cpu": "2.21.0"},
}
TRACED = range(41, 61)


def make_run(
    path,
    *,
    conv_ms=20.0,
    wait_ms=2.0,
    seed=0,
    count=120,
    traced=TRACED,
    training=None,
    cores=None,
    machine=None,
    processes=1,
    tables=True,
):
    """Write a run's journal and tables: steps of a layer, a wait and the rest, with noise."""
    path.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    experiment = Experiment().model_dump(mode="json")
    experiment["seed"] = seed
    experiment["profile"]["verdict"] = False
    experiment["training"].update(training or {})
    experiment["machine"]["cores"] = cores
    ledger, iteration = [], 0
    for process in range(1, processes + 1):
        journal = Journal(path / "log.txt", process, 0, clock_ns=lambda: 0)
        if process == 1:
            journal.write("run", experiment=experiment, machine={**MACHINE, **(machine or {})})
        at_ns = 1_000_000_000
        journal.write("account", account="tracing", begin_ns=at_ns)
        for _ in range(count // processes):
            iteration += 1
            first = at_ns == 1_000_000_000
            parts_ms = {
                "layer": conv_ms * rng.normal(1, 0.02),
                "input_wait": wait_ms * rng.normal(1, 0.05),
                "runtime": 10 * rng.normal(1, 0.02) + (3000 if first else 0),
            }
            if iteration in traced:
                parts_ms["unattributed"] = 5.0  # as tracing slows a step
                ledger += [(process, iteration, *each) for each in charges(parts_ms)]
            parts_ns = [round(each * 1e6) for each in parts_ms.values()]
            journal.write(
                "step",
                split="train",
                epoch=1,
                iteration=iteration,
                begin_ns=at_ns,
                data_ns=parts_ns[1],
                compute_ns=sum(parts_ns) - parts_ns[1],
                images=32,
                loss=1.0,
                top1=0.5,
                topn=0.9,
            )
            at_ns += sum(parts_ns)
        journal.write("account", account="teardown", begin_ns=at_ns)
        journal.close()
    run = RunDirectory(path)
    if tables:
        run.write_tables()
        add_step_ledger(path, ledger)
    return path


def charges(parts_ms):
    for account, ms in parts_ms.items():
        if account == "layer":
            yield account, "conv1", "forward", ms * 0.4
            yield account, "conv1", "backward", ms * 0.6
        else:
            yield account, None, None, ms


def add_step_ledger(path, rows):
    ledger = pl.read_parquet(path / "ledger.parquet")
    lines = [
        (
            "step",
            process,
            iteration,
            "CPU:0",
            account,
            layer,
            phase,
            None,
            0,
            round(ms * 1e6),
            False,
        )
        for process, iteration, account, layer, phase, ms in rows
    ]
    steps = pl.DataFrame(lines, schema=ledger.schema, orient="row")
    pl.concat([ledger, steps]).write_parquet(path / "ledger.parquet")
