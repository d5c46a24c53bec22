"""Tables of a run: from events to steps, the times at 25 … 100 %, and the summary."""

import pytest

from timesink.experiment import Experiment
from timesink.runs.journal import Event
from timesink.runs.record import record_of
from timesink.runs.summary import summarize
from timesink.runs.tables import ledger_table, steps_table, summary_table, training_lineage

MS = 1_000_000


def step(process, iteration, begin_ms, *, data=2, compute=5, split="train", loss=1.0):
    return Event(
        (begin_ms + data + compute) * MS,
        process,
        "step",
        {
            "split": split,
            "epoch": 1,
            "iteration": iteration,
            "begin_ns": begin_ms * MS,
            "data_ns": data * MS,
            "compute_ns": compute * MS,
            "images": 4,
            "loss": loss,
            "top1": 0.5,
            "topn": 1.0,
        },
    )


def account(process, name, at_ms):
    return Event(at_ms * MS, process, "account", {"account": name, "begin_ns": at_ms * MS})


def ended(process, wall_ms, exit_code=0):
    fields = {"wall_ns": wall_ms * MS, "exit": exit_code, "peak_memory_bytes": 1000 * process}
    return Event(wall_ms * MS, process, "process_ended", fields)


def whole_run(iterations=40):
    """Steps of 10 ms from 100 ms on, the first one 50 ms long; 20 ms of validation at the end."""
    events = [
        Event(
            0, 1, "run", {"experiment": {"name": "x", "training": {"network": "n"}}, "machine": {}}
        ),
        account(1, "tracing", 100),
        step(1, 1, 100, compute=40),
        account(1, "steps", 150),
    ]
    events += [step(1, 1 + k, 140 + 10 * k) for k in range(1, iterations)]
    end = 140 + 10 * iterations
    events += [
        account(1, "validation", end),
        step(1, 1, end, split="validation"),
        step(1, 2, end + 10, split="validation"),
        account(1, "teardown", end + 20),
        Event((end + 21) * MS, 1, "completed", {}),
        ended(1, end + 50),
    ]
    return record_of(events)


def test_a_step_runs_to_the_beginning_of_the_next():
    steps = steps_table(whole_run())
    train = steps.filter(split="train")
    assert train["step_ms"].to_list() == [50.0] + [10.0] * 39
    assert train["data_ms"].to_list() == [2.0] * 40
    assert train["end_s"][0] == 0.15


def test_the_last_step_of_a_killed_process_ends_with_its_own_times():
    run = record_of([account(1, "tracing", 0), step(1, 1, 0), step(1, 2, 10)])
    assert steps_table(run)["step_ms"].to_list() == [10.0, 7.0]


def test_the_times_are_given_at_four_places_with_and_without_the_first_twenty():
    run = whole_run()
    table = summary_table(run, steps_table(run))
    assert table.select("percent", "skipped").rows() == [
        (percent, skipped) for skipped in (0, 20) for percent in (25, 50, 75, 100)
    ]
    assert table["iterations"].to_list() == [10, 20, 30, 40, 0, 0, 10, 20]
    half = table.row(1, named=True)
    assert half["data_s"] == pytest.approx(0.040)
    assert half["training_s"] == pytest.approx(0.135)
    assert half["overall_s"] == pytest.approx(0.240)
    assert half["validation_s"] == 0
    assert half["missing_s"] == pytest.approx(0.240 - 0.040 - 0.135)
    assert half["network"] == "n"
    assert half["peak_memory_bytes"] == 1000


def test_the_summary_holds_every_key_that_bears_on_the_training():
    asked = Experiment().model_dump(mode="json")
    run = whole_run()
    run.experiment = asked
    row = summary_table(run, steps_table(run)).row(0, named=True)
    beside = {"validation", "validate_every", "checkpoint_keep", "iterations"}
    asked["pipeline"]["input_deterministic"] = asked["pipeline"].pop("deterministic")
    for key, value in {**asked["training"], **asked["pipeline"]}.items():
        if key not in beside:
            assert str(row[key]) == str(value)


