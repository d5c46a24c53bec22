"""Policies: which operations are drawn, how often, how strong; by recording ones in their place."""

import math
from itertools import pairwise

import numpy as np
import pytest
import tensorflow as tf

from timesink.loaders import tfaugment
from timesink.loaders.tfstages import apply_stage
from timesink.pipelines import augmentations
from timesink.pipelines.augmentations import AUTOAUGMENT_IMAGENET, PBA, RANDAUGMENT, strength
from timesink.pipelines.kinds import parse_stage

KEYS = 4000
SIZE = 20
NAMES = sorted({*RANDAUGMENT, *PBA, "invert"})


def recording(name):
    """Give an operation that writes its name and strength into the first row of the image."""

    def operation(image, strength, *place):
        value = tf.bitcast(tf.cast(strength, tf.float32), tf.uint8)
        row = tf.concat([np.uint8([NAMES.index(name) + 1]), value], axis=0)
        row = tf.pad(row, [[0, SIZE * 3 - 5]])
        return tf.concat([tf.reshape(row, [1, SIZE, 3]), image[:-1]], axis=0)

    return operation


@pytest.fixture
def drawn(monkeypatch):
    """Draw under many keys; gives, key by key, what an image met: (operation, strength) in turn."""
    for name in NAMES:
        if name != "cutout":
            monkeypatch.setitem(tfaugment.OPERATIONS, name, recording(name))
    monkeypatch.setitem(tfaugment.OPERATIONS, "identity", lambda image, _: tf.identity(image))
    monkeypatch.setattr(tfaugment, "cutout", recording("cutout"))

    def draw(text, *, keys=KEYS, epoch=0, seed=3):
        stage = parse_stage(text)

        @tf.autograph.experimental.do_not_convert
        def make(number):
            image = tf.zeros([SIZE, SIZE, 3], tf.uint8)
            key = tf.stack([np.int64(seed), np.int64(epoch * tfaugment.EPOCH) + number])
            return apply_stage(stage, image, key, SIZE)

        images = tf.data.Dataset.range(keys).map(make, num_parallel_calls=2).batch(keys)
        rows = next(iter(images)).numpy()[:, ::-1].reshape(keys, SIZE, -1)
        met = []
        for image in rows:
            done = image[image[:, 0] > 0]
            values = np.ascontiguousarray(done[:, 1:5]).view(np.float32)[:, 0]
            met.append(
                [
                    (NAMES[number - 1], float(value))
                    for number, value in zip(done[:, 0], values, strict=True)
                ]
            )
        return met

    return draw


def counted(met):
    names = [name for image in met for name, _ in image]
    return {name: names.count(name) for name in set(names)}


def within(count, expected_share, of):
    """Whether a count is what a share leaves to chance: five deviations, one in a million."""
    deviation = math.sqrt(of * expected_share * (1 - expected_share))
    return abs(count - of * expected_share) <= 5 * deviation + 1e-9


# RandAugment


def test_randaugment_draws_every_operation_equally_often(drawn):
    met = drawn("randaugment(3, 9)")
    counts = counted(met)
    assert set(counts) == set(RANDAUGMENT) - {"identity"}
    assert all(within(count, 1 / len(RANDAUGMENT), 3 * KEYS) for count in counts.values())
    nothing = 3 * KEYS - sum(counts.values())
    assert within(nothing, 1 / len(RANDAUGMENT), 3 * KEYS)


@pytest.mark.parametrize("magnitude", [0, 9, 30])
def test_randaugment_has_one_magnitude_and_either_sign(drawn, magnitude):
    for_name = {}
    for image in drawn(f"randaugment(2, {magnitude})"):
        for name, value in image:
            for_name.setdefault(name, []).append(value)
    for name, values in for_name.items():
        scaled = strength(name, magnitude / 30, SIZE)
        expected = {np.float32(value) for value in scaled.both}
        assert set(np.float32(values)) == expected
        if len(expected) == 2:
            above = sum(value > scaled.offset for value in values)
            assert within(above, 0.5, len(values))


def test_the_layers_of_an_image_are_drawn_apart(drawn):
    met = drawn("randaugment(2, 30)")
    both = [image for image in met if len(image) == 2]
    same = sum(image[0][0] == image[1][0] for image in both)
    assert within(same, 1 / 13, len(both))


def test_a_draw_is_of_seed_epoch_and_image(drawn):
    first = drawn("randaugment(2)", keys=300)
    assert drawn("randaugment(2)", keys=300) == first
    for other in ({"epoch": 1}, {"seed": 4}):
        again = drawn("randaugment(2)", keys=300, **other)
        same = sum(a == b for a, b in zip(first, again, strict=True))
        assert same < 30
    neighbours = sum(a == b for a, b in pairwise(first))
    assert neighbours < 30


