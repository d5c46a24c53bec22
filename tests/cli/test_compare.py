"""`timesink compare`: two runs, what changed, what did not, and the exit code that CI looks at."""

import json
import os
import re

import polars as pl
import pytest

from tests.cli.profiled_run import make_run


def test_a_slower_layer_is_found_and_the_rest_is_said_not_to_have_changed(timesink, tmp_path):
    make_run(tmp_path / "a", seed=1)
    make_run(tmp_path / "b", seed=2, conv_ms=24.0)
    done = timesink("compare", "a", "b")
    assert done.returncode == 0, done.stderr
    first, second, *rest = done.stdout.splitlines()
    assert first.startswith("step 32.0 → 36.0 ms, +12.")
    assert first.endswith(": slower")
    assert second.endswith(": no change beyond noise")
    text = "\n".join(rest)
    table = text[text.index("What changed") : text.index("no change beyond noise")]
    rows = table.splitlines()[2:]
    labels = [row.split("  ")[0] for row in rows]
    assert labels == ["layer, in all", "conv1 backward", "conv1 forward"]
    assert re.search(r"no change beyond noise: 3 rows, together 1[67]\.\d → 1[67]\.\d ms", text)
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_two_runs_of_the_same_have_not_changed(timesink, tmp_path):
    make_run(tmp_path / "a", seed=1)
    make_run(tmp_path / "b", seed=2)
    done = timesink("compare", "a", "b", "--fail-over", "0%")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].endswith(": no change beyond noise")
    assert "What changed" not in done.stdout


def test_json_is_one_object_and_nothing_else(timesink, tmp_path):
    make_run(tmp_path / "a", seed=1)
    make_run(tmp_path / "b", seed=2, conv_ms=24.0)
    done = timesink("compare", "a", "b", "--json")
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["schema_version"] == 1
    assert found["verdict"]["change"] == "slower"
    assert found["step_ms"]["difference_ms"] == pytest.approx(4, abs=0.3)
    assert found["step_ms"]["low_ms"] < 4 < found["step_ms"]["high_ms"]
    assert found["data_ms"]["changed"] is False
    by_account = {row["account"]: row for row in found["accounts"]}
    assert set(by_account) == {"layer", "input_wait", "runtime", "unattributed"}
    assert by_account["layer"]["difference_ms"] == pytest.approx(4, abs=0.4)
    assert found["rows"][0]["layer"] == "conv1"
    assert found["before"] == {"path": "a", "runs": 1, "steps": 80, "traced_steps": 20}
    assert found["fail_over"] is None
    assert found["differs"] == []


def test_traced_steps_the_first_step_and_the_warm_up_are_not_in_the_steps_time(timesink, tmp_path):
    make_run(tmp_path / "a", seed=1)
    found = json.loads(timesink("compare", "a", "a", "--json").stdout)
    assert found["step_ms"]["before_ms"] == pytest.approx(32, abs=0.3)
    assert found["step_ms"]["p"] == 1
    assert found["counted"] == "untraced steps after each process's first 20"


def test_each_process_of_a_resumed_run_leaves_its_first_steps_out(timesink, tmp_path):
    make_run(tmp_path / "a", seed=1, processes=2, traced=())
    found = json.loads(timesink("compare", "a", "a", "--json").stdout)
    assert found["step_ms"]["before_ms"] == pytest.approx(32, abs=0.3)
    assert found["before"]["steps"] == 80


@pytest.mark.parametrize(
    ("limit", "code"), [("5%", 7), ("0.05", 7), ("11.5%", 7), ("14%", 0), ("0.14", 0)]
)
def test_a_regression_over_the_limit_has_an_exit_code_of_its_own(timesink, tmp_path, limit, code):
    make_run(tmp_path / "a", seed=1)
    make_run(tmp_path / "b", seed=2, conv_ms=24.0)
    done = timesink("compare", "a", "b", "--fail-over", limit)
    assert done.returncode == code
    assert done.stdout.startswith("step 32.0 → 36.0 ms")
    if code:
        (line,) = done.stderr.splitlines()
        assert line.startswith("timesink: step 32.0 → 36.0 ms, +12.")
        assert line.endswith("% that --fail-over allows")
    assert timesink("compare", "b", "a", "--fail-over", limit).returncode == 0


