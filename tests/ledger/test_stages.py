"""Events of a pipeline written by hand, and the work of its stages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ledger.timeline import Timeline
from timesink.ledger.by_name import opmap_from_names
from timesink.ledger.stages import PipelineWork, StageWork, stage_work
from timesink.ledger.step_ledger import close_steps
from timesink.ledger.steps import spans_from_trace
from timesink.traces.events import Events, Kind, Member

KNOWN = ("read", "decode")


class Pipeline(Timeline):
    """A timeline whose thread 1 is one of the input pipeline's."""

    def __init__(self):
        super().__init__()
        self.pool = self.thread("tf_data_private_threadpool/1", input=True)

    def own(self, name, begin_ns, end_ns, *, on=None, run=0):
        on = self.pool if on is None else on
        return self.add(Kind.PIPELINE, name, begin_ns, end_ns, on=on, number=run)

    def run(self, number, begin_ns, end_ns, *, on=None):
        """Let an executor carry out a run of a function."""
        return self.own("ExecutorState::Process", begin_ns, end_ns, on=on, run=number)

    def work(self, begin_ns=None, end_ns=None, known=KNOWN) -> PipelineWork:
        return stage_work(self.events(), begin_ns, end_ns, known)


def rows(work: PipelineWork) -> dict[str, int]:
    return {row.stage: row.work_ns for row in work.stages}


def row_of(work: PipelineWork, stage: str) -> StageWork:
    (found,) = [row for row in work.stages if row.stage == stage]
    return found


def test_an_op_s_time_is_its_stage_s_and_all_of_it_is_explained():
    line = Pipeline()
    line.op("read/ReadFile", 100, 300, on=line.pool)
    line.op("decode/DecodeJpeg", 300, 900, on=line.pool)
    work = line.work()
    assert work.stages == (StageWork("read", 200, 1), StageWork("decode", 600, 1))
    assert (work.wall_ns, work.busy_ns, work.wait_ns, work.unplaced) == (800, 800, 0, ())
    assert work.explained == 1.0


def test_work_of_several_threads_is_summed_and_may_exceed_the_wall():
    line = Pipeline()
    for on in (line.pool, line.thread("tf_data_private_threadpool/2", input=True)):
        line.op("decode/DecodeJpeg", 0, 900, on=on)
    work = line.work()
    assert (work.wall_ns, rows(work)) == (900, {"decode": 1800})


def test_the_innermost_event_has_the_time():
    line = Pipeline()
    line.own("Iterator::Root::Prefetch::BatchV2", 0, 1000)
    line.own("Iterator::Root::Prefetch::BatchV2::Shuffle", 100, 400)
    line.own("Iterator::Root::Prefetch::BatchV2::Shuffle::Range", 150, 200)
    line.own("Iterator::Root::Prefetch::BatchV2::Shuffle", 500, 600)
    assert rows(line.work()) == {"batch": 600, "shuffle": 350, "range": 50}


def test_waiting_for_other_threads_is_not_work():
    line = Pipeline()
    line.own("PrefetchProduce", 0, 1000)
    line.own("Iterator::Root::Prefetch::MapAndBatch", 10, 990)
    line.own("MapAndBatchConsume", 985, 990)
    work = line.work()
    assert work.wait_ns == 975
    assert work.stages == (StageWork("scheduling", 25, 1, "framework"),)
    assert work.explained == 0.0


def test_an_event_within_an_op_is_the_op_s_whatever_it_is():
    line = Pipeline()
    line.op("mine/EagerPyFunc", 0, 1000, on=line.pool)
    line.op("MatMul", 100, 200, on=line.pool)
    line.own("Iterator::Root::Prefetch", 300, 600)
    line.add(Kind.INPUT, "IteratorGetNextOp::DoCompute", 290, 610, on=line.pool)
    line.own("DecodeImageV2Op::JPEG", 700, 900)
    work = line.work()
    assert (rows(work), work.wait_ns, work.unplaced) == ({"python: mine": 1000}, 0, ())


def test_an_op_that_only_runs_others_leaves_them_their_time():
    line = Pipeline()
    line.op("PartitionedCall", 0, 100, on=line.pool)
    line.op("decode/DecodeJpeg", 10, 90, on=line.pool)
    assert rows(line.work()) == {"decode": 80, "executor": 20}


def test_the_executor_s_time_before_an_op_is_that_op_s_and_behind_the_last_its_own():
    line = Pipeline()
    line.run(7, 0, 100)
    line.op("read/ReadFile", 10, 40, on=line.pool)
    line.op("decode/DecodeJpeg", 45, 90, on=line.pool)
    assert rows(line.work()) == {"read": 40, "decode": 50, "executor": 10}


