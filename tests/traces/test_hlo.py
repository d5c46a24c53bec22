"""What a compiled instruction is made of."""

from pathlib import Path

import pytest

from tests.traces.planes import Program, Trace
from timesink.traces.events import Member, Name


def read(trace: Trace, folder: Path, *instructions: str, module: str = "m") -> dict[str, tuple]:
    """Let the instructions run, and give each its members."""
    line = trace.host().line("tf_numa_-1_Eigen/1")
    for instruction in instructions:
        line.event(instruction, 0, 1, hlo_op=instruction, hlo_module=module, program_id=1)
    hlo = trace.read(folder).hlo
    assert all(sum(part.weight for part in parts) == pytest.approx(1) for parts in hlo.values())
    return {name.text: parts for name, parts in hlo.items() if name.type == module}


def test_an_instruction_of_its_own_has_one_member(tmp_path: Path) -> None:
    trace = Trace()
    entry = trace.program("m").computation("main")
    entry.add("tanh.1", "tanh", "net/act/Tanh", shape=(8,))
    entry.add("never.ran", "tanh", "net/act/Tanh_1", shape=(8,))
    assert read(trace, tmp_path, "tanh.1") == {"tanh.1": (Member("net/act/Tanh", 1.0),)}


def test_the_members_of_a_fusion_are_weighted_by_the_bytes_they_make(tmp_path: Path) -> None:
    trace = Trace()
    program = trace.program("m")
    fused = program.computation("fused")
    argument = fused.add("p", "parameter", "XLA_Args", shape=(100,))
    total = fused.add("a", "add", "net/bias/Add", shape=(100,), operands=(argument,))
    largest = fused.add("b", "maximum", "net/act/Relu", shape=(100,), operands=(total,))
    fused.add("c", "multiply", "net/bias/Add", shape=(100,), operands=(largest,))
    fused.add("d", "slice", "net/cut/Slice", shape=(100,), element_type=10)
    fused.add("e", "constant", "net/five/Const", shape=(1000,))
    fused.add("f", "broadcast", "net/wide/Tile", shape=(100, 100))
    program.computation("main").add("fusion.1", "fusion", "net/act/Relu", calls=(fused,))
    (members,) = read(trace, tmp_path, "fusion.1").values()
    assert {part.path: part.weight for part in members} == {
        "net/bias/Add": pytest.approx(8 / 14),
        "net/act/Relu": pytest.approx(4 / 14),
        "net/cut/Slice": pytest.approx(2 / 14),
    }


def test_a_product_is_weighted_by_its_floating_point_operations(tmp_path: Path) -> None:
    trace = Trace()
    program = trace.program("m")
    fused = program.computation("fused")
    left = fused.add("x", "parameter", shape=(4, 50))
    right = fused.add("w", "parameter", shape=(50, 10))
    product = fused.add(
        "dot", "dot", "net/fc/MatMul", shape=(4, 10), operands=(left, right), contracts=(1,)
    )
    fused.add("add", "add", "net/fc/BiasAdd", shape=(4, 10), operands=(product,))
    program.computation("main").add("fusion.1", "fusion", calls=(fused,))
    (members,) = read(trace, tmp_path, "fusion.1").values()
    assert {part.path: part.weight for part in members} == {
        "net/fc/MatMul": pytest.approx(4000 / 4160),
        "net/fc/BiasAdd": pytest.approx(160 / 4160),
    }


def test_a_convolution_is_weighted_by_its_floating_point_operations(tmp_path: Path) -> None:
    trace = Trace()
    program = trace.program("m")
    fused = program.computation("fused")
    images = fused.add("x", "parameter", shape=(2, 8, 8, 3))
    kernel = fused.add("w", "parameter", shape=(3, 3, 3, 16))
    made = fused.add(
        "conv",
        "convolution",
        "net/conv/Conv2D",
        shape=(2, 8, 8, 16),
        operands=(images, kernel),
        filters_at=3,
    )
    fused.add("add", "add", "net/conv/BiasAdd", shape=(2, 8, 8, 16), operands=(made,))
    program.computation("main").add("fusion.1", "fusion", calls=(fused,))
    (members,) = read(trace, tmp_path, "fusion.1").values()
    outputs = 2 * 8 * 8 * 16
    operations, written = 2 * outputs * 3 * 3 * 3, 4 * outputs
    assert members[0] == Member(
        "net/conv/Conv2D", pytest.approx(operations / (operations + written))
    )


