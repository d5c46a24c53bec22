"""What is read off the threads of a host."""

from pathlib import Path

import numpy as np
import pytest

from tests.traces.planes import Inline, Trace
from timesink.traces.events import Events, Kind, Line, Name


def rows(events: Events, kind: Kind) -> list[tuple[Name, int, int]]:
    """Every event of the kind: name, begin, end."""
    return [
        (events.names[events.name[row]], int(events.begin_ns[row]), int(events.end_ns[row]))
        for row in np.flatnonzero(events.kind == kind)
    ]


def test_an_op_has_its_path_its_type_and_its_thread(tmp_path: Path) -> None:
    trace = Trace()
    trace.host().line("tf_Compute/7", start_ns=1000).event("net/conv_1/Relu:Relu", 1100, 1350)
    events = trace.read(tmp_path)
    assert rows(events, Kind.OP) == [(Name("net/conv_1/Relu", "Relu"), 1100, 1350)]
    assert events.lines[events.line[0]] == Line("tf_Compute/7")
    assert events.host == "host"


def test_an_op_of_the_input_pipeline_is_an_op_on_an_input_line(tmp_path: Path) -> None:
    trace = Trace()
    trace.host().line("tf_data_private_threadpool/3").event("DecodeJpeg:DecodeJpeg", 0, 9)
    events = trace.read(tmp_path)
    assert rows(events, Kind.OP) == [(Name("DecodeJpeg", "DecodeJpeg"), 0, 9)]
    assert events.lines[events.line[0]].input


def test_times_below_a_nanosecond_are_cut_off_not_added_up(tmp_path: Path) -> None:
    trace = Trace()
    thread = trace.host().line("tf_Compute/7", start_ns=50).event("x:Add", 50, 50)
    event = thread.message.events[0]
    event.offset_ps, event.duration_ps = 1_900, 1_900
    assert rows(trace.read(tmp_path), Kind.OP) == [(Name("x", "Add"), 51, 53)]


@pytest.mark.parametrize(
    "name",
    [
        "ThreadpoolListener::Record",
        "ExecutorState::Process",
        "ExecutorDoneCallback",
        "FunctionRun",
        "end: convolution.4",
        "EagerLocalExecute: MatMul",
        "KernelAndDeviceFunc::Run",
        "TFE_Py_ExecuteCancelable",
        "$train.py:10 main",
        "MapAndBatchProduce",
    ],
)
def test_bookkeeping_is_no_event(tmp_path: Path, name: str) -> None:
    trace = Trace()
    trace.host().line("python").event(name, 0, 5, id=3).event("x:Add", 0, 1)
    assert len(trace.read(tmp_path)) == 1


@pytest.mark.parametrize(
    "name",
    [
        "Iterator::Root::Prefetch::MapAndBatch",
        "ReduceIterator::Root",
        "MakeIterator::RangeDataset",
        "InstantiatedCapturedFunction::Run",
        "InstantiatedCapturedFunction::RunAsync",
        "ExecutorState::Process",
        "ExecutorDoneCallback",
        "FunctionRun",
        "MapAndBatchProduce",
        "PrefetchConsume",
        "SomethingNew",
    ],
)
def test_on_a_thread_of_the_pipeline_its_bookkeeping_is_kept(tmp_path: Path, name: str) -> None:
    trace = Trace()
    trace.host().line("tf_data_iterator_resource/7").event(name, 2, 5)
    events = trace.read(tmp_path)
    assert rows(events, Kind.PIPELINE) == [(Name(name), 2, 5)]
    assert len(events) == 1


@pytest.mark.parametrize("name", ["ThreadpoolListener::Record", "KernelAndDeviceFunc::Run", "$a"])
def test_on_a_thread_of_the_pipeline_too_a_thread_pool_s_talk_is_none(
    tmp_path: Path, name: str
) -> None:
    trace = Trace()
    trace.host().line("tf_data_iterator_resource/7").event(name, 2, 5).event("x:Add", 0, 1)
    assert len(trace.read(tmp_path)) == 1


