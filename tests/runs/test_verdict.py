"""A run's verdict from its journal: which steps count, what is measured, why there is none."""

import pytest

from timesink.runs.journal import Event
from timesink.runs.record import record_of
from timesink.runs.summary import summarize
from timesink.runs.tables import ledger_table, steps_table
from timesink.runs.verdict import wants_verdict

MS = 1_000_000
FIGURES = {"images_per_s": 400.0, "wall_s": 3.0, "cpu_s": 6.0}


def events(
    *, steps=40, traced=(), probes=("input", "compute"), compute_images_per_s=900.0, **sections
):
    """Steps of 10 ms, 6 of them waiting, with 4 images each: 400 images/s; traced ones take 20."""
    experiment = {
        "training": {"network": "n"},
        "profile": {"mode": "window", "verdict": True, **sections.get("profile", {})},
        "pipeline": {
            "source": "raw",
            "stages": "seed000",
            "stored": "uint8",
            "mode": "pipelined",
            "workers": "auto",
            "prefetch": "auto",
            **sections.get("pipeline", {}),
        },
        "machine": sections.get("machine", {}),
    }
    yield Event(0, 1, "run", {"experiment": experiment, "machine": {"cpu": {"cores": 2}}})
    yield Event(0, 1, "network", {"network": "n", "devices": ["CPU:0"], "resumed_at": 0})
    at_ms = 1000
    for number in range(1, steps + 1):
        took_ms = 3000 if number == 1 else 20 if number in traced else 10
        fields = {"split": "train", "epoch": 1, "iteration": number, "images": 4, "loss": 1.0}
        times = {"begin_ns": at_ms * MS, "data_ns": 6 * MS, "compute_ns": (took_ms - 6) * MS}
        yield Event(at_ms * MS, 1, "step", {**fields, **times})
        at_ms += took_ms
    if traced:
        window = {"first": traced[0], "last": traced[-1], "file": "gone.xplane.pb"}
        yield Event(at_ms * MS, 1, "profile_window", window)
    teardown = {"account": "teardown", "begin_ns": at_ms * MS}
    yield Event(at_ms * MS, 1, "account", teardown)
    yield Event(at_ms * MS, 1, "completed", {})
    ended = {"wall_ns": (at_ms + 5) * MS, "exit": 0, "peak_memory_bytes": 1}
    yield Event((at_ms + 6) * MS, 1, "process_ended", ended)
    for number, kind in enumerate(probes):
        begin_ns = (at_ms + 10 + 100 * number) * MS
        found = {"kind": kind, "begin_ns": begin_ns, "wall_ns": 100 * MS, **FIGURES}
        if kind == "compute":
            found["images_per_s"] = compute_images_per_s
        yield Event(begin_ns + 100 * MS, 1, "probe", found)


def summary_of(all_events):
    run = record_of(all_events)
    return summarize(run, steps_table(run))


def test_three_measurements_make_a_verdict():
    verdict = summary_of(events())["verdict"]
    assert set(verdict) == {
        *("bound", "share", "sentence", "first", "notes"),
        *("input_images_per_s", "compute_images_per_s", "both_images_per_s"),
    }
    assert verdict["bound"] == "input"
    assert verdict["both_images_per_s"] == pytest.approx(400)
    assert verdict["share"] == pytest.approx(1 - 400 / 900)
    assert "share the 2 cores" in verdict["sentence"]
    assert verdict["notes"] == []


def test_the_cores_that_are_shared_are_those_asked_for():
    asked = summary_of(events(machine={"cores": 1}))["verdict"]["sentence"]
    assert "share one core" in asked
    unasked = summary_of(events(machine={"cores": None}))["verdict"]["sentence"]
    assert "share the 2 cores" in unasked


def test_compute_bound_is_told_from_input_bound():
    assert summary_of(events(compute_images_per_s=100.0))["verdict"]["bound"] == "balanced"
    found = list(events(compute_images_per_s=401.0))
    found[-2].fields["images_per_s"] = 5000.0
    assert summary_of(found)["verdict"]["bound"] == "compute"


