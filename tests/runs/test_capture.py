"""`timesink.capture` around loops of one's own."""

import time

import keras
import pytest
import tensorflow as tf

import timesink
from tests.runs.training import (
    BATCH,
    LOSS,
    X,
    Y,
    assert_closed,
    charged_most,
    layers_in,
    steps_of,
    summary_of,
    tiny,
)
from timesink.errors import UsageError


@pytest.fixture
def out(tmp_path):
    return tmp_path / "run"


def training_function(model):
    loss, optimizer = LOSS(from_logits=True), keras.optimizers.SGD()
    optimizer.build(model.trainable_variables)

    @tf.function
    def train(images, labels):
        with tf.GradientTape() as tape:
            value = loss(labels, model(images, training=True))
        gradients = tape.gradient(value, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return value

    return train


def test_a_loop_with_a_keras_model_gets_its_layers(out):
    train = training_function(tiny())
    with timesink.capture(out, total_steps=10) as t:
        for _ in range(10):
            with t.step(images=BATCH, epoch=2) as figures:
                figures["loss"] = train(X[:BATCH], Y[:BATCH])
    summary = summary_of(out)
    assert (summary["status"], summary["steps"], summary["epochs"]) == ("complete", 10, 2)
    assert summary["attached"] == "timesink.capture"
    assert summary["loss"] > 0
    assert {"conv", "fc"} <= layers_in(out)
    assert steps_of(out)["images"].to_list() == [BATCH] * 10
    assert_closed(out)


def test_what_happens_between_steps_belongs_to_the_step_before(out):
    train = training_function(tiny())

    def batches():
        for _ in range(10):
            time.sleep(0.01)
            yield X[:BATCH], Y[:BATCH]

    with timesink.capture(out, total_steps=10) as t:
        for images, labels in batches():
            with t.step():
                train(images, labels)
    assert charged_most(out, "python")["place"].endswith(" batches")
    assert_closed(out)


def test_waiting_for_a_dataset_between_steps_is_input_wait(out):
    def delayed(number):
        return tf.py_function(lambda n: (time.sleep(0.02), n)[1], [number], tf.int64)

    data = tf.data.Dataset.range(10).map(delayed)

    @tf.function
    def work(number):
        return number + 1

    with timesink.capture(out, total_steps=10) as t:
        for number in data:
            with t.step():
                work(number)
    assert summary_of(out)["accounts"][0]["account"] == "input_wait"


def test_a_loop_without_a_model_or_a_known_length_is_traced_too(out):
    weight = tf.Variable(tf.ones((32, 32)))

    @tf.function
    def work():
        weight.assign_sub(1e-3 * tf.matmul(weight, weight))

    with timesink.capture(out) as t:
        for _ in range(9):
            with t.step():
                work()
    summary = summary_of(out)
    assert summary["steps"] == 9
    assert summary["traced_steps"] > 0
    assert summary["images_per_s"] is None
    assert_closed(out)


def test_the_first_step_is_tracing_and_an_account_may_be_named(out):
    train = training_function(tiny())
    with timesink.capture(out, total_steps=6) as t:
        for _ in range(3):
            with t.step():
                train(X[:BATCH], Y[:BATCH])
        t.account("validation")
        train(X[:BATCH], Y[:BATCH])
        for _ in range(3):
            with t.step():
                train(X[:BATCH], Y[:BATCH])
    seconds = {row["account"]: row["s"] for row in summary_of(out)["run_accounts"]}
    assert seconds["validation"] > 0
    first_ms = steps_of(out)["step_ms"][0]
    assert seconds["tracing"] * 1e3 >= first_ms


def test_a_retrace_is_counted_and_named_with_its_shapes(out):
    train = training_function(tiny())
    with timesink.capture(out, total_steps=5) as t:
        for size in (8, 8, 8, 8, 3):
            with t.step():
                train(tf.constant(X[:size]), tf.constant(Y[:size]))
    summary = summary_of(out)
    assert summary["retraces"] == 1
    (retraced,) = summary["retraced"]
    assert (retraced["iteration"], retraced["function"]) == (5, "train")
    assert "float32[3,12,12,3]" in retraced["inputs"]


def test_a_retrace_of_a_function_that_takes_an_iterator_is_named_too(out):
    model = tiny()

    @tf.function
    def train(batches):
        return tf.reduce_sum(model(next(batches)))

    with timesink.capture(out, total_steps=5) as t:
        for size in (8, 8, 8, 8, 3):
            batches = iter(tf.data.Dataset.from_tensors(X[:size]))
            with t.step():
                train(batches)
    (retraced,) = summary_of(out)["retraced"]
    assert retraced["inputs"] == "float32[3,12,12,3]"


def test_an_exception_passes_and_ends_the_run_as_failed(out):
    with pytest.raises(ZeroDivisionError), timesink.capture(out) as t:
        with t.step():
            pass
        with t.step():
            1 / 0  # noqa: B018
    summary = summary_of(out)
    assert (summary["status"], summary["steps"]) == ("failed", 1)
    assert summary["error"].startswith("ZeroDivisionError")


def test_a_step_that_raised_and_was_caught_is_no_step(out):
    with timesink.capture(out, total_steps=12, start=2, steps=8) as t:
        for number in range(12):
            try:
                with t.step():
                    if number in (1, 5):
                        raise ValueError
            except ValueError:
                continue
    assert steps_of(out)["iteration"].to_list() == list(range(1, 11))
    assert_closed(out)


def test_misuse_is_told(out):
    with timesink.capture(out) as t:
        with pytest.raises(UsageError, match="inside a step"), t.step(), t.step():
            pass
        with pytest.raises(UsageError, match="inside a step"), t.step():
            t.account("validation")
        with pytest.raises(UsageError, match="'lunch' is no account of a run"):
            t.account("lunch")
    with pytest.raises(UsageError, match=r"after the end of timesink\.capture"), t.step():
        pass