def test_a_reduction_is_weighted_by_what_it_reads(tmp_path: Path) -> None:
    trace = Trace()
    program = trace.program("m")
    adder = program.computation("adder")
    adder.add("sum", "add", "nobody")
    fused = program.computation("fused")
    argument = fused.add("p", "parameter", shape=(100,))
    doubled = fused.add("twice", "add", "net/twice", shape=(100,), operands=(argument,))
    fused.add("r", "reduce", "net/mean", shape=(1,), operands=(doubled,), calls=(adder,))
    program.computation("main").add("fusion.1", "fusion", calls=(fused,))
    (members,) = read(trace, tmp_path, "fusion.1").values()
    assert members == (Member("net/twice", 0.5), Member("net/mean", 0.5))


def test_a_call_holds_what_its_fusions_hold(tmp_path: Path) -> None:
    trace = Trace()
    program = trace.program("m")
    fused = program.computation("fused")
    fused.add("a", "add", "net/a", shape=(3,))
    body = program.computation("body")
    body.add("fusion.2", "fusion", "net/other", shape=(3,), calls=(fused,))
    body.add("b", "exponential", "net/b", shape=(1,))
    program.computation("main").add("call.1", "call", calls=(body,))
    (members,) = read(trace, tmp_path, "call.1").values()
    assert members == (Member("net/a", 0.75), Member("net/b", 0.25))


def test_a_copy_that_xla_added_is_for_the_sake_of_its_user(tmp_path: Path) -> None:
    trace = Trace()
    entry = trace.program("m").computation("main")
    kernel = entry.add("arg", "parameter", "XLA_Args", shape=(9,))
    copy = entry.add("copy.1", "copy", shape=(9,), operands=(kernel,))
    turned = entry.add("turned", "transpose", shape=(9,), operands=(copy,))
    made = entry.add("conv", "convolution", "net/conv", shape=(9,), operands=(turned,))
    entry.add("copy.2", "copy", "XLA_Retvals", shape=(9,), operands=(made,))
    found = read(trace, tmp_path, "copy.1", "copy.2")
    assert found["copy.1"] == (Member("net/conv", 1.0),)
    assert found["copy.2"] == (Member("net/conv", 1.0),)


def test_what_has_no_name_in_a_fusion_goes_by_the_fusion_s(tmp_path: Path) -> None:
    trace = Trace()
    program = trace.program("m")
    fused = program.computation("fused")
    fused.add("t", "transpose", shape=(9,))
    program.computation("main").add("fusion.1", "fusion", "net/conv", calls=(fused,))
    assert read(trace, tmp_path, "fusion.1")["fusion.1"] == (Member("net/conv", 1.0),)


def test_an_instruction_that_nobody_can_name_has_an_empty_path(tmp_path: Path) -> None:
    trace = Trace()
    trace.program("m").computation("main").add("copy.1", "copy", shape=(9,))
    assert read(trace, tmp_path, "copy.1")["copy.1"] == (Member("", 1.0),)


def test_two_programs_of_one_module_name_are_told_apart(tmp_path: Path) -> None:
    trace = Trace()

    def compile_for(program: Program, path: str) -> None:
        program.computation("main").add("fusion.1", "tanh", path, shape=(9,))

    compile_for(trace.program("m", 1), "net/whole_batch")
    compile_for(trace.program("m", 2), "net/last_batch")
    compile_for(trace.program("other", 3), "net/other")
    line = trace.host().line("one")
    for module, ident in (("m", 1), ("m", 2), ("other", 3)):
        line.event("fusion.1", 0, 1, hlo_op="fusion.1", hlo_module=module, program_id=ident)
    events = trace.read(tmp_path)
    assert {
        events.names[index]: events.hlo[events.names[index]][0].path for index in events.name
    } == {
        Name("fusion.1", "m(1)"): "net/whole_batch",
        Name("fusion.1", "m(2)"): "net/last_batch",
        Name("fusion.1", "other"): "net/other",
    }


def test_a_program_that_calls_itself_is_read_once(tmp_path: Path) -> None:
    trace = Trace()
    program = trace.program("m")
    body = program.computation("body")
    body.add("a", "add", "net/a", shape=(3,))
    body.add("again", "call", calls=(body,))
    program.computation("main").add("call.1", "call", calls=(body,))
    assert read(trace, tmp_path, "call.1")["call.1"] == (Member("net/a", 1.0),)
