"""The networks that come with Timesink: their published sizes, their names, what they refuse."""

import math
import re
from collections.abc import Iterator

import keras
import numpy as np
import pytest
import tensorflow as tf

from timesink.engines.tensorflow.networks import Network, alexnet, build_network, published, vgg
from timesink.engines.tensorflow.optimizers import build_optimizer
from timesink.errors import NetworkError
from timesink.experiment import NETWORKS, TrainingSection

MINIMUM_SIZES = {
    "alexnet": 63,
    "vgg11": 32,
    "vgg16": 32,
    "googlenet": 32,
    "resnet50": 32,
    "mobilenetv2": 32,
}


def outline(image_size: int, classes: int, **training: object) -> Network:
    """A network whose weights have shapes and no values, which costs no memory."""
    with keras.StatelessScope(initialize_variables=False):
        return build_network(TrainingSection(**training), image_size, classes)


def parameters(variables: list[keras.Variable]) -> int:
    return sum(math.prod(variable.shape) for variable in variables)


def names(model: keras.Model, kind: type[keras.Layer] | tuple[type[keras.Layer], ...]) -> list[str]:
    return [layer.name for layer in model.layers if isinstance(layer, kind)]


@pytest.fixture(autouse=True)
def no_weights_left_over() -> Iterator[None]:
    yield
    # Keras keeps the weights without values, and gives all of them values at its next chance.
    keras.utils.clear_session()


@pytest.fixture
def mixed_policy() -> Iterator[None]:
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    yield
    keras.config.set_dtype_policy(before)


@pytest.mark.parametrize(
    ("network", "trainable", "all_weights"),
    [
        ("alexnet", 61_100_840, 61_100_840),
        ("vgg11", 132_863_336, 132_863_336),
        ("vgg16", 138_357_544, 138_357_544),
        ("googlenet", 13_004_888, 13_019_960),
        ("resnet50", 25_583_592, 25_636_712),
        ("mobilenetv2", 3_504_872, 3_538_984),
    ],
)
def test_a_network_has_the_published_number_of_parameters(
    network: str, trainable: int, all_weights: int
) -> None:
    model = outline(224, 1000, network=network).model
    assert parameters(model.trainable_variables) == trainable
    assert model.count_params() == all_weights


def test_the_main_way_of_googlenet_has_the_published_number_of_parameters() -> None:
    whole = outline(224, 1000, network="googlenet").model
    main = keras.Model(whole.inputs, whole.outputs[0])
    assert parameters(main.trainable_variables) == 6_624_904


@pytest.mark.parametrize(("network", "side", "map_side"), [("alexnet", 224, 6), ("vgg16", 224, 7)])
def test_at_224_pixels_the_feature_map_is_what_torchvision_pools_to(
    network: str, side: int, map_side: int
) -> None:
    model = outline(side, 10, network=network).model
    assert model.get_layer("flatten").input.shape[1:3] == (map_side, map_side)


@pytest.mark.parametrize(("network", "convolutions"), [("alexnet", 5), ("vgg11", 8), ("vgg16", 13)])
def test_the_layers_are_named_as_people_name_them(network: str, convolutions: int) -> None:
    model = outline(64, 10, network=network).model
    assert names(model, keras.layers.Conv2D) == [f"conv{i + 1}" for i in range(convolutions)]
    assert names(model, keras.layers.Dense) == ["fc1", "fc2", "output"]
    assert names(model, keras.layers.Dropout) == ["fc1_dropout", "fc2_dropout"]
    pools = 3 if network == "alexnet" else 5
    assert names(model, keras.layers.MaxPooling2D) == [f"pool{i + 1}" for i in range(pools)]


def test_the_activation_of_a_layer_is_in_the_layer() -> None:
    model = outline(64, 10, network="vgg11").model
    assert model.get_layer("conv3").activation is keras.activations.relu
    assert model.get_layer("fc1").activation is keras.activations.relu
    assert not names(model, (keras.layers.Activation, keras.layers.ReLU))


def test_googlenet_names_its_modules_and_heads() -> None:
    network = outline(64, 10, network="googlenet")
    assert network.model.output_names == ["output", "aux1_output", "aux2_output"]
    assert network.loss_weights == (1.0, 0.3, 0.3)
    assert {"conv1", "conv2", "conv3"} <= set(names(network.model, keras.layers.Conv2D))
    modules = [name.split("_")[1] for name in names(network.model, keras.layers.Concatenate)]
    assert modules == ["3a", "3b", "4a", "4b", "4c", "4d", "4e", "5a", "5b"]


@pytest.mark.parametrize("network", NETWORKS)
def test_a_second_build_in_a_process_has_the_same_layer_names(network: str) -> None:
    first, second = (outline(64, 10, network=network).model for _ in range(2))
    # The input of keras.applications is numbered; it runs nothing.
    assert [layer.name for layer in first.layers[1:]] == [layer.name for layer in second.layers[1:]]


