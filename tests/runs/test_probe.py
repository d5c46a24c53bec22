"""Input alone and compute alone: measured in processes of their own, after the training."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from tests.runs.conftest import make_workplace, training_process, wait_for
from timesink.errors import RunError
from timesink.experiment import load
from timesink.runs import probing
from timesink.runs.directory import RunDirectory
from timesink.runs.journal import read_events
from timesink.runs.probe import measure

PROBE = "timesink.runs.probe"


class Clock:
    """Goes on by what each batch takes, in seconds; a third of it is CPU time."""

    def __init__(self, took_s, images=4):
        self.now_s, self.took_s, self.images = 0.0, iter(took_s), images

    def once(self):
        took_s = next(self.took_s, None)
        if took_s is None:
            return 0
        self.now_s += took_s
        return self.images

    def measure(self, kind="input", **options):
        return measure(
            self.once,
            kind,
            clock_ns=lambda: round(self.now_s * 1e9),
            cpu_ns=lambda: round(self.now_s * 1e9 / 3),
            **options,
        )


def test_warm_up_does_not_count():
    found = Clock([5.0, *[0.25] * 1000]).measure()
    assert found["images_per_s"] == pytest.approx(16)
    assert found["batches"] == 30
    assert found["batch_ms"] == pytest.approx({"median": 250, "p95": 250})
    assert found["wall_s"] == pytest.approx(7.5)
    assert found["cpu_s"] == pytest.approx(2.5)


def test_quick_batches_are_measured_for_three_seconds_and_slow_ones_for_ten():
    quick = Clock([0.01] * 10_000).measure()
    assert quick["wall_s"] == pytest.approx(3, abs=0.02)
    assert Clock([2.0] * 1000).measure()["wall_s"] == pytest.approx(10)
    assert Clock([60.0] * 3).measure("compute")["steps"] == 1


def test_fewer_steps_than_batches_are_enough():
    assert Clock([0.5] * 1000).measure("compute")["steps"] == 10


def test_an_epoch_that_is_made_as_a_whole_is_measured_as_a_whole():
    epoch = [9.0, *[0.0] * 9]
    found = Clock(epoch * 100).measure(warm_up=False, of=10)
    assert found["batches"] == 20
    assert found["images_per_s"] == pytest.approx(80 / 18)


def test_a_stream_that_ends_is_measured_as_far_as_it_goes():
    assert Clock([1.0] * 4).measure(warm_up=False)["batches"] == 4
    with pytest.raises(RunError, match="too few batches"):
        Clock([1.0] * 2).measure()


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """One whole run with a verdict."""
    workplace = make_workplace(tmp_path_factory.mktemp("verdict"))
    command = [sys.executable, "-m", "timesink", "run", "mine.toml", "--out", "out"]
    for setting in ("profile.mode=window", "profile.verdict=true"):
        command += ["--set", setting]
    return workplace / "out", subprocess.run(
        command,
        cwd=workplace,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def events_of(out, name):
    return [event for event in read_events(out / "log.txt") if event.name == name]


def test_a_run_ends_with_its_verdict(done):
    out, said = done
    assert said.returncode == 0, said.stderr
    assert said.stderr.index("measuring input alone") < said.stderr.index("measuring compute alone")
    verdict = json.loads((out / "summary.json").read_text())["verdict"]
    rates = [verdict[f"{side}_images_per_s"] for side in ("input", "compute", "both")]
    assert all(rate > 0 for rate in rates)
    assert verdict["bound"] in ("input", "compute", "balanced")
    last = said.stdout.rstrip().rpartition("\n\n")[2]
    assert " ".join(last.split()).startswith(" ".join(verdict["sentence"].split()))
    assert "First: " in last
    assert max(map(len, said.stdout.splitlines())) <= 80


def test_the_probes_are_in_the_journal_and_on_an_account_of_the_closed_ledger(done):
    out, _ = done
    probes = [event.fields for event in events_of(out, "probe")]
    assert [each["kind"] for each in probes] == ["input", "compute"]
    assert all(each["images_per_s"] > 0 and each["cpu_s"] > 0 for each in probes)
    (process,) = json.loads((out / "summary.json").read_text())["processes"]
    accounts = process["accounts_ns"]
    assert sum(accounts.values()) == round(process["wall_s"] * 1e9)
    assert accounts["probe"] >= sum(each["wall_ns"] for each in probes)
    ledger = pl.read_parquet(out / "ledger.parquet").filter(scope="run", account="probe")
    assert ledger["charged_ns"].to_list() == [accounts["probe"]]


def test_the_probes_write_nothing_and_change_nothing(done):
    out, _ = done
    assert {path.name for path in out.iterdir()} == {
        *("experiment.toml", "machine.json", "log.txt", "opmap.json", ".lock"),
        *("steps.csv", "summary.csv", "summary.json", "ledger.parquet"),
        *("layers.csv", "memory.csv", "stages.csv", "profile", "checkpoints"),
    }
    (started,) = events_of(out, "process_started")
    began_s = datetime.fromisoformat(started.fields["utc"]).timestamp()
    probing_s = began_s + events_of(out, "probe")[0].fields["begin_ns"] / 1e9
    trained = [out / "opmap.json", *(out / "checkpoints").rglob("*"), *(out / "profile").rglob("*")]
    assert max(path.stat().st_mtime for path in trained) < probing_s


def test_the_stages_stand_beside_the_ledger(done):
    out, said = done
    summary = json.loads((out / "summary.json").read_text())
    rows = {row["stage"]: row for row in summary["stages"]}
    assert {"read", "decode"} <= set(rows)  # the others may be too cheap to be traced
    assert rows["decode"]["work_ms_per_image"] > 0
    assert rows["decode"]["cpu_ms_per_image"] is None
    busy = sum(row["share"] for row in rows.values())
    unplaced_ms = sum(row["work_ms_per_image"] for row in summary["stages_unplaced"])
    work_ms = sum(row["work_ms_per_image"] for row in rows.values())
    assert busy == pytest.approx(work_ms / (work_ms + unplaced_ms))
    table = pl.read_csv(out / "stages.csv")
    assert table["stage"].to_list() == list(rows)
    per_step = summary["input_per_step"]
    assert per_step["work_ms"] == pytest.approx(8 * (work_ms + unplaced_ms))
    waited = sum(row["charged_ms"] for row in summary["accounts"] if row["account"] == "input_wait")
    assert per_step["wait_ms"] == pytest.approx(waited)
    assert f"the step waited {waited:,.2f} ms for its images, which need" in said.stdout


def test_collect_makes_the_same_again(done, timesink):
    out, _ = done
    tables = ("summary.json", "stages.csv", "steps.csv", "ledger.parquet")
    before = {name: (out / name).read_bytes() for name in tables}
    for name in tables:
        (out / name).unlink()
    assert timesink("collect", str(out)).returncode == 0
    assert {name: (out / name).read_bytes() for name in tables} == before


def test_ctrl_c_ends_the_probing_at_once_and_the_run_is_whole(started, workplace, timesink):
    process = started("profile.mode=window", "profile.verdict=true", "training.validation=false")
    out = workplace / "out"
    wait_for(out / "log.txt", "process_ended")
    probe = wait_for_probe(out)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert not Path(f"/proc/{probe}").exists()
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["status"], summary["verdict"]) == ("complete", None)
    assert summary["notes"] == ["no verdict: input alone could not be measured: interrupted"]
    assert "no verdict: input alone could not be measured: interrupted" in said
    assert (out / "ledger.parquet").is_file()
    assert "the run is complete" in timesink("run", "--resume", "out", cwd=workplace).stderr


def wait_for_probe(out):
    for _ in range(6000):
        try:
            return training_process(out, PROBE)
        except AssertionError:
            time.sleep(0.01)
    raise AssertionError("there was no probe")


@pytest.fixture
def asked(workplace):
    """A run's directory with its experiment, to be probed without having trained."""
    out = workplace / "out"
    out.mkdir()
    images = workplace / "images"
    RunDirectory(out).write_inputs(load(workplace / "mine.toml", [f"dataset.path={images}"]), {})
    return RunDirectory(out)


