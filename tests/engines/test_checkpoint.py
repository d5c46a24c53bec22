"""Checkpoints: whole or absent, the last k kept, and refused when they do not fit."""

import keras
import numpy as np
import pytest

from timesink.engines.tensorflow import checkpoint
from timesink.engines.tensorflow.checkpoint import Progress
from timesink.errors import RunFileError


def variables(*shapes):
    return [keras.Variable(np.random.default_rng(0).random(shape)) for shape in shapes]


def save(directory, iteration, values, keep=3):
    return checkpoint.save(directory, Progress(iteration, iteration * 8, (3,), "abc"), values, keep)


def test_what_was_saved_comes_back(tmp_path):
    values = [*variables((3, 4), (), (2,)), keras.Variable(7, dtype="int64")]
    save(tmp_path, 5, values)
    fresh = [keras.Variable(np.zeros(v.shape), dtype=v.dtype) for v in values]
    assert checkpoint.restore(tmp_path, fresh) == Progress(5, 40, (3,), "abc")
    for before, after in zip(values, fresh, strict=True):
        assert np.array_equal(before, after)
        assert before.dtype == after.dtype


def test_only_the_last_are_kept(tmp_path):
    values = variables((2,))
    for iteration in (9, 10, 11, 100):
        save(tmp_path, iteration, values, keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00000011", "00000100"]
    assert checkpoint.restore(tmp_path, values).iteration == 100


def test_without_a_checkpoint_there_is_nothing_to_restore(tmp_path):
    assert checkpoint.restore(tmp_path / "none", variables((2,))) is None


def test_what_was_being_written_does_not_count(tmp_path):
    values = variables((2,))
    save(tmp_path, 5, values)
    (tmp_path / ".00000006.123-abcd.tmp").mkdir()
    assert checkpoint.restore(tmp_path, values).iteration == 5
    save(tmp_path, 7, values)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("name", ["variables.npy", "state.json"])
def test_a_damaged_checkpoint_is_named(tmp_path, name):
    values = variables((200,))
    file = save(tmp_path, 5, values) / name
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(RunFileError, match="00000005: not a whole checkpoint"):
        checkpoint.restore(tmp_path, values)


def test_a_checkpoint_of_another_network_is_refused(tmp_path):
    save(tmp_path, 5, variables((3, 4)))
    with pytest.raises(RunFileError, match="the network has changed"):
        checkpoint.restore(tmp_path, variables((3, 5)))


def test_a_checkpoint_never_unpickles(tmp_path):
    values = variables((2,))
    folder = save(tmp_path, 5, values)
    np.save(folder / "variables.npy", np.array([print], dtype=object), allow_pickle=True)
    with pytest.raises(RunFileError, match="not a whole checkpoint"):
        checkpoint.restore(tmp_path, values)