def test_a_run_that_goes_on_on_another_thread_is_followed_there():
    line = Pipeline()
    other = line.thread("tf_data_private_threadpool/2", input=True)
    line.run(7, 0, 50).op("read/ReadFile", 10, 40, on=line.pool)
    line.run(7, 50, 100, on=other).op("decode/DecodeJpeg", 60, 90, on=other)
    line.run(8, 50, 70)
    assert rows(line.work()) == {"read": 40, "decode": 50, "executor": 30}


def test_the_executor_s_time_beside_an_op_that_began_elsewhere_is_no_stage_s():
    line = Pipeline()
    other = line.thread("tf_data_private_threadpool/2", input=True)
    line.run(7, 0, 80).op("read/ReadFile", 10, 40, on=line.pool)
    line.run(7, 50, 90, on=other).op("decode/DecodeJpeg", 50, 90, on=other)
    assert rows(line.work()) == {"read": 40, "decode": 50, "executor": 30}


def test_a_function_too_cheap_to_show_ops_is_the_work_of_who_calls_it():
    line = Pipeline()
    line.own("Iterator::Root::Prefetch::Filter", 0, 100, on=line.thread("tf_data_x", input=True))
    line.own("InstantiatedCapturedFunction::Run", 10, 90, on=2, run=5)
    line.run(5, 20, 80).own("ExecutorDoneCallback", 80, 85, run=5)
    work = line.work()
    assert rows(work) == {"filter": 80, "executor": 5}
    assert work.wait_ns == 80


def test_the_end_of_a_run_of_a_fused_map_and_batch_is_the_copy_into_the_batch():
    line = Pipeline()
    runner = line.thread("tf_data_iterator_resource/2", input=True)
    line.own("MapAndBatchProduce", 0, 20, on=runner)
    line.own("InstantiatedCapturedFunction::RunAsync", 5, 15, on=runner, run=5)
    line.own("ParallelMapProduce", 30, 50, on=runner)
    line.own("InstantiatedCapturedFunction::RunAsync", 35, 45, on=runner, run=6)
    line.own("ExecutorDoneCallback", 100, 170, run=5)
    line.own("ExecutorDoneCallback", 200, 203, run=6)
    line.own("ExecutorDoneCallback", 210, 214, run=99)
    assert rows(line.work()) == {"batch": 70, "executor": 7, "scheduling": 40}


def test_handing_over_takes_as_long_each_time_and_what_goes_far_beyond_was_waiting():
    line = Pipeline()
    runner = line.thread("tf_data_iterator_resource/2", input=True)
    for run in range(1, 21):
        at, copied_ns = run * 100_000, 50_000 if run % 3 == 0 else 100
        line.own("MapAndBatchProduce", at, at + 20, on=runner)
        line.own("Iterator::Root::MapAndBatch::Range", at, at + 2, on=runner)
        line.own("InstantiatedCapturedFunction::RunAsync", at + 5, at + 15, on=runner, run=run)
        line.own("ExecutorDoneCallback", at + 100, at + 100 + copied_ns, run=run)
    work = line.work()
    assert row_of(work, "batch") == StageWork("batch", 14 * 100 + 6 * 200, 20)
    assert work.wait_ns == 6 * (50_000 - 200)


def test_batches_of_large_elements_are_not_compared_with_those_of_small_ones():
    line = Pipeline()
    runner = line.thread("tf_data_iterator_resource/2", input=True)
    for run in range(1, 21):
        at, outer = run * 1000, run % 2
        line.own("MapAndBatchProduce", at, at + 20, on=runner)
        within = "MapAndBatch::Unbatch" if outer else "MapAndBatch::Unbatch::MapAndBatch::Range"
        line.own(f"Iterator::Root::{within}", at, at + 2, on=runner)
        line.own("InstantiatedCapturedFunction::RunAsync", at + 5, at + 15, on=runner, run=run)
        line.own("ExecutorDoneCallback", at + 100, at + (110 if outer else 600), run=run)
    work = line.work()
    assert row_of(work, "batch").work_ns == 10 * 10 + 10 * 500
    assert work.wait_ns == 0


def test_a_generator_s_python_is_told_from_a_map_s():
    line = Pipeline()
    asker = line.thread("tf_data_iterator_resource/2", input=True)
    line.own("Iterator::Root::Prefetch::FlatMap[0]::Generator", 0, 100, on=asker)
    line.own("InstantiatedCapturedFunction::RunWithBorrowedArgs", 0, 100, on=asker, run=5)
    line.run(5, 10, 90).op("PyFunc", 10, 90, on=line.pool)
    line.run(6, 200, 300).op("PyFunc", 200, 300, on=line.pool)
    assert rows(line.work()) == {"from_generator": 80, "python: PyFunc": 100}


