"""machine.cores: every process of a run or a measurement is kept to them, and the run proves it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.runs.conftest import make_workplace
from timesink import machine
from timesink.cli import cli
from timesink.experiment import load
from timesink.runs.cpu_time import TICK_S
from timesink.runs.directory import RunDirectory
from timesink.runs.journal import Journal, read_events
from timesink.runs.supervisor import child_environment

LIMIT_S = 240
CHOSEN = machine.chosen_cpus(1)

LOOKS = """
import atexit, json, os, pathlib, sys
at_start = sorted(os.sched_getaffinity(0))

def look(pid=os.getpid()):
    if os.getpid() != pid:
        return
    threads = {}
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            status = (task / "status").read_text()
        except OSError:
            continue
        (allowed,) = [line.split()[1] for line in status.splitlines() if "allowed_list" in line][:1]
        threads[task.name] = allowed
    name = next((word for word in sys.orig_argv if word.startswith("timesink.runs.")), None)
    if name:
        seen = {"module": name, "at_start": at_start, "threads": threads}
        seen["omp"] = os.environ.get("OMP_NUM_THREADS")
        (pathlib.Path(os.environ["SEEN"]) / f"{os.getpid()}.json").write_text(json.dumps(seen))

atexit.register(look)
"""
"""Put into every interpreter: where it may run before its first import, and each thread at its end.

`Cpus_allowed_list` stands in a status before `Mems_allowed_list`.
"""

LATE = """
from pathlib import Path
if not Path("ready").exists():
    raise OSError("the network is not ready")
