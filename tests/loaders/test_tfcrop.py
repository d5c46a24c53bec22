"""Of a JPEG only the drawn part is decoded, and no pixel of it differs."""

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from timesink.loaders.tfcrop import cut, decode, decode_part

NUMBERS = (0.05, 1.0, 0.5, 2.0)
KEYS = 60


def photograph(kind="JPEG", *, size=(150, 110), mode="RGB", **options):
    """A picture with edges and noise, whose colours differ from pixel to pixel."""
    generator = np.random.default_rng(0)
    coarse = generator.integers(0, 256, (size[1] // 6 + 1, size[0] // 6 + 1, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC), np.int16)
    noisy = (smooth + generator.integers(-30, 30, smooth.shape)).clip(0, 255).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noisy).convert(mode).save(buffer, kind, **options)
    return buffer.getvalue()


FILES = {
    "4:2:0": photograph(quality=85, subsampling=2),
    "4:2:2": photograph(quality=85, subsampling=1),
    "4:4:4": photograph(quality=85, subsampling=0),
    "progressive": photograph(quality=85, progressive=True),
    "restarts": photograph(quality=85, restart_marker_blocks=5),
    "grey": photograph(mode="L"),
    "odd": photograph(size=(133, 97)),
    "narrow": photograph(size=(3, 200)),
    "one pixel": photograph(size=(1, 1)),
    "PNG": photograph("PNG"),
    "BMP": photograph("BMP"),
    "GIF": photograph("GIF"),
}


@tf.function(
    autograph=False, input_signature=[tf.TensorSpec([], tf.string), tf.TensorSpec([2], tf.int64)]
)
def both_ways(content, key):
    return decode_part(content, key, NUMBERS), cut(decode(content), key, NUMBERS)


@pytest.mark.parametrize("name", FILES)
def test_a_part_is_what_is_cut_out_of_the_whole(name):
    shapes = set()
    for number in range(KEYS):
        part, expected = both_ways(FILES[name], tf.constant([1, number], tf.int64))
        assert np.array_equal(part, expected)
        shapes.add(tuple(part.shape))
    assert len(shapes) > KEYS / 2 or name in ("narrow", "one pixel")


@pytest.mark.parametrize("content", [b"", b"\xff\xd8\xff", FILES["4:2:0"][:300], b"no image"])
def test_what_cannot_be_decoded_is_an_error(content):
    with pytest.raises(tf.errors.InvalidArgumentError):
        both_ways(content, tf.constant([1, 2], tf.int64))