def test_a_call_that_no_executor_carried_out_is_unplaced_work():
    line = Pipeline()
    line.own("InstantiatedCapturedFunction::Run", 0, 40, run=5)
    work = line.work()
    assert work.unplaced == (("InstantiatedCapturedFunction::Run", 40, 1),)
    assert (work.busy_ns, work.wait_ns, work.explained) == (40, 0, 0.0)


def test_a_call_whose_executor_the_trace_s_end_cut_off_waited_like_the_others():
    line = Pipeline()
    asker = line.thread("tf_data_iterator_resource/2", input=True)
    for element, begin_ns in enumerate((0, 100)):
        line.own(f"Iterator::Root::Interleave[{element}]::Map", begin_ns, begin_ns + 60, on=asker)
        line.own(
            "InstantiatedCapturedFunction::Run", begin_ns, begin_ns + 50, on=asker, run=element + 5
        )
    line.run(5, 10, 40)
    work = line.work()
    assert (work.wait_ns, work.unplaced) == (100, ())


def test_what_cannot_be_placed_is_listed_with_the_most_work_first():
    line = Pipeline()
    for begin_ns in (0, 100):
        line.op("mul", begin_ns, begin_ns + 10, on=line.pool, type="Mul")
    line.op("Sum", 200, 250, on=line.pool)
    line.own("SomethingNew", 300, 305)
    line.op("read/ReadFile", 400, 475, on=line.pool)
    work = line.work()
    assert work.unplaced == (("Sum:Sum", 50, 1), ("mul:Mul", 20, 2), ("SomethingNew", 5, 1))
    assert (work.busy_ns, work.explained) == (150, 0.5)


def test_an_unknown_event_is_part_of_the_known_one_around_it():
    line = Pipeline()
    line.own("Iterator::Root::Prefetch::BatchV2", 0, 100).own("SomethingNew", 20, 80)
    work = line.work()
    assert (rows(work), work.unplaced) == ({"batch": 100}, ())


def test_a_window_cuts_events_at_its_borders():
    line = Pipeline()
    line.own("Iterator::Root::Prefetch::BatchV2", 0, 1000)
    line.own("Iterator::Root::Prefetch::BatchV2::Shuffle", 100, 400)
    line.run(3, 2000, 2100).op("read/ReadFile", 2040, 2100, on=line.pool)
    work = line.work(200, 2060)
    assert work.wall_ns == 1860
    assert rows(work) == {"batch": 600, "shuffle": 200, "read": 60}
    assert line.work(5000, 6000) == PipelineWork(1000, 0, 0, (), ())


def test_calls_are_those_of_the_op_that_took_most():
    line = Pipeline()
    for begin_ns in range(0, 500, 100):
        line.op("decode/DecodeJpeg", begin_ns, begin_ns + 50, on=line.pool)
    line.op("decode/Squeeze", 900, 910, on=line.pool)
    assert line.work().stages == (StageWork("decode", 260, 5),)


def test_elements_of_one_dataset_are_one_stage():
    line = Pipeline()
    for element in range(3):
        at = element * 10
        line.own(f"Iterator::Root::FlatMap[{element}]::TFRecord", at, at + 4)
    assert line.work().stages == (StageWork("read", 12, 3),)


def test_known_stages_come_in_their_order_then_others_by_work_then_the_framework():
    line = Pipeline()
    line.own("PrefetchProduce", 0, 900)
    line.op("decode/DecodeJpeg", 1000, 1500, on=line.pool)
    line.op("read/ReadFile", 1500, 1510, on=line.pool)
    line.op("mine/Mul", 1600, 1620, on=line.pool)
    line.own("Iterator::Root::Prefetch::BatchV2", 1700, 1770)
    stages = [row.stage for row in line.work().stages]
    assert stages == ["read", "decode", "batch", "mine", "scheduling"]


def test_a_pipeline_that_runs_on_the_thread_of_who_asks_is_seen_there():
    line = Pipeline()
    line.add(Kind.INPUT, "IteratorGetNextOp::DoCompute", 0, 1000)
    line.own("Iterator::Root", 10, 990, on=0)
    line.own("Iterator::Root::BatchV2", 20, 980, on=0)
    line.own("Iterator::Root::BatchV2::Map", 30, 930, on=0)
    line.own("InstantiatedCapturedFunction::Run", 40, 920, on=0, run=5)
    line.run(5, 50, 900).op("decode/DecodeJpeg", 50, 900, on=line.pool)
    line.op("decode/Squeeze", 925, 928, on=0)
    work = line.work()
    assert rows(work) == {"decode": 853, "batch": 60, "iterators": 37}
    # The asking thread is not the pipeline's: what it waited for stands in the step's books.
    assert work.wait_ns == 0


