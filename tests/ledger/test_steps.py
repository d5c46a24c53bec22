"""Where steps begin and end on a trace's clock."""

import pytest

from tests.ledger.timeline import Timeline
from timesink.ledger.steps import spans_from_journal, spans_from_trace
from timesink.traces.events import Kind


def spans(found):
    columns = (found.iteration, found.begin_ns, found.end_ns)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_a_marked_step_runs_to_the_next_ones_beginning():
    line = Timeline().step(7, 100, 180).step(8, 200, 290).step(9, 300, 390)
    found = spans_from_trace(line.events())
    assert spans(found) == [(7, 100, 200), (8, 200, 300), (9, 300, 390)]
    assert (found.source, found.name) == ("markers", "train")


def test_of_several_kinds_of_markers_the_one_that_took_longest_is_the_step():
    line = Timeline().step(1, 0, 500).step(2, 500, 900)
    for begin_ns in (100, 600):
        line.add(Kind.STEP, "evaluate", begin_ns, begin_ns + 50, number=99)
    assert spans(spans_from_trace(line.events())) == [(1, 0, 500), (2, 500, 900)]


def test_without_markers_a_step_is_a_call_of_the_function_that_took_longest():
    line = (
        Timeline().call("multi_step", 0, 400).call("reset", 400, 410).call("multi_step", 450, 800)
    )
    found = spans_from_trace(line.events())
    assert spans(found) == [(1, 0, 450), (2, 450, 800)]
    assert (found.source, found.name) == ("calls", "multi_step")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_call_within_a_call_of_the_same_function_is_no_step(order):
    line = Timeline().call("step", 0, 400).call("step", 0, 300)
    assert spans(spans_from_trace(line.events(order))) == [(1, 0, 400)]


def test_without_calls_the_ops_of_the_whole_file_are_one_step():
    line = Timeline().op("a/Mul", 100, 200).op("b/Mul", 300, 700)
    line.add(Kind.MEMORY, "cpu", 0, 0, number=5)
    found = spans_from_trace(line.events())
    assert spans(found) == [(1, 100, 700)]
    assert found.source == "whole file"


def test_the_journals_steps_come_onto_the_traces_clock_by_the_tightest_marker():
    line = Timeline()
    line.step(5, 1_000_030, 1_000_900, host_ns=0)  # 30 ns later than the clock was read
    line.step(6, 1_001_010, 1_001_900, host_ns=1000)  # 10 ns later
    found = spans_from_journal(line.events(), [(5, 0, 1000), (6, 1000, 1950)])
    assert spans(found) == [(5, 1_000_010, 1_001_010), (6, 1_001_010, 1_001_960)]
    assert found.source == "journal"


def test_where_two_runs_were_written_into_one_journal_no_instant_is_in_two_steps():
    line = Timeline().step(5, 1000, 1900, host_ns=0)
    found = spans_from_journal(line.events(), [(5, 0, 1000), (5, 400, 1200)])
    assert spans(found) == [(5, 1000, 1400), (5, 1400, 2200)]


def test_steps_of_the_journal_that_the_trace_does_not_hold_are_left_out():
    line = Timeline().step(5, 1000, 1900, host_ns=0)
    found = spans_from_journal(line.events(), [(4, -1000, 0), (5, 0, 1000), (6, 1000, 2000)])
    assert spans(found) == [(5, 1000, 2000)]


def test_markers_that_carry_no_clock_cannot_be_tied_to_the_journal():
    assert spans_from_journal(Timeline().step(1, 0, 10).events(), [(1, 0, 10)]) is None