@pytest.mark.parametrize("network", NETWORKS)
def test_the_smallest_size_builds_and_one_less_is_refused(network: str) -> None:
    minimum = MINIMUM_SIZES[network]
    outline(minimum, 10, network=network)
    with pytest.raises(NetworkError) as refused:
        outline(minimum - 1, 10, network=network)
    assert str(refused.value) == (
        f"{network} needs images of at least {minimum} pixels: "
        f"found {minimum - 1}; set pipeline.image_size"
    )


@pytest.mark.parametrize(
    ("build", "minimum"),
    [
        (alexnet.alexnet, alexnet.MINIMUM_SIZE),
        (vgg.vgg16, vgg.MINIMUM_SIZE),
        (published.resnet50, published.MINIMUM_SIZE),
        (published.mobilenetv2, published.MINIMUM_SIZE),
    ],
)
def test_a_smallest_size_is_the_one_that_keras_can_build(build: object, minimum: int) -> None:
    assert callable(build)
    with keras.StatelessScope(initialize_variables=False):
        try:
            model = build(minimum - 1, 10, None)
        except ValueError as error:
            assert re.search(r"[Nn]egative|at least|Input size", str(error))
        else:
            # Keras before 3.12 builds it, with a feature map of nothing.
            assert any(0 in layer.output.shape for layer in model.layers)
    keras.utils.clear_session()


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(("image_size", "classes"), [(75, 1), (97, 2), (200, 37)])
def test_any_size_and_number_of_classes(network: str, image_size: int, classes: int) -> None:
    built = outline(image_size, classes, network=network)
    assert built.model.input_shape == (None, image_size, image_size, 3)
    assert {output.shape for output in built.model.outputs} == {(None, classes)}
    assert len(built.loss_weights) == len(built.model.outputs)
    assert built.from_logits


@pytest.mark.parametrize("network", NETWORKS)
def test_a_dropout_rate_reaches_every_dropout_layer(network: str) -> None:
    model = outline(64, 10, network=network, dropout=0.35).model
    rates = [layer.rate for layer in model.layers if isinstance(layer, keras.layers.Dropout)]
    assert rates
    assert set(rates) == {0.35}


@pytest.mark.parametrize(
    ("network", "rates"),
    [
        ("alexnet", [0.5, 0.5]),
        ("googlenet", [0.2, 0.7, 0.7]),
        ("resnet50", []),
        ("vgg11", [0.5] * 2),
    ],
)
def test_without_a_rate_each_network_has_its_own(network: str, rates: list[float]) -> None:
    model = outline(64, 10, network=network).model
    found = [layer.rate for layer in model.layers if isinstance(layer, keras.layers.Dropout)]
    assert sorted(found) == rates


@pytest.mark.parametrize("network", ["googlenet", "resnet50", "mobilenetv2"])
def test_synchronized_batch_norm_changes_every_normalisation_and_nothing_else(network: str) -> None:
    plain = outline(64, 10, network=network).model
    synchronized = outline(64, 10, network=network, synchronized_batch_norm=True).model
    flags = [
        layer.synchronized
        for layer in synchronized.layers
        if isinstance(layer, keras.layers.BatchNormalization)
    ]
    assert len(flags) > 10
    assert all(flags)
    assert [layer.name for layer in plain.layers[1:]] == [
        layer.name for layer in synchronized.layers[1:]
    ]
    assert plain.count_params() == synchronized.count_params()


@pytest.mark.usefixtures("mixed_policy")
@pytest.mark.parametrize("network", ["alexnet", "googlenet", "mobilenetv2"])
def test_logits_are_float32_under_mixed_precision(network: str) -> None:
    model = outline(64, 10, network=network).model
    assert {output.dtype for output in model.outputs} == {"float32"}
    assert model.layers[1].compute_dtype == "bfloat16"


def test_one_seed_gives_one_set_of_weights() -> None:
    def weights(seed: int) -> list[np.ndarray]:
        keras.utils.set_random_seed(seed)
        return build_network(TrainingSection(network="mobilenetv2"), 32, 3).model.get_weights()

    first, again, other = weights(1), weights(1), weights(2)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize(("network", "image_size"), [("alexnet", 63), ("vgg11", 32)])
def test_a_network_without_normalisation_learns_from_scratch(network: str, image_size: int) -> None:
    keras.utils.set_random_seed(0)
    training = TrainingSection(network=network, dropout=0.0, learning_rate=0.01, momentum=0.9)
    built = build_network(training, image_size, 4)
    optimizer = build_optimizer(training, steps_per_epoch=1, total_steps=15)
    colours = np.float32([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])
    images = np.tile(colours[:, None, None], (1, image_size, image_size, 1))
    weights = built.model.trainable_variables

    @tf.function
    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            scores = built.model(images, training=True)
            losses = keras.ops.sparse_categorical_crossentropy(np.arange(4), scores, True)
            loss = tf.reduce_mean(losses)
        optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    losses = [float(step()) for _ in range(15)]
    assert losses[0] < 2 * math.log(4)
    assert losses[-1] < 0.8 * losses[0]