def test_json_is_whole_when_the_limit_is_passed(timesink, tmp_path):
    make_run(tmp_path / "a", seed=1)
    make_run(tmp_path / "b", seed=2, conv_ms=24.0)
    done = timesink("compare", "a", "b", "--json", "--fail-over", "5%")
    assert done.returncode == 7
    judged = json.loads(done.stdout)["fail_over"]
    assert judged == {"account": "step", "limit": 0.05, "exceeded": True}


def test_one_account_can_be_judged_alone(timesink, tmp_path):
    make_run(tmp_path / "a", seed=1)
    make_run(tmp_path / "b", seed=2, wait_ms=2.6)
    arguments = ("compare", "a", "b", "--fail-over", "10%")
    assert timesink(*arguments).returncode == 0
    done = timesink(*arguments, "--account", "input_wait")
    assert done.returncode == 7
    assert "input_wait" in done.stderr
    assert timesink(*arguments, "--account", "layer").returncode == 0
    wrong = timesink(*arguments, "--account", "inputwait")
    assert wrong.returncode == 2
    assert "allowed: step, input_wait, layer" in wrong.stderr
    assert timesink("compare", "a", "b", "--account", "layer").returncode == 2


@pytest.mark.parametrize("limit", ["5", "-1%", "nan", "much", "%", "inf%", "1.0"])
def test_a_limit_that_could_be_misread_is_refused(timesink, tmp_path, limit):
    done = timesink("compare", "a", "b", "--fail-over", limit)
    assert done.returncode == 2
    assert "as 5% or 0.05" in done.stderr


def test_without_step_ledgers_the_steps_are_compared_and_the_accounts_said_to_be_missing(
    timesink, tmp_path
):
    make_run(tmp_path / "a", seed=1, traced=())
    make_run(tmp_path / "b", seed=2, conv_ms=24.0, tables=False, traced=())
    done = timesink("compare", "a", "b", "--fail-over", "5%")
    assert done.returncode == 7
    assert "What changed" not in done.stdout
    assert "no ledger of steps in a and b" in " ".join(done.stdout.split())
    refused = timesink("compare", "a", "b", "--fail-over", "5%", "--account", "layer")
    assert refused.returncode == 2
    assert "no ledger of steps" in refused.stderr


def test_a_traced_run_against_an_untraced_one_is_compared_on_untraced_steps(timesink, tmp_path):
    make_run(tmp_path / "a", seed=1)
    make_run(tmp_path / "b", seed=2, traced=())
    found = json.loads(timesink("compare", "a", "b", "--json").stdout)
    assert found["verdict"]["change"] == "no change beyond noise"
    assert found["rows"] == []


def test_where_only_traced_steps_are_there_a_note_says_that_they_are_slower(timesink, tmp_path):
    make_run(tmp_path / "a", seed=1, count=60, traced=range(2, 61))
    make_run(tmp_path / "b", seed=2, count=60, traced=())
    found = json.loads(timesink("compare", "a", "b", "--json").stdout)
    assert found["counted"] == "steps after each process's first"
    assert any("100% of the steps before and 0% after were traced" in n for n in found["notes"])


def test_what_differs_between_the_runs_is_listed(timesink, tmp_path):
    make_run(tmp_path / "a", seed=1, machine={"disk": {"filesystem": "ext4", "free_bytes": 9}})
    make_run(
        tmp_path / "b",
        seed=2,
        training={"batch_size": 64, "xla": True},
        machine={"cpu": {"model": "B CPU", "cores": 4}},
    )
    found = json.loads(timesink("compare", "a", "b", "--json").stdout)
    assert found["differs"] == [
        {"key": "training.batch_size", "before": 32, "after": 64},
        {"key": "training.xla", "before": False, "after": True},
        {"key": "host.cpu.model", "before": "A CPU", "after": "B CPU"},
    ]
    text = timesink("compare", "a", "b").stdout
    assert "differs training.batch_size: 32 → 64" in text


