"""Stages in TensorFlow: against NumPy, Pillow and known answers; draws by key alone."""

import io
import math

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from tests.pictures import encoded, write

from timesink.loaders.tfstages import apply_stage, apply_stages
from timesink.pipelines.kinds import KINDS, parse_stage
from timesink.pipelines.stages import parse_stages, split_for_store

SIZE = 16


def applied(text, value, *, size=SIZE, key=(0, 0)):
    return apply_stage(parse_stage(text), value, tf.constant(key, tf.int64), size).numpy()


def drawn(text, image, *, keys=400, size=SIZE):
    """Give what a stage makes of an image under many keys, in a graph as the loader runs it."""
    stage = parse_stage(text)

    @tf.autograph.experimental.do_not_convert
    def make(number):
        # A shape that the graph does not know, as behind decode; what needs levels comes later.
        shape = image.shape if stage.needs_levels else [None, None, 3]
        given = tf.compat.v1.placeholder_with_default(image, shape)
        return apply_stage(stage, given, tf.stack([np.int64(7), number]), size)

    return next(iter(tf.data.Dataset.range(keys).map(make).batch(keys))).numpy()


def noise(height, width, *, dtype="float32", seed=0):
    levels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return levels if dtype == "uint8" else levels.astype(np.float32) / 255


def coordinates(height, width):
    """An image whose pixels say where they stand: row, column, 0."""
    rows, columns = np.mgrid[:height, :width]
    return np.stack([rows, columns, np.zeros_like(rows)], axis=-1).astype(np.float32)


def saved(picture, kind, **options):
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def row(*values):
    return np.repeat(np.float32(values)[None, :, None], 3, axis=2)


# One stage, nothing random.


def test_convert_gives_every_level_its_255th():
    levels = np.arange(256, dtype=np.uint8).repeat(3).reshape(16, 16, 3)
    converted = applied("convert", levels)
    assert converted.dtype == np.float32
    assert np.array_equal(converted, levels.astype(np.float32) * np.float32(1 / 255))
    assert (converted.min(), converted.max()) == (0, 1)


