"""The table of stages: work of a trace, CPU time of prefixes, and what neither saw."""

import pytest

from timesink.analysis.stages import by_stage, operations_in, prefix_differences, stage_rows
from timesink.ledger.stages import PipelineWork, StageWork


def work(*stages, unplaced=()):
    busy_ns = sum(ns for _, ns, _ in stages) + sum(ns for _, ns, _ in unplaced)
    rows = tuple(StageWork(stage, ns, calls, "stage") for stage, ns, calls in stages)
    return PipelineWork(10_000_000, busy_ns, 0, rows, tuple(unplaced))


PREFIXES = [
    {"stage": "read", "cpu_ms_per_image": 0.1, "bytes_out": 1000.0},
    {"stage": "decode", "cpu_ms_per_image": 1.1, "bytes_out": 5000.0},
    {"stage": "clip", "cpu_ms_per_image": 1.0, "bytes_out": 5000.0},
    {"stage": "batch", "cpu_ms_per_image": 1.3, "bytes_out": 5000.0},
]


def test_a_stage_costs_what_its_prefix_costs_more_than_the_one_before():
    costs = prefix_differences(PREFIXES)
    assert costs["decode"]["cpu_ms_per_image"] == pytest.approx(1.0)
    assert (costs["decode"]["bytes_in"], costs["decode"]["bytes_out"]) == (1000.0, 5000.0)
    assert costs["batch"]["cpu_ms_per_image"] == pytest.approx(0.3)


def test_noise_makes_no_stage_negative():
    assert prefix_differences(PREFIXES)["clip"]["cpu_ms_per_image"] == 0.0


def test_work_is_given_an_image_with_its_share_and_threads():
    table = stage_rows(work(("read", 1_000_000, 10), ("decode", 3_000_000, 10)), images=10)
    read, decode = table["stages"]
    assert read["work_ms_per_image"] == pytest.approx(0.1)
    assert decode["share"] == pytest.approx(0.75)
    assert decode["parallelism"] == pytest.approx(0.3)
    assert decode["cpu_ms_per_image"] is None
    assert table["closure"] == 1.0


def test_a_stage_too_cheap_to_be_traced_stands_in_its_place_without_work():
    table = stage_rows(work(("read", 10, 1), ("decode", 30, 1), ("batch", 20, 1)), 1, PREFIXES)
    assert [row["stage"] for row in table["stages"]] == ["read", "decode", "clip", "batch"]
    clip = table["stages"][2]
    assert clip["work_ms_per_image"] is None
    assert clip["cpu_ms_per_image"] == 0.0


def test_what_is_of_no_stage_is_listed_and_lowers_the_closure():
    table = stage_rows(work(("read", 60, 1), unplaced=[("odd:Odd", 40, 4)]), images=2)
    assert table["closure"] == pytest.approx(0.6)
    assert table["unplaced"] == [{"name": "odd:Odd", "work_ms_per_image": 20e-6, "calls": 4}]


DRAWN = work(
    ("decode", 500_000, 10),
    ("randaugment", 100_000, 10),
    ("randaugment.rotate", 300_000, 3),
    ("randaugment.invented", 50_000, 1),
    ("batch", 50_000, 1),
)
KNOWN = ("decode", "randaugment", "randaugment.identity", "randaugment.rotate", "batch")


def test_an_operation_has_how_often_an_image_met_it_and_what_it_took_each_time():
    rows = {row["stage"]: row for row in stage_rows(DRAWN, 10, known=KNOWN)["stages"]}
    rotate = rows["randaugment.rotate"]
    assert rotate["calls_per_image"] == pytest.approx(0.3)
    assert rotate["ms_per_call"] == pytest.approx(0.1)
    assert rotate["work_ms_per_image"] == pytest.approx(0.03)
    never = rows["randaugment.identity"]
    assert (never["calls_per_image"], never["work_ms_per_image"], never["share"]) == (None, None, 0)


def test_a_stage_has_the_work_of_its_operations():
    rows = stage_rows(DRAWN, 10, PREFIXES, KNOWN)["stages"]
    whole = {row["stage"]: row for row in by_stage(rows)}
    assert "randaugment.rotate" not in whole
    assert whole["randaugment"]["work_ms_per_image"] == pytest.approx(0.04)
    assert whole["randaugment"]["share"] == pytest.approx(0.4)
    assert whole["decode"]["cpu_ms_per_image"] == pytest.approx(1.0)
    assert "randaugment.invented" in whole  # a dot alone makes no operation
    assert sum(row["share"] for row in whole.values()) == pytest.approx(1.0)


def test_operations_are_found_by_the_stage_that_drew_them():
    found = operations_in(stage_rows(DRAWN, 10, known=KNOWN)["stages"])
    assert list(found) == ["randaugment"]
    assert {row["stage"] for row in found["randaugment"]} == {"identity", "rotate"}
