"""The journal: whole lines come back, torn ones cost nothing else, a full disk is named."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timesink.errors import DiskFullError, RunFileError
from timesink.runs.journal import Event, Journal, Tail, parse_line, read_events


def journal_at(path, process=1, times=None):
    times = iter(times or range(0, 10**9, 1000))
    return Journal(path, process, 0, clock_ns=lambda: next(times))


def test_an_event_comes_back_as_it_was_written(tmp_path):
    log = tmp_path / "log.txt"
    journal_at(log, 3, [12_345_678_901]).write("step", loss=0.1, path="a\nb ü\udcff")
    assert list(read_events(log)) == [
        Event(12_345_678_901, 3, "step", {"loss": 0.1, "path": "a\nb ü\udcff"})
    ]


def test_a_loss_that_is_not_finite_comes_back(tmp_path):
    log = tmp_path / "log.txt"
    journal_at(log).write("step", loss=math.nan, top1=math.inf)
    (event,) = read_events(log)
    assert math.isnan(float(event.fields["loss"]))
    assert float(event.fields["top1"]) == math.inf


@given(st.integers(min_value=0))
def test_wherever_a_kill_tears_the_log_only_the_torn_line_is_lost(tmp_path_factory, cut):
    log = tmp_path_factory.mktemp("torn") / "log.txt"
    journal = journal_at(log)
    for iteration in range(5):
        journal.write("step", iteration=iteration, text="x" * iteration)
    whole = log.read_bytes()
    cut = cut % (len(whole) + 1)
    log.write_bytes(whole[:cut])
    journal_at(log, 2).write("process_started", utc="now")
    events = list(read_events(log))
    survivors = whole[:cut].count(b"\n")
    assert [event.fields["iteration"] for event in events[:-1]] in (
        list(range(survivors)),
        list(range(survivors + 1)),  # only its newline was missing
    )
    assert events[-1].name == "process_started"


@given(st.binary(max_size=80))
def test_no_line_whatever_breaks_the_reader(line):
    parse_line(line)
    parse_line(line + b"\n")


def test_the_tail_gives_whole_lines_only(tmp_path):
    log = tmp_path / "log.txt"
    log.touch()
    tail = Tail(log)
    with log.open("ab", buffering=0) as file:
        file.write(b'1.000000000 1 step {"a": 1}\n2.000000000 1 st')
        assert [event.fields for event in tail.new_events()] == [{"a": 1}]
        file.write(b'ep {"a": 2}\n')
        assert [event.fields for event in tail.new_events()] == [{"a": 2}]
    tail.close()


def test_a_full_disk_is_named():
    with pytest.raises(DiskFullError, match="the disk is full"):
        Journal(Path("/dev/full"), 1, 0).write("step", iteration=1)


def test_a_log_that_cannot_be_read_is_one_line(tmp_path):
    with pytest.raises(RunFileError, match="cannot be read"):
        list(read_events(tmp_path / "none.txt"))
