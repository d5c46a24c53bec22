"""`timesink.Callback` in fits as strangers write them: what is counted, and what is left behind."""

import gc
import threading

import keras
import polars as pl
import pytest
import tensorflow as tf

import timesink
from tests.runs.training import (
    BATCH,
    BATCHES,
    LOSS,
    At,
    X,
    Y,
    assert_closed,
    books_of,
    fit,
    layers_in,
    steps_of,
    summary_of,
    tiny,
)
from timesink.errors import ExperimentError, OutputExistsError

pytestmark = pytest.mark.filterwarnings("ignore:`shuffle", "ignore:Your input ran out")


@pytest.fixture(autouse=True)
def _the_process_is_left_as_found():
    before = (keras.layers.Layer._open_name_scope, list(gc.callbacks), threading.active_count())
    yield
    after = (keras.layers.Layer._open_name_scope, list(gc.callbacks), threading.active_count())
    assert after == before
    with pytest.raises(tf.errors.UnavailableError):
        tf.profiler.experimental.stop()


def interrupt():
    raise KeyboardInterrupt


def fail():
    raise ValueError("no good")


def test_a_fit_gets_a_run_whose_books_close_and_name_the_layers(tmp_path):
    out = tmp_path / "run"
    history = fit(tiny(metrics=["accuracy"]), timesink.Callback(out))
    summary = summary_of(out)
    assert (summary["status"], summary["network"], summary["steps"]) == ("complete", "tiny", 12)
    assert summary["attached"] == "keras.Model.fit"
    assert summary["attribution"] == "optimized graph"
    assert {"conv", "fc"} <= layers_in(out) <= {"conv", "flat", "fc"}
    assert summary["loss"] == pytest.approx(history.history["loss"][-1], abs=1e-5)
    assert summary["top1"] == pytest.approx(history.history["accuracy"][-1], abs=1e-5)
    assert summary["retraces"] == 0
    assert_closed(out)


def test_nested_and_shared_layers_are_told_apart(tmp_path):
    inner = keras.Sequential([keras.layers.Conv2D(3, 3, padding="same", name="conv")], name="twice")

    class Net(keras.Model):
        def __init__(self):
            super().__init__(name="net")
            self.inner = inner
            self.out = keras.layers.Dense(10, name="out")

        def call(self, x):
            return self.out(keras.ops.mean(self.inner(self.inner(x)), axis=(1, 2)))

    model = Net()
    callback = timesink.Callback(tmp_path / "run")
    model.compile("adam", LOSS(from_logits=True))
    fit(model, callback)
    assert {"twice/conv", "out"} <= layers_in(tmp_path / "run")
    assert_closed(tmp_path / "run")


def test_steps_count_iterations_where_one_call_executes_four(tmp_path):
    model = tiny(steps_per_execution=4)
    few = slice(0, 10 * BATCH - 3)
    model.fit(
        X[few],
        Y[few],
        batch_size=BATCH,
        epochs=3,
        verbose=0,
        callbacks=[timesink.Callback(tmp_path / "run")],
    )
    steps = steps_of(tmp_path / "run")
    assert steps["executed"].to_list() == [4, 4, 2] * 3
    assert steps["iteration"].to_list() == [1, 5, 9, 11, 15, 19, 21, 25, 29]
    assert steps["images"].to_list() == [32, 32, 13] * 3
    summary = summary_of(tmp_path / "run")
    assert (summary["steps"], summary["steps_per_execution"]) == (30, 4)
    table = pl.read_csv(tmp_path / "run" / "summary.csv")
    assert table.filter(percent=100, skipped=0)["iterations"].item() == 30
    assert table.filter(percent=100, skipped=20)["iterations"].item() == 10
    assert_closed(tmp_path / "run")


@pytest.mark.parametrize("executed", [1, 4])
def test_data_of_unknown_length_end_without_a_step_too_many(tmp_path, executed):
    def batches():
        for size in (8, 8, 8, 8, 8, 8, 8, 8, 8, 5):
            yield X[:size], Y[:size]

    model = tiny(steps_per_execution=executed)
    model.fit(batches(), verbose=0, callbacks=[timesink.Callback(tmp_path / "run", start=1)])
    assert summary_of(tmp_path / "run")["steps"] == 10
    assert steps_of(tmp_path / "run")["images"].sum() == 77
    assert_closed(tmp_path / "run")


def test_the_images_of_a_dataset_are_counted(tmp_path):
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(7)
    tiny().fit(data, verbose=0, epochs=2, callbacks=[timesink.Callback(tmp_path / "run")])
    assert steps_of(tmp_path / "run")["images"].to_list() == ([7] * 13 + [5]) * 2


def test_a_model_that_was_trained_before_is_traced_anew_for_its_layers(tmp_path):
    model = tiny()
    fit(model)
    fit(model, timesink.Callback(tmp_path / "run"))
    assert {"conv", "fc"} <= layers_in(tmp_path / "run")
    assert summary_of(tmp_path / "run")["attribution"] == "optimized graph"


def test_a_second_fit_is_the_second_process_of_the_run(tmp_path):
    callback = timesink.Callback(tmp_path / "run")
    fit(tiny(), callback)
    other = keras.Sequential(
        [keras.Input((12, 12, 3)), keras.layers.Flatten(), *[keras.layers.Dense(10, name="only")]]
    )
    other.compile("sgd", LOSS(from_logits=True))
    fit(other, callback)
    steps = steps_of(tmp_path / "run")
    assert steps["iteration"].to_list() == list(range(1, 2 * BATCHES + 1))
    assert steps["process"].to_list() == [1] * BATCHES + [2] * BATCHES
    assert {"conv", "fc", "only"} <= layers_in(tmp_path / "run")