@pytest.mark.parametrize(
    "name", ["Iterator::Root", "ReduceIterator::Root::Map", "InstantiatedCapturedFunction::Run"]
)
def test_iterators_are_kept_on_any_thread(tmp_path: Path, name: str) -> None:
    trace = Trace()
    trace.host().line("python").event(name, 2, 5)
    assert rows(trace.read(tmp_path), Kind.PIPELINE) == [(Name(name), 2, 5)]


def test_call_executor_and_end_say_which_run_of_a_function_they_are(tmp_path: Path) -> None:
    trace = Trace()
    thread = trace.host().line("tf_data_private_threadpool/7")
    thread.event("InstantiatedCapturedFunction::RunAsync", 0, 1, id=-77)
    thread.event("ExecutorState::Process", 1, 4, id=-77, iter_num=0, _ct=2)
    thread.event("ExecutorDoneCallback", 4, 5, id=-77, _ct=2)
    thread.event("ExecutorState::Process", 6, 7, id=-78, iter_num=0, _ct=2)
    thread.event("ExecutorState::Process", 8, 9)
    one, two, three, other, none = trace.read(tmp_path).number.tolist()
    assert one == two == three > 0
    assert other > 0 and other != one
    assert none == 0


def test_on_a_thread_of_the_pipeline_an_event_is_what_its_stats_say_first(tmp_path: Path) -> None:
    trace = Trace()
    thread = trace.host().line("tf_data_private_threadpool/7")
    thread.event("fusion", 0, 5, hlo_op="fusion", hlo_module="m")
    thread.event("fusion", 6, 9, other=1)
    events = trace.read(tmp_path)
    assert rows(events, Kind.HLO) == [(Name("fusion", "m"), 0, 5)]
    assert rows(events, Kind.PIPELINE) == [(Name("fusion"), 6, 9)]


def test_a_step_may_be_named_like_the_pipeline_s_bookkeeping(tmp_path: Path) -> None:
    trace = Trace()
    trace.host().line("python").event("BatchConsume", 0, 9, step_num=4)
    assert rows(trace.read(tmp_path), Kind.STEP) == [(Name("BatchConsume"), 0, 9)]


def test_the_type_of_an_op_stands_behind_the_last_colon(tmp_path: Path) -> None:
    trace = Trace()
    trace.host().line("tf_Compute/7").event("a:b/c:Mul", 0, 1).event("d:Mine>Op", 1, 2)
    assert [name for name, _, _ in rows(trace.read(tmp_path), Kind.OP)] == [
        Name("a:b/c", "Mul"),
        Name("d", "Mine>Op"),
    ]


def test_a_step_has_its_number_and_the_host_clock_of_its_marker(tmp_path: Path) -> None:
    trace = Trace()
    python = trace.host().line("python")
    python.event("train", 0, 100, step_num=7, _r=1, host_ns=123_456)
    python.event("train", 100, 200, epoch=1, step_num=8)
    events = trace.read(tmp_path)
    assert rows(events, Kind.STEP) == [(Name("train"), 0, 100), (Name("train"), 100, 200)]
    assert events.number.tolist() == [7, 8]
    assert events.marks == {7: 123_456}


def test_a_step_and_a_function_of_one_name_are_told_apart(tmp_path: Path) -> None:
    trace = Trace()
    python = trace.host().line("python")
    python.event("step", 0, 100, step_num=1)
    python.event("step", 10, 90, tf_function_call="notTraced-nonXla", tracing_count=1)
    python.event("step", 20, 30, something=1)
    events = trace.read(tmp_path)
    assert rows(events, Kind.STEP) == [(Name("step"), 0, 100)]
    assert rows(events, Kind.FUNCTION) == [(Name("step"), 10, 90)]
    assert len(events) == 2