@pytest.mark.parametrize(
    ("method", "values", "size", "expected"),
    [
        ("bilinear", (0, 100), 4, (0, 25, 75, 100)),
        ("bilinear", (0, 10, 40, 80), 2, (5, 60)),
        ("nearest", (0, 100), 4, (0, 0, 100, 100)),
        ("nearest", (1, 2, 3, 4), 2, (2, 4)),
        ("nearest", (1, 2, 3, 4, 5, 6), 2, (2, 5)),
        ("area", (0, 10, 40, 80), 2, (5, 60)),
        ("area", (0, 10, 50, 90, 100, 110), 2, (20, 100)),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_a_row_is_resized_about_the_pixels_centres(method, values, size, expected, dtype):
    resized = applied(f"resize({method})", row(*values).astype(dtype), size=size)
    assert resized.shape == (size, size, 3)
    np.testing.assert_allclose(resized, np.repeat(row(*expected), size, axis=0), rtol=1e-6)


@pytest.mark.parametrize(
    ("method", "filter_", "shape", "size", "atol"),
    [
        ("bilinear", Image.Resampling.BILINEAR, (9, 13), 29, 2e-6),
        # TensorFlow takes the cubic's weights out of a table of 1024.
        ("bicubic", Image.Resampling.BICUBIC, (9, 13), 29, 1e-3),
        ("nearest", Image.Resampling.NEAREST, (31, 47), 16, 0),
        ("area", Image.Resampling.BOX, (48, 32), 16, 2e-6),
    ],
)
def test_resizing_agrees_with_pillow(method, filter_, shape, size, atol):
    image = noise(*shape)
    by_pillow = np.stack(
        [
            np.asarray(Image.fromarray(image[..., colour]).resize((size, size), filter_))
            for colour in range(3)
        ],
        axis=-1,
    )
    resized = applied(f"resize({method})", image, size=size)
    np.testing.assert_allclose(resized, by_pillow, rtol=0, atol=atol)


def test_area_weighs_pixels_by_how_much_of_them_is_covered():
    image = noise(41, 37)
    down, across = (covered(side, SIZE) for side in image.shape[:2])
    expected = np.einsum("iy,yxc,jx->ijc", down, image, across)
    np.testing.assert_allclose(applied("resize(area)", image), expected, atol=2e-6)


def covered(before, after):
    """Tell, for each of `after` pixels, how much of it each of `before` pixels makes up."""
    edges = np.arange(after + 1) * before / after
    pixels = np.arange(before)
    ends = np.minimum(edges[1:, None], pixels + 1)
    begins = np.maximum(edges[:-1, None], pixels)
    return np.clip(ends - begins, 0, None) * after / before


def test_bicubic_overshoots_at_an_edge_and_the_others_do_not():
    edge = row(0, 0, 0, 1, 1, 1)
    for method in ("bilinear", "nearest", "area", "bicubic"):
        resized = applied(f"resize({method})", edge, size=24)
        inside = resized.min() >= 0 and resized.max() <= 1
        assert inside == (method != "bicubic")


def test_resize_takes_a_size_of_its_own():
    assert applied("resize(24)", noise(30, 50)).shape == (24, 24, 3)
    assert applied("resize", noise(30, 50)).shape == (SIZE, SIZE, 3)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("shape", [(40, 31), (17, 60), (16, 16)])
def test_a_center_crop_is_the_middle(shape, dtype):
    image = noise(*shape, dtype=dtype)
    y, x = ((side - SIZE) // 2 for side in shape)
    middle = image[y : y + SIZE, x : x + SIZE]
    assert np.array_equal(applied("center_crop", image), middle)
    assert np.array_equal(drawn("center_crop", image, keys=1)[0], middle)


@pytest.mark.parametrize("shape", [(10, 40), (40, 10), (1, 1), (15, 15)])
def test_a_small_image_is_scaled_up_until_its_shorter_side_fits(shape):
    image, side = noise(*shape), min(shape)
    y, x = ((length - side) // 2 for length in shape)
    largest_square = image[y : y + side, x : x + side]
    expected = applied("resize", largest_square)
    assert np.array_equal(applied("center_crop", image), expected)
    assert drawn("random_crop", image, keys=4).shape == (4, SIZE, SIZE, 3)


def test_clip_keeps_to_its_interval():
    image = row(-1, 0, 0.3, 0.7, 1, 2)
    assert np.array_equal(applied("clip", image), row(0, 0, 0.3, 0.7, 1, 1))
    assert np.array_equal(applied("clip(0.5, 1.5)", image), row(0.5, 0.5, 0.5, 0.7, 1, 1.5))


@pytest.mark.parametrize("shape", [(SIZE, SIZE), (5, 9)])
def test_normalise_is_done_colour_by_colour(shape):
    image = noise(*shape)
    expected = (image - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    np.testing.assert_allclose(applied("normalise", image), expected, atol=2e-6)
    np.testing.assert_allclose(drawn("normalise", image, keys=1)[0], expected, atol=2e-6)
    own = applied("normalise(0.1, 0.2, 0.3, 1, 2, 4)", image)
    np.testing.assert_allclose(own, (image - [0.1, 0.2, 0.3]) / [1, 2, 4], atol=2e-6)


def test_standardise_gives_each_image_mean_0_and_variance_1():
    image = noise(20, 30) * 0.3 + 0.5
    expected = (image - image.mean()) / image.std()
    np.testing.assert_allclose(applied("standardise", image), expected, atol=2e-5)
    assert np.array_equal(
        applied("standardise", np.full((4, 4, 3), 0.5, np.float32)), 0 * image[:4, :4]
    )


# One stage, random.

RANDOM = [name for name, kind in KINDS.items() if kind.random and not kind.mixes]
FEWEST = {"random_flip": 2, "randaugment": 20, "autoaugment": 12, "random_erasing": 10, "pba": 1}
"""Different images of 32 draws: some stages leave some images alone, and pba all in epoch 0."""


@pytest.mark.parametrize("name", RANDOM)
def test_a_draw_depends_on_its_key_alone(name):
    image = noise(40, 50, dtype="uint8" if parse_stage(name).needs_levels else "float32")
    first, again = drawn(name, image, keys=32), drawn(name, image, keys=32)
    assert np.array_equal(first, again)
    different = {one.tobytes() for one in first}
    assert len(different) >= FEWEST.get(name, 31)
    assert np.array_equal(applied(name, image, key=(7, 5)), first[5])


def test_half_of_the_images_are_flipped():
    for dtype in ("uint8", "float32"):
        image = noise(6, 5, dtype=dtype)
        made = drawn("random_flip", image)
        flipped = np.array([np.array_equal(one, image[:, ::-1]) for one in made])
        kept = np.array([np.array_equal(one, image) for one in made])
        assert (flipped ^ kept).all()
        assert 160 <= flipped.sum() <= 240


def test_brightness_shifts_the_whole_image_within_its_range():
    image = noise(6, 5)
    shifts = drawn("random_brightness(0.25)", image) - image
    assert np.ptp(shifts, axis=(1, 2, 3)).max() < 1e-6
    shifts = np.sort(shifts.mean(axis=(1, 2, 3)))
    np.testing.assert_allclose(shifts, np.linspace(-0.25, 0.25, 400), atol=0.04)
    assert np.abs(shifts).max() <= 0.25 + 1e-6


def test_contrast_scales_the_distance_from_the_colours_mean():
    image = noise(6, 5)
    mean = image.mean(axis=(0, 1))
    factors = (drawn("random_contrast(0.5, 2)", image) - mean) / (image - mean)
    middle = np.median(factors, axis=(1, 2, 3))
    assert np.abs(factors - middle[:, None, None, None]).max() < 1e-3
    np.testing.assert_allclose(np.sort(middle), np.linspace(0.5, 2, 400), atol=0.12)
    fixed = drawn("random_contrast(1, 1)", image, keys=3)
    np.testing.assert_allclose(fixed, np.stack([image] * 3), atol=1e-6)


def test_a_random_crop_is_a_piece_of_the_image_and_may_be_any():
    made = drawn("random_crop", coordinates(20, 19), keys=600)
    corners = made[:, 0, 0, :2].astype(int)
    for one, (y, x) in zip(made, corners, strict=True):
        assert np.array_equal(one, coordinates(20, 19)[y : y + SIZE, x : x + SIZE])
    _, counts = np.unique(corners, axis=0, return_counts=True)
    assert len(counts) == 5 * 4
    assert counts.min() >= 10


def cut_out(text, height, width, keys):
    """Tell where in an image a resized crop was taken: y, x, height, width."""
    size = 8
    made = drawn(text, coordinates(height, width), keys=keys, size=size)
    left = made[:, size // 2 - 1, size // 2 - 1, :2]
    parts = np.rint((made[:, size // 2, size // 2, :2] - left) * size)
    begins = left - ((size / 2 - 0.5) * parts / size - 0.5)
    assert np.abs(begins - np.rint(begins)).max() < 1e-2
    return np.rint(begins).astype(int), parts.astype(int)


@pytest.mark.parametrize("shape", [(300, 400), (400, 300), (300, 300)])
def test_a_resized_crop_lies_inside_and_has_an_allowed_area_and_shape(shape):
    begins, parts = cut_out("random_resized_crop", *shape, keys=500)
    assert begins.min() >= 0
    assert (begins + parts <= shape).all()
    area = parts.prod(axis=1) / math.prod(shape)
    ratio = parts[:, 1] / parts[:, 0]
    assert 0.078 < area.min() < 0.11
    assert 0.9 < area.max() <= 1
    assert 0.74 < ratio.min() < 0.77
    assert 1.3 < ratio.max() < 1.35


def test_areas_shapes_and_places_of_resized_crops_are_spread_evenly():
    # Up to half of a square every shape fits, so that none is drawn again.
    keys = 1500
    begins, parts = cut_out("random_resized_crop(0.1, 0.5, 0.5, 2)", 400, 400, keys)
    even = np.linspace(0, 1, keys)
    area = (parts.prod(axis=1) / 400**2 - 0.1) / 0.4
    shape = np.log(parts[:, 1] / parts[:, 0]) / math.log(4) + 0.5
    places = begins / (400 - parts)
    for spread in (area, shape, places[:, 0], places[:, 1]):
        np.testing.assert_allclose(np.sort(spread), even, atol=0.05)
    assert abs(np.corrcoef(area, shape)[0, 1]) < 0.1


def test_the_ratio_is_of_width_to_height():
    _, parts = cut_out("random_resized_crop(0.1, 0.4, 1.5, 2)", 300, 300, keys=100)
    ratio = parts[:, 1] / parts[:, 0]
    assert 1.45 < ratio.min() < ratio.max() < 2.05


def test_what_does_not_fit_is_drawn_again():
    begins, parts = cut_out("random_resized_crop(0.05, 1, 0.75, 1.3333)", 100, 300, keys=500)
    assert (begins + parts <= (100, 300)).all()
    first_try = parts.prod(axis=1) / 30_000 < 0.45  # larger areas are higher than the image
    assert first_try.mean() > 0.95


@pytest.mark.parametrize(
    ("shape", "begin", "part"),
    [((12, 300), (0, 141), (12, 17)), ((300, 12), (142, 0), (15, 12))],
)
def test_where_nothing_fits_the_middle_is_taken_as_torchvision_does(shape, begin, part):
    begins, parts = cut_out("random_resized_crop(0.9, 1, 0.8, 1.4)", *shape, keys=5)
    assert (begins == begin).all()
    assert (parts == part).all()


def test_a_single_pixel_can_be_cropped():
    made = drawn("random_resized_crop", np.full((1, 1, 3), 0.5, np.float32), keys=20)
    assert np.array_equal(made, np.full((20, SIZE, SIZE, 3), 0.5, np.float32))


# Files.


def picture(height=30, width=20):
    """A smooth picture, which a lossy format hardly changes."""
    rows, columns = np.mgrid[:height, :width]
    return Image.fromarray(
        np.stack([rows * 4 + 40, columns * 5 + 60, 200 - rows - columns], axis=-1).astype(np.uint8)
    )


FORMATS = {
    "jpeg": lambda image: saved(image, "JPEG", quality=95),
    "progressive jpeg": lambda image: saved(image, "JPEG", quality=95, progressive=True),
    "cmyk jpeg": lambda image: saved(image.convert("CMYK"), "JPEG", quality=95),
    "png": lambda image: saved(image, "PNG"),
    "png with alpha": lambda image: saved(image.convert("RGBA"), "PNG"),
    "png with palette": lambda image: saved(image.quantize(255), "PNG"),
    "16-bit png": lambda image: tf.io.encode_png(np.asarray(image).astype(np.uint16) * 257).numpy(),
    "bmp": lambda image: saved(image, "BMP"),
    "gif": lambda image: saved(image.quantize(255), "GIF"),
}


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_decodes_to_the_same_picture(form):
    decoded = applied("decode", FORMATS[form](picture()))
    assert (decoded.shape, decoded.dtype) == ((30, 20, 3), np.uint8)
    assert np.abs(decoded.astype(int) - np.asarray(picture())).mean() < 3


@pytest.mark.parametrize("form", ["JPEG", "PNG"])
def test_grey_becomes_three_equal_colours(form):
    grey = picture().convert("L")
    decoded = applied("decode", saved(grey, form))
    assert np.abs(decoded.astype(int) - np.asarray(grey)[..., None]).max() <= 4


def test_16_bit_grey_keeps_its_brightness():
    levels = np.linspace(0, 65535, 300).astype(np.uint16).reshape(20, 15)
    decoded = applied("decode", saved(Image.fromarray(levels), "PNG"))
    assert np.abs(decoded.astype(float) - levels[..., None] / 257).max() <= 1


def test_of_an_animation_the_first_frame_is_taken():
    frames = [Image.new("RGB", (12, 10), colour) for colour in ("red", "blue", "green")]
    decoded = applied("decode", saved(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    assert decoded.shape == (10, 12, 3)
    assert (decoded == (255, 0, 0)).all()


def test_exif_orientation_is_not_followed():
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    turned = applied("decode", saved(picture(), "JPEG", exif=exif))
    assert np.array_equal(turned, applied("decode", saved(picture(), "JPEG")))


def test_a_file_is_read_and_known_by_its_content(tmp_path):
    path = write(tmp_path / "a.jpg", saved(picture(), "PNG"))
    content = apply_stage(parse_stage("read"), str(path), None, SIZE)
    assert np.array_equal(applied("decode", content), np.asarray(picture()))


@pytest.mark.parametrize(
    "content",
    [b"", b"no image", encoded()[:200], encoded()[:-300], encoded("PNG")[:-300]],
    ids=["empty", "text", "head of a jpeg", "truncated jpeg", "truncated png"],
)
def test_what_is_broken_gives_no_pixels(content):
    with pytest.raises(tf.errors.InvalidArgumentError):
        applied("decode", content)


# All stages together.

LISTS = {
    "seed000": "seed000",
    "plain": "plain",
    "basic": "basic",
    "crop": ["decode", "convert", "resize(24)", "random_crop", "random_flip", "normalise"],
    "levels": ["decode", "resize(24, nearest)", "random_crop", "random_flip", "convert"],
    "late": ["decode", "resize(24)", "random_flip", "resize(bicubic)", "convert", "clip"],
    "middle": ["decode", "center_crop", "convert", "random_contrast", "standardise"],
    "early": ["decode", "convert", "random_contrast", "normalise", "random_resized_crop"],
    "area": ["decode", "convert", "resize(area)", "clip(0.1, 0.9)", "random_brightness"],
    "augmented": "basic+randaugment(2)+random_erasing",
    "resized": ["decode", "resize(24)", "autoaugment", "random_crop", "convert"],
}


def key_of(number):
    return tf.constant([number, 3], tf.int64)


def graph_of(asked, size=SIZE):
    @tf.function(autograph=False, input_signature=[tf.TensorSpec([], tf.string)])
    def run(content):
        return apply_stages(parse_stages(asked), content, key_of, size)

    return run


@pytest.mark.parametrize("name", LISTS)
def test_every_image_reaches_the_size_of_the_network(name):
    run = graph_of(LISTS[name])
    (output,) = run.get_concrete_function().outputs
    assert (output.shape, output.dtype) == ((SIZE, SIZE, 3), tf.float32)
    sizes = [(1, 1), (3, 200), (200, 3), (16, 16), (23, 31)]
    contents = [saved(picture(*size), "PNG") for size in sizes]
    contents += [make(picture()) for make in FORMATS.values()]
    for content in contents:
        made = run(content).numpy()
        assert made.shape == (SIZE, SIZE, 3)
        assert np.isfinite(made).all()


@pytest.mark.parametrize("name", LISTS)
def test_every_op_stands_in_the_scope_of_its_stage(name):
    graph = graph_of(LISTS[name]).get_concrete_function().graph
    passing = {"Placeholder", "Identity", "NoOp", "Const"}
    scopes = [op.name.split("/")[0] for op in graph.get_operations() if op.type not in passing]
    assert {scope.rstrip("_0123456789") for scope in scopes} == {
        stage.name for stage in parse_stages(LISTS[name])
    }


@pytest.mark.parametrize(
    "stages",
    [
        ["resize"],
        ["resize(bicubic)"],
        ["center_crop"],
        ["random_resized_crop", "random_flip"],
        ["resize(24)", "random_flip", "random_crop"],
        ["resize(24)", "random_flip", "resize"],
    ],
)
def test_convert_may_stand_before_or_behind_what_moves_pixels(stages):
    content = saved(picture(), "PNG")
    before = graph_of(["decode", "convert", *stages])(content).numpy()
    behind = graph_of(["decode", *stages, "convert"])(content).numpy()
    assert np.array_equal(before, behind)
    one_by_one = content
    for number, text in enumerate(["decode", "convert", *stages]):
        key = key_of(sum(parse_stage(done).random for done in stages[: max(0, number - 2)]))
        one_by_one = apply_stage(parse_stage(text), one_by_one, key, SIZE)
    np.testing.assert_allclose(before, one_by_one, atol=1e-6)


def test_random_stages_are_numbered_among_themselves():
    asked = []

    def note(number):
        asked.append(number)
        return key_of(number)

    apply_stages(parse_stages("basic"), encoded("PNG"), note, SIZE)
    apply_stages(parse_stages("plain"), encoded("PNG"), note, SIZE)
    assert asked == [0, 1]


@pytest.mark.parametrize("name", ["plain", "seed000", "levels", "late", "middle", "area"])
def test_what_was_stored_as_floats_goes_on_bit_for_bit(name):
    content = saved(picture(), "PNG")
    stored, online = split_for_store(parse_stages(LISTS[name]), "float32")
    image = apply_stages(stored, content, key_of, SIZE)
    resumed = apply_stages(online, image, key_of, SIZE)
    assert np.array_equal(resumed, graph_of(LISTS[name])(content))