def test_a_callback_may_be_passed_bare(tmp_path):
    tiny().fit(X, Y, BATCH, verbose=0, callbacks=timesink.Callback(tmp_path / "run"))
    steps = steps_of(tmp_path / "run")
    assert steps.height == BATCHES
    assert steps["loss"].null_count() == 0


def test_two_callbacks_in_one_fit_share_the_profiler_and_say_who_had_it(tmp_path):
    fit(tiny(), timesink.Callback(tmp_path / "a"), timesink.Callback(tmp_path / "b"))
    a, b = summary_of(tmp_path / "a"), summary_of(tmp_path / "b")
    assert (a["steps"], b["steps"]) == (BATCHES, BATCHES)
    assert sorted(bool(run["traced_steps"]) for run in (a, b)) == [False, True]
    assert [*a["notes"], *b["notes"]] == ["not traced: another profiler is running in this process"]


def test_a_window_waits_for_somebody_elses_profiler(tmp_path):
    begin = At(1, lambda: tf.profiler.experimental.start(str(tmp_path / "theirs")))
    end = At(6, lambda: tf.profiler.experimental.stop(save=False))
    fit(tiny(), begin, end, timesink.Callback(tmp_path / "run", start=4, steps=6))
    assert set(books_of(tmp_path / "run")["iteration"]) <= {8, 9, 10}
    assert_closed(tmp_path / "run")


@pytest.mark.parametrize(("action", "status"), [(fail, "failed"), (interrupt, "stopped")])
def test_a_fit_that_raises_ends_its_run_and_the_next_one_works(
    tmp_path, monkeypatch, action, status
):
    monkeypatch.setattr("timesink.engines.tensorflow.fit_watch.EVERY_S", 20)
    bad = At(8, action)
    with pytest.raises((ValueError, KeyboardInterrupt)) as raised:
        fit(tiny(), bad, timesink.Callback(tmp_path / "bad", start=2, steps=9))
    # The traceback is kept, as a notebook keeps it.
    fit(tiny(), timesink.Callback(tmp_path / "good"))
    assert summary_of(tmp_path / "bad")["status"] == status
    assert "on_train_batch_end" not in vars(bad)
    assert summary_of(tmp_path / "bad")["steps"] == 9
    assert summary_of(tmp_path / "good")["traced_steps"] > 0
    if action is fail:
        assert summary_of(tmp_path / "bad")["error"] == "ValueError: no good"
    assert raised.tb is not None


def test_a_run_ends_soon_after_its_fit_raised_though_the_traceback_is_kept(tmp_path):
    with pytest.raises(ValueError, match="no good") as raised:
        fit(tiny(), At(8, fail), timesink.Callback(tmp_path / "run", start=2, steps=9))
    for thread in threading.enumerate():
        if thread.name == "timesink-fit-watch":
            thread.join(60)
            assert not thread.is_alive()
    assert summary_of(tmp_path / "run")["status"] == "failed"
    assert raised.tb is not None


def test_validation_checkpoints_and_gaps_have_accounts_of_their_own(tmp_path):
    keeping = keras.callbacks.ModelCheckpoint(tmp_path / "model.keras")
    stopping = keras.callbacks.EarlyStopping("loss", min_delta=100, patience=1)
    fit(
        tiny(),
        keeping,
        stopping,
        timesink.Callback(tmp_path / "run"),
        epochs=5,
        validation_data=(X[:16], Y[:16]),
        validation_freq=2,
        class_weight=dict.fromkeys(range(10), 1.0),
    )
    summary = summary_of(tmp_path / "run")
    accounts = {row["account"] for row in summary["run_accounts"]}
    assert {"tracing", "steps", "epoch_gap", "validation", "checkpoint", "profile"} <= accounts
    assert summary["retraces"] == 0  # the function of the validation is none of training's
    hooks = {row["place"]: row["calls"] for row in summary["hooks"]}
    assert hooks["callback ModelCheckpoint.on_epoch_end"] == summary["epochs"] == 2
    process = summary["processes"][0]
    assert sum(process["accounts_ns"].values()) == round(process["wall_s"] * 1e9)


def test_an_existing_directory_is_refused_before_the_training(tmp_path):
    fit(tiny(), timesink.Callback(tmp_path / "run", mode="off"))
    with pytest.raises(OutputExistsError, match="force=True overwrites it"):
        timesink.Callback(tmp_path / "run")
    fit(tiny(), timesink.Callback(tmp_path / "run", mode="off", force=True))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("…")
    with pytest.raises(OutputExistsError, match="is not a run"):
        timesink.Callback(tmp_path / "mine", force=True)


def test_a_wrong_key_is_named(tmp_path):
    with pytest.raises(ExperimentError, match=r"profile\.steps"):
        timesink.Callback(tmp_path / "run", steps=0)


def test_an_error_of_the_tool_fails_no_training(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        "timesink.engines.tensorflow.callback.network_facts", lambda *_: {}["not there"]
    )
    history = fit(tiny(), timesink.Callback(tmp_path / "run"))
    assert len(history.history["loss"]) == 1
    assert "stopped observing, training goes on" in capsys.readouterr().err


def test_the_public_surface():
    assert timesink.__all__ == ["Callback", "__version__", "capture", "pipeline"]
