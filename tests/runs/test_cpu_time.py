"""The CPU time of a run beside what its cores had, from the journal."""

import pytest

from timesink.runs.cpu_time import cpu_facts
from timesink.runs.journal import Event
from timesink.runs.record import record_of

S = 1_000_000_000


def process(number, *, cores=2, cpu_s=15.0, wall_s=10):
    started = {"utc": "now"} | ({"cores": cores} if cores else {})
    yield Event(0, number, "process_started", started)
    ended = {"wall_ns": wall_s * S, "exit": 0, "peak_memory_bytes": 1}
    if cpu_s is not None:
        ended["cpu_s"] = cpu_s
    yield Event(wall_s * S, number, "process_ended", ended)


def facts_of(*processes):
    return cpu_facts(record_of(event for events in processes for event in events))


def test_cpu_time_is_a_share_of_what_the_cores_had():
    expected = {"cores": 2, "cpu_s": 15.0, "wall_s": 10.0, "share": 0.75, "within": True}
    assert facts_of(process(1)) == expected


def test_probes_after_the_training_are_not_its_wall_time():
    found = {"kind": "input", "begin_ns": 10 * S, "wall_ns": 90 * S}
    probe = Event(100 * S, 1, "probe", found)
    assert facts_of(process(1), [probe])["wall_s"] == 10


def test_more_than_the_cores_had_is_not_within():
    assert facts_of(process(1, cores=1, cpu_s=10.02))["within"] is False
    assert facts_of(process(1, cores=1, cpu_s=10.01))["within"] is True  # a tick of the clock


def test_the_processes_of_a_resumed_run_are_summed():
    found = facts_of(process(1), process(2, cpu_s=3.0, wall_s=5))
    assert found["cpu_s"] == 18 and found["wall_s"] == 15
    assert found["share"] == pytest.approx(0.6)


def test_one_process_that_had_too_much_is_not_made_good_by_another():
    assert facts_of(process(1, cores=1, cpu_s=12.0), process(2, cores=1, cpu_s=1.0)) == {
        "cores": 1,
        "cpu_s": 13.0,
        "wall_s": 20.0,
        "share": 0.65,
        "within": False,
    }


def test_a_run_resumed_where_there_were_more_cores_is_held_against_what_each_process_had():
    found = facts_of(process(1, cores=2), process(2, cores=8, cpu_s=35.0))
    assert found["share"] == pytest.approx(0.5)
    assert found["cores"] == 8


def test_where_the_end_was_not_seen_there_is_nothing_to_say():
    killed = [Event(0, 1, "process_started", {"utc": "now", "cores": 2})]
    assert facts_of(killed) is None
    assert facts_of(process(1, cpu_s=None)) is None  # of a version that did not write it
    assert facts_of(process(1, cores=None)) is None  # in somebody else's process
    assert facts_of(killed, process(2))["wall_s"] == 10
