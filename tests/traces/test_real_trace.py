"""A trace that TensorFlow's profiler wrote: a tiny network, as a graph and compiled by XLA."""

import time
from collections.abc import Iterable
from pathlib import Path

import pytest
import tensorflow as tf
from tensorflow.compiler.xla import xla_data_pb2
from tensorflow.compiler.xla.service import hlo_pb2
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from tests.traces.test_host import rows
from timesink.traces import messages
from timesink.traces.events import Events, Kind, Name
from timesink.traces.xplane import find_traces, read_xplane

Row = tuple[Name, int, int]
GRAPH_STEPS, COMPILED_STEPS = (0, 1), (2, 3)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, int]]:
    """Train for a few steps: the trace, and the host clock's reading before each step."""
    kernel = tf.Variable(tf.random.stateless_normal((3, 3, 8, 32), seed=(1, 2)))
    images = tf.random.stateless_normal((8, 32, 32, 8), seed=(3, 4))

    def train() -> tf.Tensor:
        with tf.GradientTape() as tape:
            with tf.name_scope("net/conv"):
                made = tf.nn.relu(tf.nn.conv2d(images, kernel, 1, "SAME"))
            with tf.name_scope("loss"):
                loss = tf.reduce_mean(tf.square(made))
        kernel.assign_sub(0.1 * tape.gradient(loss, kernel))
        return loss

    graph_step = tf.function(train, autograph=False)
    compiled_step = tf.function(train, autograph=False, jit_compile=True)
    compiled_step()
    elements = iter(tf.data.Dataset.range(99).map(lambda number: number + 1).prefetch(2))
    folder = tmp_path_factory.mktemp("real")
    marks = {}
    profiler = tf.profiler.experimental
    options = profiler.ProfilerOptions(host_tracer_level=2, python_tracer_level=0)
    with profiler.Profile(str(folder), options):
        for number in (*GRAPH_STEPS, *COMPILED_STEPS):
            marks[number] = time.perf_counter_ns()
            with profiler.Trace("train", step_num=number, _r=1, host_ns=marks[number]):
                next(elements)
                (graph_step if number in GRAPH_STEPS else compiled_step)().numpy()
        kernel.numpy()  # the loss is there before the update is
    (path,) = find_traces(folder)
    return path, marks


@pytest.fixture(scope="module")
def events(recorded: tuple[Path, dict[int, int]]) -> Events:
    return read_xplane(recorded[0])


def in_time(found: Iterable[Row]) -> list[Row]:
    """By when they began; the table goes thread by thread."""
    return sorted(found, key=lambda row: row[1])


def test_steps_are_numbered_and_tied_to_the_host_clock(
    events: Events, recorded: tuple[Path, dict[int, int]]
) -> None:
    steps = events.kind == Kind.STEP
    assert events.number[steps].tolist() == [*GRAPH_STEPS, *COMPILED_STEPS]
    assert {events.names[index].text for index in events.name[steps]} == {"train"}
    assert events.marks == recorded[1]


def test_ops_of_the_graph_run_within_a_call_of_the_function(events: Events) -> None:
    ops = rows(events, Kind.OP)
    convolved = in_time(row for row in ops if row[0].text.endswith("net/conv/Relu"))
    calls = in_time(rows(events, Kind.FUNCTION))
    assert len(convolved) == len(GRAPH_STEPS)
    assert len(calls) == len(GRAPH_STEPS) + len(COMPILED_STEPS)
    for (_, begin_ns, end_ns), (name, called_ns, returned_ns) in zip(
        convolved, calls, strict=False
    ):
        assert name.text == "train"
        assert called_ns <= begin_ns < end_ns <= returned_ns


def test_only_the_function_traced_within_the_trace_is_called_retraced(events: Events) -> None:
    first_call = in_time(rows(events, Kind.FUNCTION))[0]
    assert events.retraced == (("train", first_call[1]),)


def test_waiting_for_an_element_is_seen_in_each_step(events: Events) -> None:
    waits = [row for row in rows(events, Kind.INPUT) if row[0].text.startswith("EagerLocal")]
    steps = in_time(rows(events, Kind.STEP))
    for (_, begin_ns, end_ns), step in zip(in_time(waits), steps, strict=True):
        assert step[1] <= begin_ns < end_ns <= step[2]


def test_allocators_say_what_is_in_use(events: Events) -> None:
    assert events.number[events.kind == Kind.MEMORY].max() > 0


def test_compiled_instructions_name_the_ops_they_came_from(events: Events) -> None:
    instructions = {name for name, _, _ in rows(events, Kind.HLO)}
    assert instructions == set(events.hlo)
    for members in events.hlo.values():
        assert sum(member.weight for member in members) == pytest.approx(1)
    paths = {member.path for members in events.hlo.values() for member in members}
    assert any("net/conv" in path for path in paths)
    assert any("gradient_tape" in path for path in paths)
    assert any("loss" in path for path in paths)


def test_compiled_instructions_begin_within_their_call_and_last_until_their_end(
    events: Events, recorded: tuple[Path, dict[int, int]]
) -> None:
    ends_ns = ends_of_thunks(recorded[0])
    instructions = rows(events, Kind.HLO)
    # The values are there, and the trace may be over, before each of the two threads has written
    # its last end down.
    assert len(ends_ns) >= len(instructions) - 2 > 0
    for instruction, end_ns in ends_ns:
        assert any(
            name.text == instruction and begin_ns <= end_ns <= last_ns
            for name, begin_ns, last_ns in instructions
        )
    compiled = in_time(rows(events, Kind.FUNCTION))[-len(COMPILED_STEPS) :]
    for _, begin_ns, _ in instructions:
        assert any(called_ns <= begin_ns < returned_ns for _, called_ns, returned_ns in compiled)


def test_the_numbers_of_fields_are_tensorflows() -> None:
    published = {
        **xplane_pb2.DESCRIPTOR.message_types_by_name,
        "HloProto": hlo_pb2.HloProto.DESCRIPTOR,
        "HloModule": hlo_pb2.HloModuleProto.DESCRIPTOR,
        "HloComputation": hlo_pb2.HloComputationProto.DESCRIPTOR,
        "HloInstruction": hlo_pb2.HloInstructionProto.DESCRIPTOR,
        "Shape": xla_data_pb2.ShapeProto.DESCRIPTOR,
        "OpMetadata": xla_data_pb2.OpMetadata.DESCRIPTOR,
        "ConvolutionDimensions": xla_data_pb2.ConvolutionDimensionNumbers.DESCRIPTOR,
        "DotDimensions": xla_data_pb2.DotDimensionNumbers.DESCRIPTOR,
    }
    ours = messages.XSpace.DESCRIPTOR.file.message_types_by_name
    compared = 0
    for name, message in ours.items():
        for field in message.fields:
            if name in published:
                assert published[name].fields_by_name[field.name].number == field.number
                compared += 1
    assert compared > 40


def ends_of_thunks(path: Path) -> list[tuple[str, int]]:
    """Every `end: <instruction>` of the file, read with TensorFlow's own messages."""
    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    return [
        (name.removeprefix("end: "), line.timestamp_ns + (at.offset_ps + at.duration_ps) // 1000)
        for plane in space.planes
        for line in plane.lines
        for at in line.events
        if (name := plane.event_metadata[at.metadata_id].name).startswith("end: ")
    ]