def test_the_whole_includes_validation_and_its_parts_sum_to_it():
    run = whole_run()
    table = summary_table(run, steps_table(run))
    for row in (table.row(3, named=True), table.row(7, named=True)):
        assert row["validation_s"] == pytest.approx(0.020)
        parts = row["data_s"] + row["training_s"] + row["validation_s"] + row["missing_s"]
        assert parts == pytest.approx(row["overall_s"])
    assert table["overall_s"][3] == pytest.approx(0.460)


def test_without_enough_iterations_the_row_is_empty_and_not_zero():
    run = whole_run(10)
    row = summary_table(run, steps_table(run)).row(4, named=True)
    assert (row["iterations"], row["overall_s"], row["loss"]) == (0, None, None)


def resumed_run():
    """Process 1 is killed after iteration 5; process 2 goes on from the checkpoint at 3."""
    first = [account(1, "tracing", 50)] + [step(1, k, 50 + 10 * k, loss=9.0) for k in range(1, 6)]
    second = [
        Event(0, 2, "network", {"network": "n", "parameters": 7, "iterations": 6, "resumed_at": 3}),
        account(2, "tracing", 50),
        *[step(2, k, 50 + 10 * k) for k in range(4, 7)],
        account(2, "teardown", 120),
        Event(121 * MS, 2, "completed", {}),
        ended(2, 150),
    ]
    return record_of([*first, ended(1, 200, -9), *second])


def test_iterations_done_twice_stand_twice_in_the_steps_and_once_in_the_summary():
    run = resumed_run()
    steps = steps_table(run)
    assert steps.height == 8
    lineage = training_lineage(steps)
    assert lineage["process"].to_list() == [1, 1, 1, 2, 2, 2]
    summary = summarize(run, steps)
    assert summary["steps"] == 6
    assert summary["loss"] == 1.0
    assert summary_table(run, steps)["iterations"][3] == 6


def test_each_process_has_a_ledger_of_its_own_that_sums_to_its_wall_time():
    run = resumed_run()
    ledger = ledger_table(run)
    walls = {process: ledger.filter(process=process)["charged_ns"].sum() for process in (1, 2)}
    assert walls == {1: 200 * MS, 2: 150 * MS}
    killed = ledger.filter(process=1, account="unattributed")["charged_ns"].item()
    assert killed == (200 - 107) * MS
    assert ledger.filter(process=2, account="unattributed")["charged_ns"].item() == 0


def test_the_summary_leaves_the_first_step_of_each_process_out_of_its_medians():
    run = whole_run()
    summary = summarize(run, steps_table(run))
    assert summary["step_ms"] == {"median": 10.0, "p95": 10.0}
    assert summary["images_per_s"] == pytest.approx(400)
    assert summary["status"] == "complete"
    assert summary["peak_memory_bytes"] == 1000


@pytest.mark.parametrize(
    ("last", "status"),
    [
        (Event(1, 1, "completed", {}), "complete"),
        (Event(1, 1, "stopped", {}), "stopped"),
        (Event(1, 1, "error", {"kind": "RunError", "message": "m"}), "failed"),
        (Event(1, 1, "lost", {"kind": "OutOfMemoryError", "message": "m"}), "failed"),
        (Event(1, 1, "account", {"account": "steps", "begin_ns": 1}), "killed"),
    ],
)
def test_the_status_is_what_the_last_process_said(last, status):
    run = record_of([Event(0, 1, "process_started", {"utc": "now"}), last])
    summary = summarize(run, steps_table(run))
    assert summary["status"] == status
    assert summary["step_ms"]["median"] is None


def test_a_loss_that_is_not_finite_is_null_in_the_summary():
    run = record_of([account(1, "tracing", 0), step(1, 1, 0, loss="nan")])
    assert summarize(run, steps_table(run))["loss"] is None


def test_a_process_that_was_lost_leaves_its_last_time_unattributed():
    lost = Event(90 * MS, 1, "lost", {"kind": "OutOfMemoryError", "message": "m"})
    run = record_of([account(1, "tracing", 10), step(1, 1, 10), lost, ended(1, 90, -9)])
    charged = run.processes[1].accounts()
    assert charged["tracing"] == 7 * MS
    assert charged["unattributed"] == (90 - 17) * MS
