"""Image operations in TensorFlow: Pillow's in every pixel, and known answers without Pillow."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image, ImageEnhance, ImageOps

from timesink.loaders.tfinterpolation import INTERPOLATED
from timesink.loaders.tfoperations import OPERATIONS


def affine(picture, *matrix):
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix)


PILLOW = {
    "identity": lambda picture, _: picture,
    "autocontrast": lambda picture, _: ImageOps.autocontrast(picture),
    "equalise": lambda picture, _: ImageOps.equalize(picture),
    "invert": lambda picture, _: ImageOps.invert(picture),
    "rotate": lambda picture, degrees: picture.rotate(degrees),
    "shear_x": lambda picture, factor: affine(picture, 1, factor, 0, 0, 1, 0),
    "shear_y": lambda picture, factor: affine(picture, 1, 0, 0, factor, 1, 0),
    "translate_x": lambda picture, pixels: affine(picture, 1, 0, pixels, 0, 1, 0),
    "translate_y": lambda picture, pixels: affine(picture, 1, 0, 0, 0, 1, pixels),
    "posterise": lambda picture, bits: ImageOps.posterize(picture, int(bits)),
    "solarise": lambda picture, threshold: ImageOps.solarize(picture, threshold),
    "colour": lambda picture, factor: ImageEnhance.Color(picture).enhance(factor),
    "contrast": lambda picture, factor: ImageEnhance.Contrast(picture).enhance(factor),
    "brightness": lambda picture, factor: ImageEnhance.Brightness(picture).enhance(factor),
    "sharpness": lambda picture, factor: ImageEnhance.Sharpness(picture).enhance(factor),
}
FACTORS = [0, 0.1, 0.37, 0.5, 0.9, 1, 1.1, 1.23, 1.9, 2, 7]
# The last ones are those that Pillow takes floats for.
SHEARS = [0, 1e-9, 0.03, -0.03, 0.123, -0.217, 0.3, -0.3, 1, -2.5, 700, -1400, 33000, -1e5]
SHIFTS = [0, 1, -1, 3.5, -3.5, 0.49999997, -0.50000006, 10.3, -14.7, 100, -150, 1e6, -1e6]
STRENGTHS = {
    "rotate": [
        *(0, 3, -6.1, 9.99, -14.5, 21.7, 30, -30, 45, 60),
        *(90, -90, 180, 270, 360, -1e-20, 137.7, -725.3),
    ],
    "shear_x": SHEARS,
    "shear_y": SHEARS,
    "translate_x": SHIFTS,
    "translate_y": SHIFTS,
    "posterise": range(1, 9),
    "solarise": [-1, 0, 1, 25.6, 99.5, 128, 200, 255, 255.5, 256, 300],
    "colour": FACTORS,
    "contrast": FACTORS,
    "brightness": FACTORS,
    "sharpness": FACTORS,
}


def noise(height, width, low=0, high=256, seed=0):
    levels = np.random.default_rng(seed).integers(low, high, (height, width, 3))
    return levels.astype(np.uint8)


def photograph(height, width, seed=0):
    """Soft shapes with a little noise, whose colours reach over different levels."""
    coarse = Image.fromarray(noise(4, 4, 20, 240, seed))
    soft = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC))
    return (soft * np.float32([1, 0.8, 0.6]) + noise(height, width, 0, 9, seed)).astype(np.uint8)


def plain(height, width):
    return np.full((height, width, 3), [7, 130, 255], np.uint8)


IMAGES = [
    *(noise(height, width) for height, width in [(1, 1), (1, 7), (9, 1), (2, 2), (3, 3), (2, 5)]),
    *(photograph(height, width) for height, width in [(24, 32), (33, 18), (17, 31), (101, 96)]),
    *(noise(40, 56, low, high, low) for low, high in [(0, 256), (3, 88), (100, 103), (255, 256)]),
    plain(6, 8),
    plain(1, 1),
]


@functools.cache
def compiled(name, shape=(None, None, 3)):
    signature = [tf.TensorSpec(shape, tf.uint8), tf.TensorSpec([], tf.float32)]
    return tf.function(OPERATIONS[name], input_signature=signature, autograph=False)


def applied(name, image, strength=0.0):
    """Give what an operation makes of an image whose size the graph does not know."""
    return compiled(name)(np.asarray(image, np.uint8), np.float32(strength)).numpy()


def assert_as_pillow_has_it(name, image, operation):
    picture = Image.fromarray(image)
    for strength in np.float32(STRENGTHS.get(name, [0])):
        ours = operation(image, strength).numpy()
        theirs = np.asarray(PILLOW[name](picture, float(strength)))
        np.testing.assert_array_equal(ours, theirs, f"{name}({strength}) of {image.shape}")


def grey(*rows):
    """An image in which all three colours are equal."""
    return np.repeat(np.uint8(rows)[:, :, None], 3, axis=2)


def places(height, width):
    """An image whose pixels say where they stand: row, column, 255."""
    rows, columns = np.mgrid[:height, :width]
    return np.stack([rows, columns, np.full_like(rows, 255)], axis=-1).astype(np.uint8)


# Pillow's pixels.


def test_every_operation_is_compared():
    assert set(PILLOW) == set(OPERATIONS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_pixels_are_those_of_pillow_where_the_size_is_unknown(name):
    for image in IMAGES:
        assert_as_pillow_has_it(name, image, compiled(name))


# Sizes for which images are taken 8 bytes, 4 pixels or 2 values at a time, and odd ones.
@pytest.mark.parametrize("sides", [(24, 32), (7, 10), (6, 5), (5, 9), (1, 1)])
@pytest.mark.parametrize("name", OPERATIONS)
def test_pixels_are_those_of_pillow_where_the_size_is_known(name, sides):
    shape = (*sides, 3)
    operation = compiled(name, shape)
    assert operation.get_concrete_function().output_shapes.as_list() == list(shape)
    for image in (photograph(*sides), noise(*sides)):
        assert_as_pillow_has_it(name, image, operation)


@pytest.mark.parametrize("name", ["rotate", "shear_x", "shear_y", "equalise", "autocontrast"])
def test_pixels_are_those_of_pillow_in_the_size_that_networks_take(name):
    assert_as_pillow_has_it(name, photograph(224, 224), compiled(name, (224, 224, 3)))


BILINEAR = Image.Resampling.BILINEAR


def slanted(picture, *matrix):
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix, resample=BILINEAR)


BETWEEN = {
    "rotate": lambda picture, degrees: picture.rotate(degrees, resample=BILINEAR),
    "shear_x": lambda picture, factor: slanted(picture, 1, factor, 0, 0, 1, 0),
    "shear_y": lambda picture, factor: slanted(picture, 1, 0, 0, factor, 1, 0),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_between_pixels_they_are_those_of_pillow_too(name):
    assert set(BETWEEN) == set(INTERPOLATED)
    strengths = [0, 1, -1, 7, -8, 13, 30, -30, 44.5] if name == "rotate" else SHEARS[:10]
    signature = [tf.TensorSpec((None, None, 3), tf.uint8), tf.TensorSpec([], tf.float32)]
    operation = tf.function(INTERPOLATED[name], input_signature=signature, autograph=False)
    for image in [*IMAGES, photograph(75, 140), photograph(224, 224)]:
        for strength in np.float32(strengths):
            theirs = np.asarray(BETWEEN[name](Image.fromarray(image), float(strength)))
            ours = operation(image, strength).numpy()
            np.testing.assert_array_equal(ours, theirs, f"{name}({strength}) of {image.shape}")


def test_turning_between_pixels_mixes_them():
    edge = grey([0, 0, 200, 200], [0, 0, 200, 200], [0, 0, 200, 200], [0, 0, 200, 200])
    turned = INTERPOLATED["rotate"](tf.constant(edge), 10.0).numpy()
    assert set(np.unique(turned)) - {0, 200}
    assert not set(np.unique(OPERATIONS["rotate"](tf.constant(edge), 10.0))) - {0, 200}


@pytest.mark.parametrize("sides", [(2, 33000), (33000, 2)])
@pytest.mark.parametrize("name", ["shear_x", "shear_y"])
def test_shears_are_those_of_pillow_where_its_integers_do_not_reach(name, sides):
    image = noise(*sides)
    for factor in np.float32([4e-5, -0.3]):
        theirs = PILLOW[name](Image.fromarray(image), float(factor))
        np.testing.assert_array_equal(compiled(name)(image, factor), theirs)


def test_autocontrast_rounds_as_pillow_for_every_range_of_levels():
    for low in range(0, 255, 11):
        for high in range(low + 1, 256, 7):
            image = grey(range(low, high + 1))
            theirs = np.asarray(ImageOps.autocontrast(Image.fromarray(image)))
            np.testing.assert_array_equal(applied("autocontrast", image), theirs)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_run_in_a_dataset_and_keep_the_size_that_is_known(name):
    image = photograph(8, 8)
    strength = np.float32(max(STRENGTHS.get(name, [0]), key=lambda value: abs(value) < 1))

    @tf.autograph.experimental.do_not_convert
    def operate(pixels):
        return OPERATIONS[name](pixels, tf.constant(strength))

    dataset = tf.data.Dataset.from_tensors(image).map(operate)
    assert dataset.element_spec == tf.TensorSpec([8, 8, 3], tf.uint8)
    (made,) = dataset
    np.testing.assert_array_equal(made, applied(name, image, strength))


# Known answers.


def test_identity_changes_nothing():
    image = noise(5, 4)
    np.testing.assert_array_equal(applied("identity", image), image)


def test_invert_counts_levels_from_the_other_end():
    assert applied("invert", [[[0, 1, 200]]]).tolist() == [[[255, 254, 55]]]


@pytest.mark.parametrize("bits, kept", [(8, 0b10110111), (4, 0b10110000), (1, 0b10000000), (0, 0)])
def test_posterise_keeps_the_highest_bits(bits, kept):
    np.testing.assert_array_equal(applied("posterise", grey([0b10110111]), bits), grey([kept]))


@pytest.mark.parametrize(
    "threshold, levels",
    [
        (0, [255, 155, 154, 0]),
        (100, [0, 155, 154, 0]),
        (100.5, [0, 100, 154, 0]),
        (255, [0, 100, 101, 0]),
        (256, [0, 100, 101, 255]),
    ],
)
def test_solarise_inverts_from_the_threshold_on(threshold, levels):
    image = grey([0, 100, 101, 255])
    np.testing.assert_array_equal(applied("solarise", image, threshold), grey(levels))


def test_autocontrast_stretches_each_colour_by_itself():
    image = [[[10, 0, 90], [20, 255, 90], [30, 51, 90]]]
    assert applied("autocontrast", image).tolist() == [[[0, 0, 90], [127, 255, 90], [255, 51, 90]]]


def test_equalise_of_two_levels_leaves_the_darker_black():
    # 510 dark pixels: a step of 2, so that what is lighter has (1 + 510) // 2 steps below it.
    image = np.uint8([[[90] * 3] * 510 + [[100] * 3] * 90])
    assert np.unique(applied("equalise", image)).tolist() == [0, 255]


def test_equalise_leaves_a_few_pixels_as_they_are():
    image = noise(9, 9)
    np.testing.assert_array_equal(applied("equalise", image), image)


def test_shear_x_moves_a_row_by_its_distance_from_the_top():
    # By 1 at the middle of a row: rows are moved by 1/2, 3/2, 5/2 and so to 1, 2, 3.
    sheared = applied("shear_x", places(3, 5), 1)
    assert sheared[..., 1].tolist() == [[1, 2, 3, 4, 0], [2, 3, 4, 0, 0], [3, 4, 0, 0, 0]]
    assert sheared[..., 0].tolist() == [[0, 0, 0, 0, 0], [1, 1, 1, 0, 0], [2, 2, 0, 0, 0]]
    assert sheared[..., 2].tolist() == [[255] * (4 - row) + [0] * (row + 1) for row in range(3)]


def test_shear_y_is_shear_x_of_the_image_on_its_side():
    image = noise(19, 14)
    on_its_side = applied("shear_x", image.transpose(1, 0, 2), -0.3)
    np.testing.assert_array_equal(applied("shear_y", image, -0.3), on_its_side.transpose(1, 0, 2))


def test_translations_move_to_the_left_and_upwards():
    image = grey([1, 2, 3], [4, 5, 6])
    np.testing.assert_array_equal(applied("translate_x", image, 1), grey([2, 3, 0], [5, 6, 0]))
    np.testing.assert_array_equal(applied("translate_x", image, -2.2), grey([0, 0, 1], [0, 0, 4]))
    np.testing.assert_array_equal(applied("translate_y", image, 0.7), grey([4, 5, 6], [0, 0, 0]))
    np.testing.assert_array_equal(applied("translate_y", image, -1), grey([0, 0, 0], [1, 2, 3]))


def test_rotate_turns_counter_clockwise():
    image = noise(6, 6)
    np.testing.assert_array_equal(applied("rotate", image, 90), np.rot90(image))
    np.testing.assert_array_equal(applied("rotate", image, -90), np.rot90(image, -1))
    np.testing.assert_array_equal(applied("rotate", noise(3, 4), 180), np.rot90(noise(3, 4), 2))


def test_brightness_goes_from_black_to_white():
    image = grey([0, 100, 200])
    for factor, levels in [(0, [0, 0, 0]), (0.5, [0, 50, 100]), (1.5, [0, 150, 255])]:
        np.testing.assert_array_equal(applied("brightness", image, factor), grey(levels))


def test_contrast_goes_from_the_mean_outwards():
    image = grey([50, 100, 150])
    for factor, levels in [(0, [100] * 3), (0.5, [75, 100, 125]), (3, [0, 100, 250])]:
        np.testing.assert_array_equal(applied("contrast", image, factor), grey(levels))


def test_colour_goes_from_grey_outwards():
    red = [[[255, 0, 0]]]  # as grey: 255 * 0.299
    assert applied("colour", red, 0).tolist() == [[[76, 76, 76]]]
    assert applied("colour", red, 0.5).tolist() == [[[165, 38, 38]]]
    assert applied("colour", red, 2).tolist() == [[[255, 0, 0]]]


def test_sharpness_changes_all_but_the_border():
    image = grey([0, 0, 0, 0], [0, 130, 0, 0], [0, 0, 0, 0])
    smooth = grey([0, 0, 0, 0], [0, 50, 10, 0], [0, 0, 0, 0])  # 5 and 1 of 13 parts
    sharp = grey([0, 0, 0, 0], [0, 210, 0, 0], [0, 0, 0, 0])
    np.testing.assert_array_equal(applied("sharpness", image, 0), smooth)
    np.testing.assert_array_equal(applied("sharpness", image, 2), sharp)


@pytest.mark.parametrize("name", ["autocontrast", "equalise", "contrast", "sharpness"])
def test_a_plain_grey_image_stays_as_it_is(name):
    image = np.full((5, 7, 3), 77, np.uint8)
    np.testing.assert_array_equal(applied(name, image, 1.7), image)
