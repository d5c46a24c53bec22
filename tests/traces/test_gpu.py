"""What is read off the streams of a GPU."""

from pathlib import Path

import pytest

from tests.traces.planes import Inline, Trace
from tests.traces.test_host import rows
from timesink.traces.events import Kind, Line, Name

STREAM = "Stream #14(Compute,MemcpyH2D)"


def test_a_kernel_is_the_op_that_launched_it(tmp_path: Path) -> None:
    trace = Trace()
    stream = trace.gpu(1).line(STREAM, start_ns=1000)
    stream.event("volta_sgemm", 1100, 1200, correlation_id=4, tf_op="net/fc/MatMul:MatMul")
    stream.event("volta_sgemm", 1300, 1400, correlation_id=5, tf_op=Inline("net/out/MatMul:MatMul"))
    events = trace.read(tmp_path)
    assert rows(events, Kind.OP) == [
        (Name("net/fc/MatMul", "MatMul"), 1100, 1200),
        (Name("net/out/MatMul", "MatMul"), 1300, 1400),
    ]
    assert events.lines[events.line[0]] == Line(STREAM, device="GPU:1")


def test_a_kernel_of_xla_is_its_instruction(tmp_path: Path) -> None:
    trace = Trace()
    stream = trace.gpu(0).line(STREAM)
    stream.event("k", 0, 9, tf_op="XlaModule:", hlo_op="fusion.3", hlo_module="m", program_id=2)
    assert rows(trace.read(tmp_path), Kind.HLO) == [(Name("fusion.3", "m"), 0, 9)]


def test_stats_may_stand_with_the_events_name(tmp_path: Path) -> None:
    trace = Trace()
    plane = trace.gpu(0).share("k", hlo_op="fusion.3", hlo_module="m")
    plane.line(STREAM).event("k", 0, 9)
    assert rows(trace.read(tmp_path), Kind.HLO) == [(Name("fusion.3", "m"), 0, 9)]


def test_a_kernel_nobody_named_goes_by_its_own_name(tmp_path: Path) -> None:
    trace = Trace()
    trace.gpu(0).line(STREAM).event("void cub::Reduce<float>(int)", 0, 9)
    assert rows(trace.read(tmp_path), Kind.OP) == [(Name("void cub::Reduce<float>(int)"), 0, 9)]


@pytest.mark.parametrize(
    ("name", "details", "kind", "type_"),
    [
        ("MemcpyH2D", "", Kind.COPY_IN, "MemcpyH2D"),
        ("MemcpyD2H", "", Kind.COPY_OUT, "MemcpyD2H"),
        ("MemcpyD2D", "", Kind.OP, "MemcpyD2D"),
        ("MemcpyP2P", "", Kind.OP, "MemcpyD2D"),
        ("MemcpyHtoD", "", Kind.COPY_IN, "MemcpyH2D"),
        ("copy", "kind_src:pinned kind_dst:device size:8", Kind.COPY_IN, "MemcpyH2D"),
        ("copy", "kind_src:device kind_dst:pageable size:8", Kind.COPY_OUT, "MemcpyD2H"),
        ("copy", "kind_src:device kind_dst:device size:8", Kind.OP, "MemcpyD2D"),
    ],
)
def test_a_copy_is_known_by_its_direction(
    tmp_path: Path, name: str, details: str, kind: Kind, type_: str
) -> None:
    trace = Trace()
    trace.gpu(0).line(STREAM).event(name, 0, 9, memcpy_details=details, tf_op="a/b:_Recv")
    events = trace.read(tmp_path)
    assert rows(events, kind) == [(Name("a/b", type_), 0, 9)]


@pytest.mark.parametrize(
    "line",
    [
        "XLA Modules",
        "XLA Ops",
        "Framework Name Scope",
        "TensorFlow Ops",
        "Steps",
        "Launch Stats",
        "Source code",
        "CUPTI overhead",
    ],
)
def test_derived_lines_are_passed_over(tmp_path: Path, line: str) -> None:
    trace = Trace()
    plane = trace.gpu(0)
    plane.line(line).event("a/b:MatMul", 0, 9, step_num=1)
    plane.line(STREAM).event("k", 0, 9)
    assert len(trace.read(tmp_path)) == 1


def test_the_drivers_own_memory_events_are_no_work_of_a_stream(tmp_path: Path) -> None:
    trace = Trace()
    trace.gpu(0).line(STREAM).event("MemoryAlloc", 0, 9).event("k", 0, 9)
    assert len(trace.read(tmp_path)) == 1
