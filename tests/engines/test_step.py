"""One training step in all its forms: it learns, and its figures are what they are called."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from timesink.engines.tensorflow.networks.network import Network
from timesink.engines.tensorflow.optimizers import build_optimizer
from timesink.engines.tensorflow.step import make_train_step, make_validation_step
from timesink.experiment import load

CLASSES, BATCH = 4, 16


@pytest.fixture(autouse=True)
def float32():
    yield
    keras.config.set_dtype_policy("float32")


def trained(*settings, softmax=False, steps=30):
    """Train a small network on one batch; gives the figures of each step and the tools."""
    asked = load(None, [f"training.batch_size={BATCH}", "training.learning_rate=0.05", *settings])
    training = asked.training
    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy(training.precision)
    x = keras.Input((8, 8, 3))
    y = keras.layers.Conv2D(8, 3, activation="relu")(x)
    y = keras.layers.Flatten()(y)
    activation = "softmax" if softmax else None
    y = keras.layers.Dense(CLASSES, activation=activation, dtype="float32")(y)
    network = Network("small", keras.Model(x, y), (1.0,), from_logits=not softmax)
    optimizer = build_optimizer(training, 10, 100)
    optimizer.build(network.model.trainable_variables)
    traces = []
    step = make_train_step(
        network,
        optimizer,
        tf.distribute.get_strategy(),
        training,
        CLASSES,
        lambda: traces.append(1),
    )
    rng = np.random.default_rng(0)
    labels = tf.constant(rng.integers(0, CLASSES, BATCH), tf.int32)
    images = tf.constant(rng.random((BATCH, 8, 8, 3)), tf.float32)
    figures = [step(images, labels).numpy() for _ in range(steps)]
    assert len(traces) == min(steps, 1)
    return np.array(figures), network, training, (images, labels)


@pytest.mark.parametrize(
    "settings",
    [
        ["training.optimizer=sgd"],
        ["training.optimizer=adam", "training.learning_rate=0.01"],
        ["training.optimizer=adamw", "training.learning_rate=0.01", "training.weight_decay=0.01"],
        ["training.optimizer=rmsprop", "training.learning_rate=0.001"],
        ["training.schedule=cosine"],
        ["training.schedule=step", "training.decay_epochs=2"],
        ["training.schedule=exponential"],
        ["training.weight_decay=0.001"],
        ["training.label_smoothing=0.1"],
        ["training.precision=mixed_bfloat16"],
        ["training.precision=mixed_float16", "training.weight_decay=0.001"],
        ["training.xla=true"],
    ],
    ids=lambda settings: ",".join(s.removeprefix("training.") for s in settings),
)
def test_every_form_of_the_step_learns_one_batch_by_heart(settings):
    figures, *_ = trained(*settings, steps=60)
    assert figures[-1, 0] < 0.7 * figures[0, 0]
    assert figures[-1, 1] > figures[0, 1]


def test_probabilities_and_logits_give_the_same_losses():
    logits, *_ = trained(steps=5)
    probabilities, *_ = trained(softmax=True, steps=5)
    assert probabilities == pytest.approx(logits, rel=1e-3)


def test_the_figures_are_the_mean_loss_and_the_shares_of_hits():
    figures, _, _, (images, answers) = trained("training.topn=2", steps=1)
    labels = answers.numpy()
    output = trained("training.topn=2", steps=0)[1].model(images).numpy()
    likely = np.argsort(-output, axis=1)
    exponent = np.exp(output - output.max(axis=1, keepdims=True))
    chance = (exponent / exponent.sum(axis=1, keepdims=True))[np.arange(BATCH), labels]
    expected = [
        -np.log(chance).mean(),
        (likely[:, 0] == labels).mean(),
        (likely[:, :2] == labels[:, None]).any(axis=1).mean(),
    ]
    assert figures[0] == pytest.approx(expected, rel=1e-4)


def test_top_n_of_fewer_classes_is_all_of_them():
    figures, *_ = trained("training.topn=50", steps=1)
    assert figures[0, 2] == 1.0


def test_weight_decay_shrinks_kernels_and_is_not_in_the_loss():
    plain, network, *_ = trained("training.learning_rate=1e-6", steps=40)
    decayed, shrunk, *_ = trained(
        "training.learning_rate=1e-6", "training.weight_decay=10000", steps=40
    )
    assert decayed[0] == pytest.approx(plain[0])
    for before, after in zip(network.model.weights, shrunk.model.weights, strict=True):
        if len(before.shape) > 1:
            assert np.abs(after).sum() < 0.5 * np.abs(before).sum()


def test_validation_sums_over_the_batch():
    figures, network, training, (images, labels) = trained(steps=20)
    step = make_validation_step(network, training, CLASSES)
    whole = step(images, labels).numpy()
    parts = step(images[:5], labels[:5]).numpy() + step(images[5:], labels[5:]).numpy()
    assert whole == pytest.approx(parts, rel=1e-4)
    assert whole[1] / BATCH >= figures[0, 1]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("softmax", [False, True])
def test_a_mixed_image_should_be_taken_for_both_of_its_classes(smoothing, softmax):
    _, network, training, (images, labels) = trained(
        f"training.label_smoothing={smoothing}", softmax=softmax, steps=0
    )
    others = (labels + 1) % CLASSES
    share = tf.linspace(0.0, 1.0, BATCH)
    pairs = tf.stack([tf.cast(labels, tf.float32), tf.cast(others, tf.float32), share], axis=1)
    output = network.model(images, training=True).numpy()
    likely = output if softmax else tf.nn.softmax(output).numpy()
    target = np.zeros((BATCH, CLASSES))
    for row, (label, other, part) in enumerate(pairs.numpy()):
        target[row, int(label)] += part
        target[row, int(other)] += 1 - part
    target = target * (1 - smoothing) + smoothing / CLASSES
    expected = -(target * np.log(likely)).sum(axis=1).mean()
    most = np.where(share >= 0.5, labels, others)
    hits = (likely.argmax(axis=1) == most).mean()
    optimizer = build_optimizer(training, 10, 100)
    optimizer.build(network.model.trainable_variables)
    step = make_train_step(
        network, optimizer, tf.distribute.get_strategy(), training, CLASSES, lambda: None
    )
    loss, top1, _ = step(images, pairs).numpy()
    assert loss == pytest.approx(expected, rel=1e-4)
    assert top1 == pytest.approx(hits)
