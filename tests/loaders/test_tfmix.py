"""MixUp and CutMix: what is mixed, with whom, by which share, and what the labels say of it."""

import numpy as np
import pytest
import tensorflow as tf

from timesink.loaders.tfmix import batch_mixer
from timesink.pipelines.stages import parse_stages

COUNT, SIDE = 6, 12


def mixed(asked, first=0, seed=3):
    """Mix a batch whose image i is all i."""
    mix = batch_mixer(parse_stages(asked), seed)
    images = np.float32(np.arange(COUNT))[:, None, None, None] * np.ones((1, SIDE, SIDE, 3))
    positions = tf.range(first, first + COUNT, dtype=tf.int64)
    labels = tf.constant(10 + np.arange(COUNT), tf.int32)
    made, pairs, came = mix(tf.constant(images, tf.float32), labels, positions)
    assert np.array_equal(came, positions)
    return made.numpy(), pairs.numpy()


def test_without_such_a_stage_nothing_is_mixed():
    assert batch_mixer(parse_stages("basic+randaugment(2)"), 0) is None


def test_mixup_blends_two_images_by_the_share_of_the_label():
    shares = []
    for first in range(200):
        made, pairs = mixed("plain+mixup(1)", first)
        labels, others, share = pairs.T
        assert np.array_equal(labels, 10 + np.arange(COUNT))
        assert sorted(others) == sorted(labels)
        assert len(set(share)) == 1
        blend = share * (labels - 10) + (1 - share) * (others - 10)
        np.testing.assert_allclose(
            made, np.broadcast_to(blend[:, None, None, None], made.shape), atol=1e-5
        )
        shares.append(share[0])
    assert np.quantile(shares, [0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=0.12)


def test_a_small_alpha_mixes_little():
    shares = np.array([mixed("plain+mixup(0.1)", first)[1][0, 2] for first in range(200)])
    assert np.isfinite(shares).all()
    assert ((shares < 0.1) | (shares > 0.9)).mean() > 0.6  # 0.76 of Beta(0.1, 0.1)
    assert 0.3 < (shares > 0.5).mean() < 0.7


def test_the_smallest_alpha_draws_no_halves():
    shares = np.array([mixed("plain+mixup(0.01)", first)[1][0, 2] for first in range(300)])
    # Of Beta(0.01, 0.01) 1 % lie between; TensorFlow's gammas would give 19 %, mostly 0.5 itself.
    assert ((shares > 0.25) & (shares < 0.75)).mean() < 0.06
    assert 0.35 < (shares > 0.5).mean() < 0.65


def test_cutmix_pastes_a_part_and_the_share_is_what_is_left():
    areas = []
    for first in range(200):
        made, pairs = mixed("plain+cutmix", first)
        for image, (label, other, share) in zip(made, pairs, strict=True):
            assert set(np.unique(image)) <= {label - 10, other - 10}
            if label != other:
                own = (image == label - 10).mean()
                assert own == pytest.approx(share, abs=1e-6)
                pasted = (image != label - 10)[..., 0]
                rows, columns = pasted.any(axis=1), pasted.any(axis=0)
                assert pasted.sum() == rows.sum() * columns.sum()
        areas.append(1 - pairs[0, 2])
    assert min(areas) < 0.05
    assert max(areas) > 0.6


def test_a_mix_depends_on_seed_and_position_alone():
    made, pairs = mixed("plain+cutmix", first=40)
    again, same = mixed("plain+cutmix", first=40)
    assert np.array_equal(made, again)
    assert np.array_equal(pairs, same)
    for other in ({"first": 46}, {"first": 40, "seed": 4}):
        assert not np.array_equal(mixed("plain+cutmix", **other)[1], pairs)