def test_magnitudes_are_torchvisions():
    assert strength("rotate", 9 / 30, 224).both == pytest.approx((9, -9))
    assert strength("shear_y", 1, 224).both == (0.3, -0.3)
    assert strength("translate_x", 1, 331).both == (150, -150)
    assert [strength("translate_x", m / 30, 331).both[0] for m in (11, 22)] == [55, 110]
    assert strength("translate_y", 0.3, 224).both == (30, -30)
    assert strength("posterise", 9 / 30, 224).both == (7, 7)
    assert strength("posterise", 1, 224).both == (4, 4)
    assert strength("solarise", 0, 224).both == (255, 255)
    assert strength("solarise", 1, 224).both == (0, 0)
    assert strength("colour", 9 / 30, 224).both == pytest.approx((1.27, 0.73))


# AutoAugment


def test_autoaugment_meets_its_policy_as_often_as_it_says(drawn):
    met = drawn("autoaugment")
    expected = dict.fromkeys(NAMES, 0.0)
    for pair in AUTOAUGMENT_IMAGENET:
        for name, likelihood, _ in pair:
            expected[name] += likelihood / len(AUTOAUGMENT_IMAGENET)
    counts = counted(met)
    for name, mean in expected.items():
        # An image meets it at most twice, so its variance is at most twice its mean.
        assert abs(counts.get(name, 0) - KEYS * mean) <= 5 * math.sqrt(2 * KEYS * mean) + 1e-9


def test_autoaugment_takes_its_operations_from_one_pair(drawn):
    allowed = [
        [
            (name, {np.float32(v) for v in strength(name, level / 9, SIZE).both})
            for name, _, level in pair
        ]
        for pair in AUTOAUGMENT_IMAGENET
    ]
    for image in drawn("autoaugment", keys=1500):
        assert any(
            _is_part_of([(name, np.float32(value)) for name, value in image], pair)
            for pair in allowed
        )


def _is_part_of(met, pair):
    """Whether these are, in order, some of a pair."""
    rest = iter(pair)
    return all(any(name == n and value in values for n, values in rest) for name, value in met)


# Population Based Augmentation


def test_the_published_schedule_is_whole():
    assert sum(epochs for epochs, _ in augmentations.PBA_CIFAR10) == 200
    for _, digits in augmentations.PBA_CIFAR10:
        assert len(digits) == 4 * len(PBA)
        assert all(0 <= digit <= 10 for digit in digits)


@pytest.mark.parametrize(("text", "epoch"), [("pba(200)", 11), ("pba(100)", 5)])
def test_pba_begins_with_nothing(drawn, text, epoch):
    assert all(image == [] for image in drawn(text, keys=200, epoch=epoch))
    assert any(image for image in drawn(text, keys=200, epoch=epoch + 1))


@pytest.mark.parametrize("epoch", [20, 90, 199, 1000])
def test_pba_meets_what_its_schedule_says_of_the_epoch(drawn, epoch):
    ends = np.cumsum([epochs for epochs, _ in augmentations.PBA_CIFAR10])
    phase = min(int(np.searchsorted(ends, epoch, side="right")), len(ends) - 1)
    digits = np.array(augmentations.PBA_CIFAR10[phase][1]).reshape(-1, 2)
    counts = counted(drawn("pba(200)", epoch=epoch))
    expected = _by_simulation(digits[:, 0] / 10)
    for number, name in enumerate(PBA):
        share = expected[number]
        assert abs(counts.get(name, 0) / KEYS - share) <= 6 * math.sqrt(share / KEYS) + 0.004


def _by_simulation(likely, images=40_000):
    """Count, by the published algorithm, how often an image meets each operation."""
    generator = np.random.default_rng(0)
    met = np.zeros(len(PBA))
    for count in generator.choice(3, images, p=augmentations.PBA_COUNTS):
        left = count
        for number in generator.permutation(len(likely)):
            if left == 0:
                break
            if generator.random() < likely[number]:
                met[number % len(PBA)] += 1
                left -= 1
    return met / images


def test_pba_meets_none_one_or_two(drawn):
    lengths = [len(image) for image in drawn("pba(200)", epoch=199)]
    assert max(lengths) == 2
    # So many are likely then that hardly ever too few are met.
    assert abs(lengths.count(0) / KEYS - 0.2) < 0.04
    assert abs(lengths.count(2) / KEYS - 0.5) < 0.05


