"""Cores: how many there are, which CPUs a number of them means, and a child kept to them."""

import os
import subprocess
import sys
import threading

import pytest

from timesink import machine
from timesink.errors import ExperimentError


def with_quota(root, quota):
    (root / "sys/fs/cgroup").mkdir(parents=True)
    (root / "sys/fs/cgroup/cpu.max").write_text(quota)
    return root


def with_siblings(root, *cores):
    """Lay out which CPUs are hyper-threads of one core, as `0,4` or `0-1`."""
    for core in cores:
        for cpu in core:
            place = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
            place.mkdir(parents=True)
            (place / "thread_siblings_list").write_text(",".join(map(str, core)) + "\n")
    return root


def test_a_quota_leaves_fewer_cores_than_the_mask(tmp_path):
    assert machine.cores(with_quota(tmp_path, "100000 100000")) == 1


def test_a_quota_gives_no_more_cores_than_the_mask(tmp_path):
    root = with_quota(tmp_path, "999900000 100000")
    assert machine.cores(root) == len(os.sched_getaffinity(0))


def test_whole_cores_are_taken_before_second_threads_of_one(tmp_path):
    root = with_siblings(tmp_path, (0, 4), (1, 5), (2, 6), (3, 7))
    assert machine.spread_over_cores(range(8), root) == tuple(range(8))
    beside = with_siblings(tmp_path / "beside", (0, 1), (2, 3), (4, 5))
    assert machine.spread_over_cores(range(6), beside) == (0, 2, 4, 1, 3, 5)


def test_only_cpus_of_the_mask_are_chosen(tmp_path):
    root = with_siblings(tmp_path, (0, 1), (2, 3), (4, 5))
    assert machine.spread_over_cores({5, 3, 2}, root) == (2, 5, 3)


def test_without_a_topology_cpus_are_taken_by_number(tmp_path):
    assert machine.spread_over_cores({7, 3, 5}, tmp_path) == (3, 5, 7)


def test_no_number_is_no_choice():
    assert machine.chosen_cpus(None) is None


def test_all_cores_are_all_cpus():
    there = machine.cores()
    chosen = machine.chosen_cpus(there)
    assert len(chosen) == there
    assert set(chosen) <= os.sched_getaffinity(0)
    assert machine.chosen_cpus(1) == chosen[:1]


def test_more_than_there_are_is_refused_with_both_numbers():
    there = machine.cores()
    expected = rf"machine\.cores: found {there + 1}, allowed: at most {there}, "
    with pytest.raises(ExperimentError, match=expected):
        machine.chosen_cpus(there + 1)


def test_where_processes_cannot_be_kept_to_cores_that_is_said(monkeypatch):
    monkeypatch.delattr(os, "sched_setaffinity")
    with pytest.raises(ExperimentError, match=r"machine\.cores: found 1, .* needs Linux"):
        machine.chosen_cpus(1)


def test_only_what_is_started_meanwhile_is_confined():
    before, seen = os.sched_getaffinity(0), []
    look = [sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"]
    other = threading.Thread(target=lambda: (go.wait(30), seen.append(os.sched_getaffinity(0))))
    go = threading.Event()
    other.start()
    with machine.confined(machine.chosen_cpus(1)):
        child = subprocess.Popen(look, stdout=subprocess.PIPE, text=True)
        go.set()
        other.join(30)
    said, _ = child.communicate(timeout=30)
    assert said.strip() == str(list(machine.chosen_cpus(1)))
    assert os.sched_getaffinity(0) == before
    assert seen == [before]


def test_the_mask_is_put_back_where_the_start_fails():
    before = os.sched_getaffinity(0)
    with pytest.raises(FileNotFoundError), machine.confined(machine.chosen_cpus(1)):
        subprocess.Popen(["/no/such/program"])
    assert os.sched_getaffinity(0) == before
