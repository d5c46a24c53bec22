"""The table of stages: work of a trace, CPU time of prefixes, and what neither saw."""

import pytest

from timesink.analysis.stages import prefix_differences, stage_rows
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
