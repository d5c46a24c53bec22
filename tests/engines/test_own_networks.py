"""A network of the user's own: which kinds work, and what they are taken for."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from timesink.engines.tensorflow.networks import Network, build_network
from timesink.experiment import TrainingSection

SIZE, CLASSES = 16, 5
Written = Callable[..., Network]


def test_a_function_gets_the_shape_and_the_classes(written: Written) -> None:
    network = written(
        """
        def net(input_shape, classes):
            images = keras.Input(input_shape)
            scores = layers.Dense(classes, name="scores")(layers.Flatten()(images))
            return keras.Model(images, scores)
        """
    )
    assert network.name == "mine:net"
    assert network.model.output_shape == (None, CLASSES)
    assert network.loss_weights == (1.0,)
    assert network.from_logits


def test_num_classes_and_keyword_only_parameters_are_given(written: Written) -> None:
    network = written(
        """
        def net(*, num_classes, input_shape, width=4):
            return keras.Sequential(
                [keras.Input(input_shape), layers.Flatten(), layers.Dense(num_classes)])
        """
    )
    assert network.model.output_shape == (None, CLASSES)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("**kwargs", {"input_shape", "classes"}),
        ("num_classes, **kwargs", {"input_shape"}),
        ("input_shape, **kwargs", {"classes"}),
    ],
)
def test_open_keywords_get_the_shape_and_one_number_of_classes(
    written: Written, parameters: str, expected: set[str]
) -> None:
    network = written(
        f"""
        def net({parameters}):
            assert set(kwargs) == {expected!r}, kwargs
            return keras.Sequential([layers.Flatten(), layers.Dense({CLASSES})])
        """
    )
    assert network.model.built


def test_a_function_without_parameters_is_called_without_any(written: Written) -> None:
    network = written(
        f"""
        def net():
            return keras.Sequential([keras.Input(({SIZE}, {SIZE}, 3)),
                                     layers.Flatten(), layers.Dense({CLASSES})])
        """
    )
    assert network.from_logits


def test_dropout_is_given_when_it_is_set_and_left_to_the_function_otherwise(
    written: Written,
) -> None:
    source = """
        def net(classes, dropout=0.25):
            return keras.Sequential(
                [layers.Flatten(), layers.Dropout(dropout), layers.Dense(classes)])
        """
    assert written(source, dropout=0.75).model.layers[1].rate == 0.75
    assert written(source).model.layers[1].rate == 0.25


def test_a_subclassed_model_is_built_by_a_call(written: Written) -> None:
    network = written(
        """
        class Net(keras.Model):
            def __init__(self, classes, **kwargs):
                super().__init__(**kwargs)
                self.normalise = layers.BatchNormalization()
                self.flatten = layers.Flatten()
                self.score = layers.Dense(classes, activation="softmax")
            def call(self, images):
                return self.score(self.flatten(self.normalise(images)))
        """,
        name="Net",
        synchronized_batch_norm=True,
    )
    assert len(network.model.trainable_variables) == 4
    assert not network.from_logits
    assert network.model.normalise.synchronized


def test_a_sequential_without_an_input_is_built_for_batches_of_any_size(written: Written) -> None:
    network = written(
        """
        def net(classes):
            return keras.Sequential([layers.Flatten(), layers.Dense(classes)])
        """
    )
    assert network.model.input_shape == (None, SIZE, SIZE, 3)


def test_a_compiled_model_in_the_module_works_and_keeps_its_weights(written: Written) -> None:
    network = written(
        f"""
        inner = keras.Sequential([keras.Input(({SIZE}, {SIZE}, 3)),
                                  layers.BatchNormalization(name="norm"), layers.Flatten()])
        net = keras.Sequential([inner, layers.Dense({CLASSES}, kernel_initializer="ones")])
        net.compile("sgd", "mse")
        """,
        synchronized_batch_norm=True,
    )
    assert np.all(network.model.layers[-1].kernel.numpy() == 1)
    assert network.model.layers[0].get_layer("norm").synchronized


@pytest.mark.parametrize(
    ("end", "from_logits"),
    [
        ("layers.Dense(classes)", True),
        ("layers.Dense(classes, activation='relu')", True),
        ("layers.Dense(classes, activation='log_softmax')", True),
        ("layers.Dense(classes, activation='softmax')", False),
        ("layers.Dense(classes), layers.Softmax()", False),
        ("layers.Dense(classes), layers.Activation('softmax', dtype='float32')", False),
        ("layers.Dense(classes, activation='softmax'), layers.Activation('linear')", False),
        ("keras.Sequential([layers.Dense(classes), layers.Softmax()])", False),
    ],
)
def test_a_softmax_is_told_from_logits(written: Written, end: str, from_logits: bool) -> None:
    network = written(
        f"""
        def net(classes):
            return keras.Sequential([layers.Flatten(), {end}])
        """
    )
    assert network.from_logits is from_logits


def test_more_outputs_are_auxiliary(written: Written) -> None:
    network = written(
        """
        def net(input_shape, classes):
            images = keras.Input(input_shape)
            flat = layers.Flatten()(images)
            return keras.Model(images, [layers.Dense(classes)(flat) for _ in range(3)])
        """
    )
    assert network.loss_weights == (1.0, 0.3, 0.3)


def test_a_module_in_a_package_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lab_of_mine"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "nets.py").write_text(
        "import keras\ndef net(classes):\n"
        "    return keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(classes)])\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    training = TrainingSection(network="lab_of_mine.nets:net")
    assert build_network(training, SIZE, CLASSES).model.output_shape == (None, CLASSES)