def test_the_network_s_ops_are_not_the_pipeline_s():
    line = Pipeline()
    line.step(1, 0, 1000).call("step", 100, 900)
    line.own("Iterator::Root", 0, 50, on=0)
    line.own("Iterator::Root::Prefetch", 10, 40, on=0)
    line.own("MakeIterator::RangeDataset", 60, 70, on=0)
    compute = line.thread("tf_Compute/1")
    line.op("net/conv/Conv2D", 200, 800, on=compute)
    line.op("eager/Mul", 920, 930, on=0)
    line.op("decode/DecodeJpeg", 0, 700, on=line.pool)
    assert rows(line.work()) == {"decode": 700, "iterators": 20}


def test_the_pipeline_s_events_change_nothing_in_the_step_s_books():
    line = Pipeline()
    line.step(1, 0, 1000).call("step", 100, 900)
    line.add(Kind.INPUT, "IteratorGetNextOp::DoCompute", 0, 90)
    line.op("functional_1/conv/Conv2D", 200, 800, on=line.thread("tf_Compute/1"))
    line.op("decode/DecodeJpeg", 0, 700, on=line.pool)
    books = close(line.events())
    line.own("Iterator::Root", 5, 85, on=0).own("Iterator::Root::Prefetch", 10, 80, on=0)
    line.run(5, 0, 750).own("PrefetchProduce", 750, 2000)
    assert close(line.events()).equals(books)


def close(events: Events):
    return close_steps(events, spans_from_trace(events), opmap_from_names(events))


def test_a_compiled_instruction_is_placed_by_the_op_it_has_most_of():
    line = Pipeline()
    line.add(Kind.HLO, "fusion", 0, 100, on=line.pool, type="module")
    (name,) = line.names
    line.hlo[name] = (Member("decode/Mul", 0.7), Member("read/Add", 0.3))
    assert rows(line.work()) == {"decode": 100}


def test_a_trace_without_a_pipeline_has_no_work():
    line = Timeline()
    line.op("net/conv/Conv2D", 0, 10)
    assert stage_work(line.events(), None, None) == PipelineWork(0, 0, 0, (), ())
    assert stage_work(line.events(), 5, 25) == PipelineWork(20, 0, 0, (), ())
    assert stage_work(line.events(), None, None).explained == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_events_in_a_file_does_not_matter(seed):
    line = Pipeline()
    rng = np.random.default_rng(seed)
    for begin_ns in range(0, 2000, 100):
        line.run(begin_ns + 1, begin_ns, begin_ns + 90)
        line.op("read/ReadFile", begin_ns + 10, begin_ns + 30, on=line.pool)
        line.op("decode/DecodeJpeg", begin_ns + 30, begin_ns + 80, on=line.pool)
        line.own("ExecutorDoneCallback", begin_ns + 90, begin_ns + 95, run=begin_ns + 1)
    shuffled = line.events(rng.permutation(len(line.rows)))
    assert stage_work(shuffled, None, None, KNOWN) == line.work()


NAMES = (
    "ExecutorState::Process",
    "ExecutorDoneCallback",
    "InstantiatedCapturedFunction::Run",
    "InstantiatedCapturedFunction::RunAsync",
    "MapAndBatchProduce",
    "Iterator::Root::Prefetch",
    "Iterator::Root::Prefetch::BatchV2[3]::Generator",
    "SomethingNew",
    "read/ReadFile:ReadFile",
    "mul:Mul",
    "PyFunc:PyFunc",
    "PartitionedCall:PartitionedCall",
)
written = st.tuples(
    st.sampled_from(NAMES),
    st.integers(0, 2),
    st.integers(0, 60),
    st.integers(-2, 30),
    st.integers(0, 3),
)


@given(st.lists(written, max_size=25))
def test_whatever_the_events_every_instant_of_a_thread_is_work_or_waiting_once(events):
    line = Pipeline()
    line.thread("tf_data_private_threadpool/2", input=True)
    line.thread("tf_data_private_threadpool/3", input=True)
    covered = set()
    for name, thread, begin_ns, length_ns, run in events:
        path, _, op_type = name.rpartition(":")
        on = line.pool + thread
        if path and not path.endswith(":"):
            line.op(path, begin_ns, begin_ns + length_ns, on=on, type=op_type)
        else:
            line.own(name, begin_ns, begin_ns + length_ns, on=on, run=run)
        covered |= {(on, instant) for instant in range(begin_ns, begin_ns + length_ns)}
    work = line.work()
    assert work.busy_ns + work.wait_ns == len(covered)
    placed_ns = sum(row.work_ns for row in work.stages)
    assert placed_ns + sum(work_ns for _, work_ns, _ in work.unplaced) == work.busy_ns
    assert all(row.work_ns > 0 for row in work.stages)
    assert 0 <= work.explained <= 1