def probed(run, monkeypatch, *kinds):
    monkeypatch.chdir(run.path.parent)
    monkeypatch.setattr(probing, "PROBES", kinds)
    said = []
    assert probing.probe(run, 1, time.monotonic_ns(), said.append)
    return said, [event.fields for event in events_of(run.path, "probe")]


def test_images_that_are_gone_are_the_reason_and_the_other_probe_is_spared(asked, monkeypatch):
    (asked.path.parent / "images").rename(asked.path.parent / "elsewhere")
    said, (found,) = probed(asked, monkeypatch, "input", "compute")
    assert said == ["measuring input alone …"]
    assert "images" in found["failed"]
    assert found["wall_ns"] > 0


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        ("raise ValueError('not\\nagain')", "not"),
        ("import os; print('{}'); os.kill(os.getpid(), 9)", "its process was ended by SIGKILL"),
        ("import os; print('{}'); os._exit(3)", "its process ended with code 3"),
    ],
)
def test_a_probe_that_fails_or_is_killed_says_why(network, reason, asked, monkeypatch):
    (asked.path.parent / "tiny.py").write_text(f"def build(classes):\n    {network}\n")
    _, (found,) = probed(asked, monkeypatch, "compute")
    assert reason in found["failed"]
    assert "\n" not in found["failed"]


def test_a_probe_that_takes_too_long_is_ended(asked, monkeypatch):
    monkeypatch.setattr(probing, "TIME_LIMIT_S", 0.5)
    _, (found,) = probed(asked, monkeypatch, "input")
    assert found["failed"].startswith("it took longer than")
    with pytest.raises(AssertionError):
        training_process(asked.path, PROBE)


def test_a_probe_ends_with_its_parent(asked):
    script = (
        "from pathlib import Path; from timesink.runs.directory import RunDirectory; "
        "from timesink.runs.probing import probe; probe(RunDirectory(Path('out')), 1, 0, print)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=asked.path.parent)
    probe = wait_for_probe(asked.path)
    parent.kill()
    parent.wait()
    for _ in range(6000):
        if not Path(f"/proc/{probe}").exists():
            break
        time.sleep(0.01)
    else:
        raise AssertionError("the probe outlived its parent")