def test_a_function_traced_anew_is_noted_with_its_time(tmp_path: Path) -> None:
    trace = Trace()
    python = trace.host().line("python")
    python.event("late", 500, 600, tf_function_call="traced-xla")
    python.event("step", 10, 90, tf_function_call=Inline("traced-nonXla"))
    python.event("step", 100, 190, tf_function_call="notTraced-nonXla")
    assert trace.read(tmp_path).retraced == (("step", 10), ("late", 500))


def test_what_runs_within_a_call_from_python_is_that_call(tmp_path: Path) -> None:
    trace = Trace()
    host = trace.host()
    python = host.line("python")
    python.event("step", 0, 100, tf_function_call="notTraced-nonXla")
    python.event("EagerExecute", 5, 95, eager_op="__inference_step_3", is_func=1)
    python.event("EagerLocalExecute: __inference_step_3", 6, 94)
    python.event("__inference_step_3:__inference_step_3", 7, 93)
    assert rows(trace.read(tmp_path), Kind.FUNCTION) == [(Name("step"), 0, 100)]


def test_a_function_that_python_did_not_call_is_seen_where_it_is_executed(tmp_path: Path) -> None:
    trace = Trace()
    server = trace.host().line("server")
    server.event("EagerExecute", 5, 95, eager_op="__inference_f_3", is_func=1)
    server.event("EagerLocalExecute: __inference_f_3", 6, 94)
    server.event("EagerExecute", 100, 120, eager_op="AddV2", is_func=0)
    server.event("EagerLocalExecute: __inference_g_9", 200, 210)
    assert rows(trace.read(tmp_path), Kind.FUNCTION) == [
        (Name("__inference_f_3"), 5, 95),
        (Name("__inference_g_9"), 200, 210),
    ]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("IteratorGetNextOp::DoCompute", Name("IteratorGetNextOp::DoCompute")),
        ("EagerLocalExecute: IteratorGetNext", Name("EagerLocalExecute: IteratorGetNext")),
        ("a/IteratorGetNext:IteratorGetNext", Name("a/IteratorGetNext", "IteratorGetNext")),
        (
            "b/MultiDeviceIteratorGetNextFromShard:MultiDeviceIteratorGetNextFromShard",
            Name("b/MultiDeviceIteratorGetNextFromShard", "MultiDeviceIteratorGetNextFromShard"),
        ),
    ],
)
def test_waiting_for_the_next_element_is_input(tmp_path: Path, name: str, told: Name) -> None:
    trace = Trace()
    trace.host().line("python").event(name, 3, 8)
    events = trace.read(tmp_path)
    assert rows(events, Kind.INPUT) == [(told, 3, 8)]
    assert len(events) == 1


def test_timesink_s_own_spans_and_samples_lose_their_prefix(tmp_path: Path) -> None:
    trace = Trace()
    python = trace.host().line("python")
    python.event("timesink:gc generation 2", 0, 5)
    python.event("timesink:sample train.py:12 main", 2, 2)
    python.event("timesink:step", 0, 9, step_num=4)
    events = trace.read(tmp_path)
    assert rows(events, Kind.SPAN) == [(Name("gc generation 2"), 0, 5)]
    assert rows(events, Kind.SAMPLE) == [(Name("train.py:12 main"), 2, 2)]
    assert rows(events, Kind.STEP) == [(Name("timesink:step"), 0, 9)]


def test_an_allocator_s_event_says_the_bytes_then_in_use(tmp_path: Path) -> None:
    trace = Trace()
    thread = trace.host().line("tf_Compute/7")
    thread.event("MemoryAllocation", 1, 1, allocator_name="mklcpu", bytes_allocated=4096, addr=9)
    thread.event("MemoryDeallocation", 2, 2, allocator_name="mklcpu", bytes_allocated=0)
    thread.event("MemoryDeallocation", 3, 3, allocator_name="mklcpu")
    events = trace.read(tmp_path)
    assert rows(events, Kind.MEMORY) == [(Name("mklcpu"), 1, 1), (Name("mklcpu"), 2, 2)]
    assert events.number.tolist() == [4096, 0]