def test_other_cores_are_one_difference_and_not_three(timesink, tmp_path):
    for name, asked in (("a", None), ("b", 2)):
        cpu = {"model": "A CPU", "cores": 4, "cores_asked": asked, "cpus_chosen": asked and [0, 1]}
        make_run(tmp_path / name, cores=asked, machine={"cpu": cpu})
    text = timesink("compare", "a", "b").stdout
    assert [line for line in text.splitlines() if line.startswith("differs")] == [
        "differs machine.cores: – → 2"
    ]


def test_repetitions_are_compared_as_runs(timesink, tmp_path):
    for number, level in enumerate((20, 22, 21), 1):
        make_run(tmp_path / "a" / str(number), seed=number, conv_ms=level)
        make_run(tmp_path / "b" / str(number), seed=10 + number, conv_ms=level + 0.5)
        make_run(tmp_path / "c" / str(number), seed=20 + number, conv_ms=level + 10)
    alike = json.loads(timesink("compare", "a", "b", "--json").stdout)
    assert alike["before"]["runs"] == 3
    assert alike["verdict"]["change"] == "no change beyond noise"
    assert not any("one run each" in note for note in alike["notes"])
    slower = timesink("compare", "a", "c", "--fail-over", "5%")
    assert slower.returncode == 7
    assert "before  a: 3 runs, 240 steps, 60 traced" in slower.stdout
    singles = json.loads(timesink("compare", "a/1", "b/2", "--json").stdout)
    assert any("one run each" in note for note in singles["notes"])


def test_too_few_steps_are_said_to_be_too_few_and_cannot_pass_a_gate(timesink, tmp_path):
    make_run(tmp_path / "a", seed=1, count=8)
    make_run(tmp_path / "b", seed=2, count=8, conv_ms=60)
    done = timesink("compare", "a", "b")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].endswith(": too few steps to tell")
    gate = timesink("compare", "a", "b", "--fail-over", "5%")
    assert gate.returncode == 2
    assert "too few steps" in gate.stderr


def test_too_few_traced_steps_are_said_of_the_accounts_only(timesink, tmp_path):
    make_run(tmp_path / "a", seed=1, traced=range(41, 46))
    make_run(tmp_path / "b", seed=2, conv_ms=24.0, traced=range(41, 46))
    text = timesink("compare", "a", "b").stdout
    assert text.splitlines()[0].endswith(": slower")
    assert "accounts: too few steps to tell; each run needs 12 that were traced" in text


@pytest.mark.parametrize("name", ["ledger.parquet", "steps.csv"])
def test_a_file_that_cannot_be_read_is_one_line(timesink, tmp_path, name):
    make_run(tmp_path / "a", seed=1)
    (tmp_path / "a" / name).write_bytes(b"not this")
    done = timesink("compare", "a", "a")
    assert done.returncode == 4
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"timesink: a/{name}: cannot be read")


def test_a_journal_that_went_on_after_its_table_is_read_itself(timesink, tmp_path):
    make_run(tmp_path / "a", seed=1)
    table = tmp_path / "a" / "steps.csv"
    table.write_text("stale\n")
    os.utime(table, ns=(0, 0))
    found = json.loads(timesink("compare", "a", "a", "--json").stdout)
    assert found["before"]["steps"] == 80


def test_waits_that_were_not_measured_are_not_compared(timesink, tmp_path):
    table = make_run(tmp_path / "a", seed=1) / "steps.csv"
    pl.read_csv(table).with_columns(pl.lit(None).alias("data_ms")).write_csv(table)
    assert json.loads(timesink("compare", "a", "a", "--json").stdout)["data_ms"] is None
    done = timesink("compare", "a", "a")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("step") and "data wait" not in done.stdout


def test_a_directory_that_is_no_run_and_a_run_without_steps_are_one_line(timesink, tmp_path):
    make_run(tmp_path / "a", seed=1, count=0, traced=())
    for arguments in (("a", "a"), ("a", "b")):
        done = timesink("compare", *arguments)
        assert done.returncode == 4
        assert len(done.stderr.splitlines()) == 1