# AugMix


def mixtures(monkeypatch, text, operation, keys=3000):
    for name in augmentations.AUGMIX:
        monkeypatch.setitem(tfaugment.OPERATIONS, name, operation)
    monkeypatch.setattr(tfaugment, "INTERPOLATED", {})
    stage = parse_stage(text)

    @tf.autograph.experimental.do_not_convert
    def make(number):
        image = tf.fill([4, 4, 3], tf.constant(100, tf.uint8))
        return apply_stage(stage, image, tf.stack([np.int64(5), number]), 4)[0, 0, 0]

    return next(iter(tf.data.Dataset.range(keys).map(make).batch(keys))).numpy()


@pytest.mark.parametrize(("policy", "between"), [("augmix", 3), ("randaugment(1)", 0), ("pba", 0)])
def test_augmix_alone_turns_and_slants_between_pixels(monkeypatch, policy, between):
    asked = []
    for name, operation in list(tfaugment.INTERPOLATED.items()):
        monkeypatch.setitem(
            tfaugment.INTERPOLATED,
            name,
            lambda image, strength, do=operation: asked.append(1) or do(image, strength),
        )
    image = tf.zeros([8, 8, 3], tf.uint8)
    apply_stage(parse_stage(policy), image, tf.constant([5, 1], tf.int64), 8)
    assert len(asked) == between  # a branch each


def test_augmix_weighs_its_chains_to_one(monkeypatch):
    made = mixtures(monkeypatch, "augmix", lambda image, _: tf.identity(image))
    np.testing.assert_allclose(made, 100, rtol=1e-5)


def test_augmix_keeps_a_uniform_share_of_the_image(monkeypatch):
    kept = mixtures(monkeypatch, "augmix", lambda image, _: tf.zeros_like(image)) / 100
    assert (kept.min() >= 0) and (kept.max() <= 1)
    assert np.quantile(kept, [0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=0.05)


def test_augmix_chains_have_one_to_depth_operations(monkeypatch):
    added = mixtures(monkeypatch, "augmix(3, 1, 3)", lambda image, _: image + np.uint8(10)) - 100
    # A share that is uniform times 10, 20 or 30.
    assert added.mean() == pytest.approx(10, abs=0.6)
    assert 20 < added.max() <= 30
    alone = mixtures(monkeypatch, "augmix(3, 1, 1)", lambda image, _: image + np.uint8(10)) - 100
    assert 9 < alone.max() <= 10


# Filling


def test_cutout_fills_a_square_about_its_place():
    image = np.full((10, 12, 3), 7, np.uint8)
    filled = tfaugment.cutout(tf.constant(image), tf.constant(4.0), tf.constant([0.5, 0.0])).numpy()
    expected = image.copy()
    expected[3:7, 0:2] = tfaugment.CUTOUT_FILL
    assert np.array_equal(filled, expected)


def erased(text, keys=3000):
    stage = parse_stage(text)

    @tf.autograph.experimental.do_not_convert
    def make(number):
        image = tf.ones([40, 60, 3])
        return apply_stage(stage, image, tf.stack([np.int64(5), number]), 4)

    return next(iter(tf.data.Dataset.range(keys).map(make).batch(keys))).numpy()


def test_random_erasing_erases_one_part_as_likely_as_asked():
    made = erased("random_erasing(0.3)")
    holes = made == 0
    assert set(np.unique(made)) == {0, 1}
    assert np.array_equal(holes.all(axis=-1), holes.any(axis=-1))
    holes = holes[..., 0]
    assert within(int(holes.any(axis=(1, 2)).sum()), 0.3, len(made))
    for hole in holes[holes.any(axis=(1, 2))]:
        rows, columns = np.flatnonzero(hole.any(axis=1)), np.flatnonzero(hole.any(axis=0))
        assert hole.sum() == len(rows) * len(columns)
        assert rows[-1] - rows[0] == len(rows) - 1
        assert columns[-1] - columns[0] == len(columns) - 1
        assert 0.015 <= hole.mean() <= 0.35


def test_random_erasing_draws_areas_evenly():
    areas = (erased("random_erasing(1, 0.1, 0.3, 1, 1)") == 0).mean(axis=(1, 2, 3))
    assert areas.min() > 0.08
    assert areas.max() < 0.32
    assert np.median(areas) == pytest.approx(0.2, abs=0.02)


def test_random_erasing_never_erases_where_it_should_not():
    assert (erased("random_erasing(0)", keys=200) == 1).all()