@pytest.mark.parametrize(
    "name",
    [
        "BlockHostUntilDone",
        "BlockUntilReady",
        "cuStreamSynchronize",
        "cuCtxSynchronize",
        "cuEventSynchronize",
        "hipDeviceSynchronize",
        "WaitForQueuedEvents",
        "Wait for usage holds",
        "ThunkExecutor::Execute (wait for completion)",
    ],
)
def test_a_wait_of_the_host_is_blocked(tmp_path: Path, name: str) -> None:
    trace = Trace()
    trace.host().line("python").event(name, 3, 8).event("cuStreamWaitEvent", 0, 1)
    events = trace.read(tmp_path)
    assert rows(events, Kind.BLOCKED) == [(Name(name), 3, 8)]
    assert len(events) == 1


def test_a_compiled_instruction_lasts_until_its_end_on_another_thread(tmp_path: Path) -> None:
    trace = Trace()
    host = trace.host()
    of = {"hlo_op": "conv.4", "hlo_module": "m", "program_id": 1}
    host.line("one").event("conv.4", 100, 154, **of, _pt=0, _p=77)
    host.line("two").event("end: conv.4", 900, 901, _ct=0, _c=77)
    assert rows(trace.read(tmp_path), Kind.HLO) == [(Name("conv.4", "m"), 100, 901)]


def test_an_instruction_keeps_its_own_end_where_no_other_is_its(tmp_path: Path) -> None:
    trace = Trace()
    line = trace.host().line("one")
    line.event("a", 0, 10, hlo_op="a", hlo_module="m")
    line.event("b", 20, 30, hlo_op="b", hlo_module="m", _p=1)
    line.event("end: b", 25, 28, _c=1)
    line.event("c", 40, 50, hlo_op="c", hlo_module="m", _p=2)
    line.event("end: c", 90, 95, _c=3)
    line.event("end: d", 90, 95, _c=2)
    ends = {name.text: end for name, _, end in rows(trace.read(tmp_path), Kind.HLO)}
    assert ends == {"a": 10, "b": 30, "c": 50}


def test_ends_of_a_repeated_id_go_to_the_launch_before_them(tmp_path: Path) -> None:
    trace = Trace()
    host = trace.host()
    host.line("two").event("end: a", 390, 400, _c=5).event("end: a", 80, 90, _c=5)
    line = host.line("one")
    for begin_ns in (300, 0, 200):
        line.event("a", begin_ns, begin_ns + 10, hlo_op="a", hlo_module="m", _p=5)
    found = sorted((begin, end) for _, begin, end in rows(trace.read(tmp_path), Kind.HLO))
    assert found == [(0, 90), (200, 210), (300, 400)]


def test_a_name_that_is_not_utf8_does_not_make_the_file_unreadable(tmp_path: Path) -> None:
    trace = Trace()
    thread = trace.host().line("python").event("x:Add", 0, 1)
    thread.message.name = "ein Fädchen".encode()[:6]
    assert trace.read(tmp_path).lines[0].name == "ein F\N{REPLACEMENT CHARACTER}"


def test_an_event_without_metadata_is_passed_over(tmp_path: Path) -> None:
    trace = Trace()
    thread = trace.host().line("python").event("x:Add", 0, 1)
    thread.message.events.add(metadata_id=999)
    assert len(trace.read(tmp_path)) == 1


def test_events_that_the_profiler_dropped_are_counted(tmp_path: Path) -> None:
    trace = Trace().warn(
        "Detected GPU events dropped on host: Profiler has collected 9 driver events and 3 device "
        "events. 1200 events dropped because total device(activity) events reaches max; "
        "34 events dropped because total driver(callback) events reaches max."
    )
    trace.host().line("python").event("x:Add", 0, 1)
    assert trace.read(tmp_path).dropped == 1234


def test_a_trace_without_a_host_s_name_is_named_by_its_file(tmp_path: Path) -> None:
    trace = Trace(host=None)
    trace.host().line("python").event("x:Add", 0, 1)
    assert trace.read(tmp_path).host == "host"
    assert trace.read(tmp_path).dropped == 0