"""


def start(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (place / "seen").mkdir(exist_ok=True)
    (place / "looks").mkdir(exist_ok=True)
    (place / "looks" / "sitecustomize.py").write_text(LOOKS)
    inherited = os.environ.get("PYTHONPATH")
    paths = [str(place / "looks"), *([inherited] if inherited else [])]
    environment = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    return subprocess.run(
        [sys.executable, "-m", "timesink", *arguments],
        cwd=place,
        env={**environment, "PYTHONPATH": os.pathsep.join(paths), "SEEN": str(place / "seen")},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


def seen_in(place: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in (place / "seen").iterdir()]


def assert_confined(seen: list[dict]) -> None:
    for each in seen:
        assert each["at_start"] == list(CHOSEN), each["module"]
        assert set(each["threads"].values()) == {str(CHOSEN[0])}, each["module"]
        assert each["omp"] == "1"


@pytest.fixture(scope="module")
def resumed(tmp_path_factory) -> Path:
    """A run on one core that failed at first, then went on, with a verdict at its end."""
    place = make_workplace(tmp_path_factory.mktemp("cores"))
    (place / "tiny.py").write_text(LATE + (place / "tiny.py").read_text())
    settings = ("machine.cores=1", "profile.mode=window", "profile.verdict=true")
    words = [word for setting in settings for word in ("--set", setting)]
    failed = start(place, "run", "mine.toml", "--out", "out", *words)
    assert "the network is not ready" in failed.stderr, failed.stderr
    (place / "ready").touch()
    done = start(place, "run", "--resume", "out")
    assert done.returncode == 0, done.stderr
    return place


def test_the_training_processes_and_the_probes_are_on_the_chosen_cpus(resumed):
    seen = seen_in(resumed)
    assert sorted(each["module"] for each in seen) == [
        *["timesink.runs.probe"] * 2,
        *["timesink.runs.worker"] * 2,
    ]
    assert_confined(seen)
    assert all(len(each["threads"]) > 1 for each in seen)  # TensorFlow's own among them


def test_the_journal_and_machine_json_tell_the_cores(resumed):
    events = list(read_events(resumed / "out" / "log.txt"))
    started = [event.fields for event in events if event.name == "process_started"]
    assert [(each["cores"], each["cpus"]) for each in started] == [(1, list(CHOSEN))] * 2
    facts = json.loads((resumed / "out" / "machine.json").read_text())["cpu"]
    assert (facts["cores_asked"], facts["cpus_chosen"]) == (1, list(CHOSEN))
    assert facts["cores"] == machine.cores()
    assert load(resumed / "out" / "experiment.toml").machine.cores == 1


def test_tensorflow_s_thread_pools_have_a_thread_a_core(resumed):
    events = read_events(resumed / "out" / "log.txt")
    (network,) = [event.fields for event in events if event.name == "network"]
    assert network["threads"] == {"inter_op": 1, "intra_op": 1}


def test_no_process_had_more_cpu_time_than_its_core(resumed):
    cpu = RunDirectory(resumed / "out").summary()["cpu"]
    assert cpu["cores"] == 1 and cpu["within"] is True
    assert 0 < cpu["cpu_s"] <= cpu["wall_s"] + 2 * TICK_S
    assert cpu["share"] == pytest.approx(cpu["cpu_s"] / cpu["wall_s"])
    probes = [event for event in read_events(resumed / "out" / "log.txt") if event.name == "probe"]
    for probe in probes:
        wall_s = probe.fields["wall_ns"] / 1e9
        assert probe.fields["cpu_s"] < probe.fields["process_cpu_s"] <= wall_s + TICK_S


def test_show_says_what_of_the_core_was_used(resumed):
    cpu = RunDirectory(resumed / "out").summary()["cpu"]
    shown = CliRunner().invoke(cli, ["show", str(resumed / "out")]).output
    line = f"CPU time      {cpu['cpu_s']:.1f} s of 1 core × {cpu['wall_s']:.1f} s ("
    assert line in shown
    assert "more than" not in shown[shown.index(line) :].partition("\n\n")[0]


def test_show_says_where_a_run_had_more_than_its_cores(tmp_path):
    log = Journal(tmp_path / "log.txt", 1, 0)
    log.write("run", experiment={"name": "x", "training": {"network": "n"}}, machine={})
    log.write("process_started", utc="now", cores=2, cpus=[0, 1])
    log.write("process_ended", exit=0, wall_ns=10**10, peak_memory_bytes=1, cpu_s=30.0)
    log.close()
    shown = CliRunner().invoke(cli, ["show", str(tmp_path)]).output
    assert "CPU time      30.0 s of 2 cores × 10.0 s (150 %)\nnote: that is more than" in shown


def test_the_pipeline_and_its_prefixes_are_measured_on_the_chosen_cpus(tmp_path):
    place = make_workplace(tmp_path)
    done = start(
        place,
        *("pipeline", "mine.toml", "--set", "machine.cores=1", "--seconds", "0.3", "--json"),
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["cores"] == 1
    assert facts["cores_used"] <= 1 + TICK_S / facts["measured_s"]
    seen = seen_in(place)
    assert [each["module"] for each in seen] == ["timesink.runs.measurer"] * 2
    assert_confined(seen)


def test_without_a_number_a_run_may_use_all(workplace):
    settings = ("--set", "training.iterations=2", "--set", "training.validation=false")
    done = start(workplace, "run", "mine.toml", "--out", "out", *settings)
    assert done.returncode == 0, done.stderr
    (seen,) = seen_in(workplace)
    assert seen["at_start"] == sorted(os.sched_getaffinity(0))
    assert seen["omp"] == str(machine.cores())
    assert RunDirectory(workplace / "out").summary()["cpu"]["cores"] == machine.cores()


def test_a_user_s_own_number_of_threads_stays(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert child_environment(1)["OMP_NUM_THREADS"] == "7"


@pytest.mark.parametrize("command", [["run"], ["pipeline"]])
def test_more_cores_than_there_are_are_refused_before_anything_is_written(
    command, tmp_path, timesink
):
    there = machine.cores()
    done = timesink(*command, "--set", f"machine.cores={there + 1}", "--out", "out")
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert re.search(rf"machine\.cores: found {there + 1}, allowed: at most {there}\b", line)
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_not_resumed_where_there_are_fewer_cores(tmp_path, timesink):
    (tmp_path / "out").mkdir()
    log = Journal(tmp_path / "out" / "log.txt", 1, 0)
    log.write("run", experiment={"machine": {"cores": machine.cores() + 1}}, machine={})
    log.close()
    before = (tmp_path / "out" / "log.txt").read_text()
    done = timesink("run", "--resume", "out")
    assert done.returncode == 2
    assert f"allowed: at most {machine.cores()}" in done.stderr
    assert (tmp_path / "out" / "log.txt").read_text() == before
    assert not (tmp_path / "out" / "experiment.toml").exists()
