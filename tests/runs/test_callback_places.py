"""Trainings that stall in odd places: the largest row of the ledger names the place."""

import gc
import threading
import time

import keras
import numpy as np
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
    fit,
    summary_of,
    tiny,
)

pytestmark = pytest.mark.filterwarnings("ignore:`shuffle")

STALL_S = 0.02


@pytest.fixture
def out(tmp_path):
    return tmp_path / "run"


def callback(out):
    return timesink.Callback(out, start=3, steps=5)


class SlowCallback(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(STALL_S)


def test_a_slow_callback_is_named_with_its_line(out):
    fit(tiny(), SlowCallback(), callback(out))
    place = charged_most(out, "python")["place"]
    assert place.startswith("callback SlowCallback.on_train_batch_end, ")
    assert place.endswith(" on_train_batch_end")
    assert "test_callback_places.py:" in place
    assert_closed(out)


def test_a_callback_made_of_a_lambda_is_named(out):
    def wait(batch, logs):
        time.sleep(STALL_S)

    lazy = keras.callbacks.LambdaCallback(on_train_batch_begin=wait)
    fit(tiny(), lazy, callback(out))
    place = charged_most(out, "python")["place"]
    assert place.startswith("callback LambdaCallback.on_train_batch_begin, ")
    assert lazy.on_train_batch_begin is wait


def test_a_lock_that_somebody_holds_is_a_place(out):
    lock, over = threading.Lock(), threading.Event()

    def hold():
        while not over.is_set():
            with lock:
                time.sleep(STALL_S)
            time.sleep(0)

    class Locked(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            with lock:
                pass

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        fit(tiny(), Locked(), callback(out))
    finally:
        over.set()
        holder.join()
    assert "Locked.on_train_batch_begin" in charged_most(out, "python")["place"]


def test_garbage_collection_is_a_place(out):
    garbage = [[number] for number in range(100_000)]

    class Collecting(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            gc.collect()

    fit(tiny(), Collecting(), callback(out))
    assert charged_most(out, "python")["place"] == "garbage collection (generation 2)"
    assert garbage


def test_waiting_for_a_generator_names_the_generator(out):
    def slow_batches():
        while True:
            time.sleep(STALL_S)
            yield X[:BATCH], Y[:BATCH]

    tiny().fit(slow_batches(), steps_per_epoch=10, verbose=0, callbacks=[callback(out)])
    longest = summary_of(out)["accounts"][0]
    assert longest["account"] == "input_wait"
    assert longest["place"].startswith("generator test_callback_places.py:")
    assert longest["place"].endswith(" slow_batches")
    assert_closed(out)


def test_waiting_for_a_python_dataset_names_its_class(out):
    class SlowData(keras.utils.PyDataset):
        def __len__(self):
            return 24

        def __getitem__(self, index):
            time.sleep(2 * STALL_S)
            return X[:BATCH], Y[:BATCH]

    # While the first step is traced the queues fill: the window begins when they are empty.
    data = SlowData(workers=2, max_queue_size=1)
    tiny().fit(data, verbose=0, callbacks=[timesink.Callback(out, start=10, steps=10)])
    longest = summary_of(out)["accounts"][0]
    assert longest["account"] == "input_wait"
    assert longest["place"].startswith("PyDataset SlowData, test_callback_places.py:")


def test_python_called_from_a_train_step_is_named(out):
    def nap(images):
        time.sleep(STALL_S)
        return images

    class Napping(keras.Model):
        def train_step(self, data):
            images, labels = data
            images = tf.ensure_shape(tf.py_function(nap, [images], tf.float32), images.shape)
            return super().train_step((images, labels))

    inputs = keras.Input((12, 12, 3))
    model = Napping(inputs, keras.layers.Dense(10, name="fc")(keras.layers.Flatten()(inputs)))
    model.compile("sgd", LOSS(from_logits=True))
    fit(model, callback(out))
    longest = summary_of(out)["accounts"][0]
    assert longest["account"] == "python"
    assert longest["place"].startswith("py_function test_callback_places.py:")
    assert longest["place"].endswith(" nap")
    assert_closed(out)


def test_a_slow_metric_is_charged_to_the_loss_and_named(out):
    def slow_accuracy(labels, logits):
        def compare(labels, logits):
            time.sleep(STALL_S)
            return np.float32(0)

        return tf.ensure_shape(tf.numpy_function(compare, [labels, logits], tf.float32), ())

    fit(tiny(metrics=[slow_accuracy]), callback(out))
    longest = summary_of(out)["accounts"][0]
    assert longest["account"] == "loss"
    assert longest["place"].endswith(" compare")


def test_an_eager_training_closes_and_says_what_cannot_be_seen(out):
    class SlowMetric(keras.metrics.Mean):
        def update_state(self, labels, logits, sample_weight=None):
            time.sleep(2 * STALL_S)

    fit(tiny(run_eagerly=True, metrics=[SlowMetric()]), callback(out))
    # Not the longest of all: beside other work, what is eager in `fit` takes Python as long.
    stalls_ms = [
        row["charged_ms"]
        for row in summary_of(out)["accounts"]
        if row["account"] == "python" and (row["place"] or "").endswith(" update_state")
    ]
    assert sum(stalls_ms) > 1_000 * STALL_S
    (note,) = summary_of(out)["notes"]
    assert note.startswith("run_eagerly: ")
    assert_closed(out)


def test_slow_work_between_epochs_is_in_no_step_and_named(out):
    class SlowEnd(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            time.sleep(5 * STALL_S)

    fit(tiny(), SlowEnd(), callback(out), epochs=2)
    summary = summary_of(out)
    assert summary["hooks"][0]["place"] == "callback SlowEnd.on_epoch_end"
    seconds = {row["account"]: row["s"] for row in summary["run_accounts"]}
    assert seconds["epoch_gap"] >= summary["hooks"][0]["s"]
    assert not any("SlowEnd" in (row["place"] or "") for row in summary["accounts"])