def test_the_network_on_a_gpu_shares_no_cores():
    found = list(events())
    found[1].fields["devices"] = ["GPU:0"]
    assert "cores" not in summary_of(found)["verdict"]["sentence"]


def test_traced_steps_do_not_count_where_there_are_others():
    assert summary_of(events(traced=range(25, 35)))["verdict"][
        "both_images_per_s"
    ] == pytest.approx(400)


def test_where_nearly_all_steps_were_traced_they_count_and_that_is_said():
    verdict = summary_of(events(steps=12, traced=range(2, 13)))["verdict"]
    assert verdict["both_images_per_s"] == pytest.approx(200)
    assert verdict["notes"][-1].startswith("training was timed in traced steps too")


def test_an_epoch_made_as_a_whole_counts_its_first_wait_and_not_the_tracing():
    found = list(events(steps=11, pipeline={"mode": "whole_dataset"}))
    for event in found:
        if event.name == "step":
            first = event.fields["iteration"] == 1
            event.fields["data_ns"] = 900 * MS if first else 0
            event.fields["compute_ns"] = (2100 if first else 10) * MS
    # 44 images in 900 ms of making them and 11 steps of 10 ms.
    verdict = summary_of(found)["verdict"]
    assert verdict["both_images_per_s"] == pytest.approx(44 / 1.01)


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({}, True),
        ({"steps": 5}, False),
        ({"steps": 6}, True),
        ({"profile": {"verdict": False}}, False),
        ({"profile": {"mode": "off"}}, False),
    ],
)
def test_it_is_measured_where_it_is_asked_for_and_the_run_is_long_enough(asked, wanted):
    assert wants_verdict(record_of(events(probes=(), **asked))) is wanted


def test_nothing_is_measured_of_a_run_that_is_not_complete_or_not_ours():
    whole = list(events(probes=()))
    assert not wants_verdict(record_of(e for e in whole if e.name != "completed"))
    whole[0].fields["attached"] = "keras.Model.fit"
    record = record_of(whole)
    assert not wants_verdict(record)
    summary = summarize(record, steps_table(record))
    assert (summary["verdict"], summary["notes"]) == (None, [])


def test_a_run_too_short_says_so_and_one_that_did_not_ask_says_nothing():
    short = summary_of(events(steps=3, probes=()))
    assert short["verdict"] is None
    assert short["notes"] == ["no verdict: it needs 5 steps after each process's first"]
    assert summary_of(events(probes=(), profile={"verdict": False}))["notes"] == []


def test_a_probe_that_failed_is_the_reason_why_there_is_none():
    found = list(events(probes=("input",)))
    found[-1].fields["failed"] = "it took longer than 120 s"
    summary = summary_of(found)
    assert summary["verdict"] is None
    assert summary["notes"] == [
        "no verdict: input alone could not be measured: it took longer than 120 s"
    ]


def test_a_probe_that_was_never_written_was_interrupted():
    summary = summary_of(events(probes=("input",)))
    assert summary["notes"] == ["no verdict: compute alone could not be measured: interrupted"]


def test_probes_are_an_account_of_the_run_and_it_stays_closed():
    run = record_of(events())
    (process,) = run.processes.values()
    accounts = process.accounts()
    # From the end of the process, 5 ms after its last work, to the end of the second probe.
    assert accounts["probe"] == (10 - 5 + 200) * MS
    assert accounts["teardown"] == 5 * MS
    assert sum(accounts.values()) == process.end_ns
    charged = ledger_table(run).filter(account="probe")["charged_ns"].to_list()
    assert charged == [accounts["probe"]]
    rows = {row["account"]: row["s"] for row in summary_of(events())["run_accounts"]}
    assert rows["probe"] == pytest.approx(0.205)
