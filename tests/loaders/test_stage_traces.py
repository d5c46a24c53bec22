"""Traces of real tf.data pipelines: each kind of dataset has its stage, and no time goes astray."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tensorflow as tf
from tensorflow.python.data.experimental.ops import testing

from timesink.engines.tensorflow.profiler import Trace
from timesink.ledger.by_name import opmap_from_names
from timesink.ledger.stages import PipelineWork, StageWork, stage_work
from timesink.ledger.step_ledger import close_steps
from timesink.ledger.steps import spans_from_trace
from timesink.traces.events import Events, Kind
from timesink.traces.xplane import read_xplane

PLANTED_NS = 10_000_000
ELEMENTS = 12

Measure = Callable[..., PipelineWork]
Numbers = tf.data.Dataset.range(1_000_000)


def take(dataset: Any, elements: int, folder: Path, warm_up: int = 2) -> Events:
    """Trace some elements of a dataset."""
    options = tf.data.Options()
    options.autotune.enabled = False  # its thread sleeps for seconds when an iterator is destroyed
    iterator = iter(dataset.with_options(options))
    for _ in range(warm_up):
        next(iterator)
    trace = Trace(folder, "stages")
    for _ in range(elements):
        next(iterator)
    return read_xplane(trace.stop())


@pytest.fixture
def measure(tmp_path: Path) -> Measure:
    def measured(
        dataset: Any, elements: int = ELEMENTS, known: tuple[str, ...] = (), **options: int
    ) -> PipelineWork:
        events = take(dataset, elements, tmp_path, **options)
        work = stage_work(events, None, None, known)
        by_rows = sum(row.work_ns for row in work.stages) + sum(ns for _, ns, _ in work.unplaced)
        assert by_rows == work.busy_ns > 0
        return work

    return measured


def row(work: PipelineWork, stage: str) -> StageWork:
    (found,) = [row for row in work.stages if row.stage == stage]
    return found


def names(work: PipelineWork) -> set[str]:
    return {row.stage for row in work.stages if row.kind == "stage"}


class Planted:
    """A Python function that takes a known time, and notes how long it really took."""

    def __init__(self) -> None:
        self.took_ns: list[int] = []

    def __call__(self, value: Any) -> Any:
        begin_ns = time.perf_counter_ns()
        time.sleep(PLANTED_NS / 1e9)
        self.took_ns.append(time.perf_counter_ns() - begin_ns)
        return value

    def in_scope(self, scope: str, call: Any = tf.numpy_function) -> Callable[[Any], Any]:
        def planted(number: Any) -> Any:
            with tf.name_scope(scope):
                return tf.reshape(call(self, [number], tf.int64), [])

        return planted

    def came_back(self, found: StageWork) -> None:
        """See that the row has the time that was planted, and not that of others too."""
        assert found.calls > 0
        assert found.work_ns >= found.calls * PLANTED_NS
        assert found.work_ns < 2 * found.calls * max(self.took_ns)


def picture(number: Any) -> Any:
    with tf.name_scope("draw"):
        return tf.random.stateless_uniform([200, 200, 3], [number, number])


@pytest.mark.parametrize("call", [tf.numpy_function, tf.py_function])
@pytest.mark.parametrize("workers", [None, 2])
def test_time_planted_in_a_python_function_comes_back_in_its_row(
    measure: Measure, call: Any, workers: int | None
) -> None:
    planted = Planted()
    dataset = Numbers.map(planted.in_scope("mine", call), num_parallel_calls=workers)
    work = measure(dataset.batch(2).prefetch(1))
    planted.came_back(row(work, "python: mine"))
    assert work.explained > 0.5


def test_what_a_python_function_runs_eagerly_is_its_own(measure: Measure) -> None:
    def multiplied(number: Any) -> Any:
        ones = tf.ones([200, 200])
        return tf.reduce_sum(ones @ ones) + tf.cast(number, tf.float32)

    def load(number: Any) -> Any:
        return tf.reshape(tf.py_function(multiplied, [number], tf.float32), [])

    # Enough elements that not all were made before the trace began.
    work = measure(Numbers.map(load, num_parallel_calls=2).batch(2).prefetch(1), elements=60)
    assert "python: EagerPyFunc" in names(work)
    assert not [name for name, _, _ in work.unplaced if name.endswith(":MatMul")]


def test_time_planted_in_an_iterator_comes_back_in_its_row(measure: Measure) -> None:
    work = measure(Numbers.apply(testing.sleep(PLANTED_NS // 1000)).batch(2).prefetch(1))
    slept = row(work, "sleep")
    assert slept.work_ns >= slept.calls * PLANTED_NS
    assert work.explained > 0.5
    assert work.wait_ns < slept.work_ns


def test_a_generator_s_time_is_not_a_map_s(measure: Measure) -> None:
    generated, mapped = Planted(), Planted()

    def generator() -> Any:
        for number in range(1000):
            yield generated(number)

    def load(number: Any) -> Any:
        return tf.reshape(tf.numpy_function(mapped, [number], tf.int64), [])

    signature = tf.TensorSpec([], tf.int64)
    dataset = tf.data.Dataset.from_generator(generator, output_signature=signature)
    work = measure(dataset.map(load).batch(2).prefetch(1))
    generated.came_back(row(work, "from_generator"))
    mapped.came_back(row(work, "python: PyFunc"))


@pytest.mark.parametrize("workers", [None, 2])
def test_a_loop_s_many_small_ops_are_its_stage_s_with_the_time_between_them(
    measure: Measure, workers: int | None
) -> None:
    def load(number: Any) -> Any:
        with tf.name_scope("burn"):
            # Large enough that the profiler sees each on any machine: what takes under 8,000
            # cycles leaves no event.
            start = (0, tf.cast(number, tf.float32) + tf.zeros([200, 200]))
            burnt = tf.while_loop(lambda i, _: i < 50, lambda i, a: (i + 1, tf.sin(a)), start)
        return tf.reduce_sum(burnt[1])

    work = measure(Numbers.map(load, num_parallel_calls=workers).batch(2).prefetch(1), elements=40)
    assert names(work) & {"while", "cond"} == set()
    assert row(work, "burn").calls > 100
    assert row(work, "burn").work_ns > 0


def test_ops_in_branches_functions_and_nested_loops_keep_their_scope(measure: Measure) -> None:
    @tf.function
    def apart(value: Any) -> Any:
        with tf.name_scope("apart"):
            return tf.sin(value)

    def load(number: Any) -> Any:
        even = tf.equal(number % 2, 0)
        value = tf.cond(even, lambda: picture(number), lambda: picture(number + 1))
        value = tf.map_fn(lambda each: apart(each), tf.stack([value, value]))
        return tf.reduce_sum(value)

    work = measure(Numbers.map(load, num_parallel_calls=2).batch(2).prefetch(1))
    assert {"draw", "apart"} <= names(work)
    assert names(work) & {"cond", "while", "PartitionedCall", "StatefulPartitionedCall"} == set()


def test_known_stages_are_told_by_their_scopes_and_come_in_order(measure: Measure) -> None:
    def load(number: Any) -> Any:
        value = picture(number)
        with tf.name_scope("resize"):
            value = tf.image.resize(value, [150, 150])
        with tf.name_scope("clip"):
            value = tf.clip_by_value(value, 0.1, 0.9)
        with tf.name_scope("clip"):
            return tf.clip_by_value(value, 0.2, 0.8)

    known = ("draw", "resize", "clip", "batch")
    work = measure(Numbers.map(load, num_parallel_calls=2).batch(4).prefetch(1), known=known)
    assert tuple(row.stage for row in work.stages)[: len(known)] == known
    assert work.unplaced == ()
    # The images of a batch are copied into it by the workers, one by one.
    assert row(work, "batch").calls > ELEMENTS


@pytest.mark.parametrize(
    ("make", "batch"),
    [
        (lambda images: images.ignore_errors().batch(4), "batch"),
        (lambda images: images.ignore_errors().padded_batch(4), "padded_batch"),
    ],
)
def test_a_batch_that_is_not_fused_is_an_iterator_s_work(
    measure: Measure, make: Any, batch: str
) -> None:
    images = Numbers.map(picture, num_parallel_calls=2)
    work = measure(make(images).prefetch(1))
    assert {"draw", "ignore_errors", batch} <= names(work)
    assert row(work, batch).calls <= ELEMENTS + 2  # batches, not images
    assert work.wait_ns > 0


def test_parallel_batches_wait_for_their_images(measure: Measure) -> None:
    images = Numbers.map(picture, num_parallel_calls=2).ignore_errors()
    work = measure(images.batch(4, num_parallel_calls=2).prefetch(1))
    assert "draw" in names(work)
    assert names(work) & {"parallel_batch", "parallel_map", "prefetch"} == set()
    assert work.wait_ns > 0


def test_a_pipeline_without_threads_of_its_own_is_seen_where_it_is_asked(measure: Measure) -> None:
    planted = Planted()
    dataset = Numbers.shuffle(10).map(planted.in_scope("mine")).batch(2)
    work = measure(dataset)
    mine = row(work, "python: mine")
    planted.came_back(mine)
    assert {"shuffle", "batch", "range"} <= names(work)
    # Who asks waits all that time, but is none of the pipeline's threads.
    assert work.wait_ns < mine.work_ns / 2


def test_a_filter_s_cheap_predicate_is_the_filter_s_work(measure: Measure) -> None:
    work = measure(Numbers.filter(lambda number: number % 2 == 0).batch(64).prefetch(1))
    assert {"filter", "batch", "range"} <= names(work)
    assert row(work, "filter").calls >= 2 * 64


@pytest.fixture
def records(tmp_path: Path) -> list[str]:
    files = []
    for shard in range(2):
        files.append(str(tmp_path / f"{shard}.tfrecord"))
        with tf.io.TFRecordWriter(files[-1]) as writer:
            for number in range(200):
                value = tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))
                large = tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes(20_000)]))
                feature = {"number": value, "large": large}
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
    return files


def parse(record: Any) -> Any:
    return tf.io.parse_single_example(record, {"number": tf.io.FixedLenFeature([], tf.int64)})


@pytest.mark.parametrize("workers", [None, 2])
def test_records_are_read_and_parsed_whoever_interleaves_them(
    measure: Measure, records: list[str], workers: int | None
) -> None:
    files = tf.data.Dataset.from_tensor_slices(records).repeat()
    dataset = files.interleave(
        lambda file: tf.data.TFRecordDataset(file).map(parse),
        cycle_length=2,
        num_parallel_calls=workers,
    )
    work = measure(dataset.batch(16).prefetch(1))
    assert {"read", "parse"} <= names(work)
    assert row(work, "read").calls >= 2 * 16


def test_flat_map_makes_datasets_and_leaves_their_ops_their_stages(measure: Measure) -> None:
    dataset = Numbers.flat_map(lambda _: tf.data.Dataset.range(3).map(picture))
    work = measure(dataset.batch(4).prefetch(1))
    assert {"draw", "flat_map", "range"} <= names(work)
    assert row(work, "iterators").kind == "framework"


def test_a_dataset_within_a_map_is_seen_with_what_it_runs(measure: Measure) -> None:
    def load(number: Any) -> Any:
        pictures = tf.data.Dataset.range(2).map(lambda each: tf.reduce_sum(picture(each + number)))
        return pictures.reduce(0.0, lambda total, each: total + each)

    work = measure(Numbers.map(load, num_parallel_calls=2).prefetch(1))
    assert {"draw", "reduce"} <= names(work)


@pytest.mark.parametrize("file", ["", "cached"])
def test_writing_and_reading_a_cache_is_its_own_work(
    measure: Measure, tmp_path: Path, file: str
) -> None:
    cached = tf.data.Dataset.range(12).map(picture).cache(str(tmp_path / file) if file else "")
    work = measure(cached.repeat().batch(4).prefetch(1), elements=6, warm_up=0)
    assert {"draw", "cache", "repeat", "batch"} <= names(work)
    assert row(work, "cache").calls >= 12


def test_a_snapshot_is_a_stage_while_it_is_written_and_read(
    measure: Measure, tmp_path: Path
) -> None:
    def snapshot() -> Any:
        drawn = tf.data.Dataset.range(12).map(lambda number: tf.reduce_sum(picture(number)))
        return drawn.snapshot(str(tmp_path / "snapshot")).batch(4).prefetch(1)

    assert "snapshot" in names(measure(snapshot(), elements=3, warm_up=0))
    for _ in snapshot():  # to its end, so that it is kept
        pass
    read = names(measure(snapshot(), elements=3, warm_up=0))
    assert "snapshot" in read
    assert "draw" not in read


def test_in_training_the_network_s_ops_and_the_pipeline_s_do_not_mix(tmp_path: Path) -> None:
    kernel = tf.Variable(tf.random.stateless_normal((3, 3, 3, 8), seed=(1, 2)))

    @tf.function(autograph=False)
    def step(images: Any) -> Any:
        with tf.GradientTape() as tape:
            with tf.name_scope("net/conv"):
                made = tf.nn.relu(tf.nn.conv2d(images, kernel, 1, "SAME"))
            loss = tf.reduce_mean(tf.square(made))
        kernel.assign_sub(0.1 * tape.gradient(loss, kernel))
        return loss

    batches = iter(Numbers.map(picture, num_parallel_calls=2).batch(2).prefetch(1))
    step(next(batches))
    profiler = tf.profiler.experimental
    trace = Trace(tmp_path, "training")
    for number in range(4):
        with profiler.Trace("train", step_num=number, _r=1):
            step(next(batches)).numpy()
    events = read_xplane(trace.stop())
    work = stage_work(events, None, None)
    assert {"draw", "batch"} <= names(work)
    assert "net" not in names(work)
    assert not [name for name, _, _ in work.unplaced if "net/" in name or "Conv2D" in name]
    books = close_steps(events, spans_from_trace(events), opmap_from_names(events))
    assert not books.filter(pl.col("op").str.contains("draw/")).height
    assert books.filter(pl.col("op").str.contains("net/conv")).height
    assert (events.kind == Kind.PIPELINE).sum() > 4
    kept = events.kind != Kind.PIPELINE
    columns = ("begin_ns", "end_ns", "kind", "line", "name", "number")
    without = Events(**{**vars(events), **{name: vars(events)[name][kept] for name in columns}})
    same = close_steps(without, spans_from_trace(without), opmap_from_names(without))
    assert same.equals(books)
