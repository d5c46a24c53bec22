"""One generated image: from (seed, split, class, index) to the bytes of a JPEG, always the same.

A class is a shape with a striped texture and a hue. An image shows it large, anywhere, under
any light, among smaller distractors that have the looks of other classes. What tells the
classes apart is coarse (3 to 7 stripes across the image), so it survives a resize to 64×64.

The same arguments give the same bytes under the same versions of numpy and Pillow.
"""

import colorsys
import io
import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
import numpy.typing as npt
from PIL import Image

Split = Literal["train", "val"]
Pixels = npt.NDArray[np.float32]

# The counts are coprime: by the Chinese remainder theorem class % count, taken together,
# differ for any two of the first 5·7·3·11 classes, and neighbours differ in every one.
SHAPES = ("disc", "square", "triangle", "ring", "cross")
ORIENTATIONS = 7
STRIPES = (3.0, 4.6, 7.0)
HUES = 11
MAX_CLASSES = 1000

# Width, height, share: about the sizes people put on photo sites when ImageNet was collected.
COMMON_SIZES = (
    (500, 375, 0.30),
    (375, 500, 0.14),
    (500, 333, 0.10),
    (333, 500, 0.04),
    (400, 400, 0.05),
    (640, 480, 0.03),
    (480, 640, 0.01),
)
SMALL_LONG_SIDE = (200, 390)
SMALL_LANDSCAPE_SHARE = 0.7
MEAN_PIXELS = 148_000
"""What the sizes above come to."""

BYTES_SPREAD = 0.35
"""Sigma of the lognormal factor on an image's bytes, beside what its area asks for."""
MAX_BITS_PER_PIXEL = 20.0
"""More does not fit into a JPEG, whatever is on it."""

# Which grain at which quality comes to how many bits a pixel: measured on these scenes.
BITS_PER_PIXEL = (0.4, 1.0, 2.0, 3.5, 5.0, 6.5, 8.0, 10.0, 13.0, 17.0, 21.0)
GRAIN = (0.0, 1.5, 3.2, 5.2, 8.5, 13.0, 18.0, 20.0, 30.0, 50.0, 75.0)
QUALITY = (50, 80, 88, 91, 92, 93, 94, 94, 95, 97, 99)
FULL_COLOUR_BITS = 8.0
"""From here on colour is not subsampled: there would be too little to fill the bytes."""
CLOSE_ENOUGH = 0.05
MAX_ENCODES = 4


@dataclass(frozen=True)
class Look:
    """What a class looks like, before an image's own chance."""

    shape: str
    orientation_rad: float
    stripes: float
    hue: float


def class_look(seed: int, label: int) -> Look:
    """Give the look of a class; all differ within one seed, up to MAX_CLASSES."""
    start = _generator(seed, 3, 0, 0).integers(0, 1_000_000, 4)
    return Look(
        shape=SHAPES[int(start[0] + label) % len(SHAPES)],
        orientation_rad=math.pi * (int(start[1] + 3 * label) % ORIENTATIONS) / ORIENTATIONS,
        stripes=STRIPES[int(start[2] + label) % len(STRIPES)],
        hue=(int(start[3] + 4 * label) % HUES) / HUES,
    )


def image_size(seed: int, split: Split, label: int, index: int) -> tuple[int, int]:
    """Draw an image's width and height."""
    position, aspect = _even(seed, split, label, index)[:2]
    for width, height, share in COMMON_SIZES:
        if position < share:
            return width, height
        position -= share
    position /= 1 - sum(share for _, _, share in COMMON_SIZES)
    shortest, longest = SMALL_LONG_SIDE
    long_side = shortest + position * (longest - shortest)
    landscape = aspect < SMALL_LANDSCAPE_SHARE
    # The rest of the same number, stretched to 0..1, draws the aspect.
    share = SMALL_LANDSCAPE_SHARE
    rest = aspect / share if landscape else (aspect - share) / (1 - share)
    short_side = long_side * (0.58 + 0.34 * rest)
    sides = round(long_side), round(short_side)
    return sides if landscape else (sides[1], sides[0])


def target_bytes(seed: int, split: Split, label: int, index: int, mean_bytes: int) -> float:
    """Draw how many bytes an image should have: with its area, times a lognormal factor."""
    width, height = image_size(seed, split, label, index)
    chance = min(max(_even(seed, split, label, index)[2], 0.005), 0.995)
    mean_bits = 8 * mean_bytes / MEAN_PIXELS
    spread = min(BYTES_SPREAD, max(0.0, math.log(MAX_BITS_PER_PIXEL / mean_bits) / 2))
    factor = math.exp(NormalDist().inv_cdf(chance) * spread - spread**2 / 2)
    return mean_bytes * width * height / MEAN_PIXELS * factor


def draw_jpeg(seed: int, split: Split, label: int, index: int, mean_bytes: int) -> bytes:
    """Draw one image and encode it near its target of bytes."""
    random = _generator(seed, 1 + (split == "val"), label, index)
    width, height = image_size(seed, split, label, index)
    wanted = target_bytes(seed, split, label, index, mean_bytes)
    bits = 8 * wanted / (width * height)
    pixels = _scene(random, class_look(seed, label), width, height)
    pixels += _grain(random, width, height, float(np.interp(bits, BITS_PER_PIXEL, GRAIN)))
    np.clip(pixels, 0, 255, out=pixels)
    picture = Image.fromarray(pixels.astype(np.uint8))
    guess = round(np.interp(bits, BITS_PER_PIXEL, QUALITY))
    return _encode_near(picture, wanted, guess, full_colour=bits >= FULL_COLOUR_BITS)


def _generator(seed: int, purpose: int, label: int, index: int) -> np.random.Generator:
    key = np.array([seed, purpose << 60 | label << 40 | index], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


def _even(seed: int, split: Split, label: int, index: int) -> tuple[float, float, float]:
    """Give three numbers in 0..1 that fill the cube evenly over index and class.

    A Kronecker sequence: with independent draws a set of a hundred images would
    miss the mean size by a tenth every other time.
    """
    start = _generator(seed, 4 + (split == "val"), 0, 0).random(3)
    x, y, z = start + index * _KRONECKER + label * _KRONECKER[::-1]
    return float(x % 1), float(y % 1), float(z % 1)


_KRONECKER = 1.2207440846057596 ** -np.arange(1.0, 4.0)


def _scene(random: np.random.Generator, look: Look, width: int, height: int) -> Pixels:
    pixels = _background(random, width, height)
    for _ in range(int(random.integers(2, 6))):
        other = Look(
            shape=SHAPES[int(random.integers(len(SHAPES)))],
            orientation_rad=float(random.uniform(0, math.pi)),
            stripes=float(random.uniform(STRIPES[0], 2 * STRIPES[-1])),
            hue=float(random.random()),
        )
        _paint(random, pixels, other, radius=random.uniform(0.07, 0.18), solid=0.9)
    jittered = Look(
        shape=look.shape,
        orientation_rad=look.orientation_rad + float(random.normal(0, 0.10)),
        stripes=look.stripes * math.exp(float(random.normal(0, 0.07))),
        hue=(look.hue + float(random.normal(0, 0.03))) % 1,
    )
    _paint(
        random,
        pixels,
        jittered,
        radius=random.uniform(0.28, 0.48),
        solid=random.uniform(0.65, 0.97),
    )
    cast = random.uniform(0.82, 1.12, 3).astype(np.float32)
    pixels *= cast
    left, right = random.uniform(0.75, 1.25, 2)
    pixels *= np.linspace(left, right, width, dtype=np.float32)[None, :, None]
    return pixels


def _background(random: np.random.Generator, width: int, height: int) -> Pixels:
    """Blur a few colours over the whole, with clouds of finer and finer structure."""
    coarse = random.uniform(50, 200) + random.normal(0, 14, 3)
    coarse = coarse + random.normal(0, 30, (4, 5, 1)) + random.normal(0, 16, (4, 5, 3))
    pixels = _stretched(coarse, width, height)
    clouds = np.full((height, width), -3 * 128, dtype=np.float32)
    for cells, strength in ((11, 18.0), (31, 12.0), (90, 9.0)):
        shape = (max(2, cells * height // width), cells)
        clouds += _stretched(128 + random.normal(0, strength, shape), width, height)
    pixels += clouds[..., None]
    return pixels


def _stretched(values: npt.NDArray[np.float64], width: int, height: int) -> Pixels:
    small = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
    large = small.resize((width, height), Image.Resampling.BICUBIC)
    return np.asarray(large, dtype=np.float32)


def _paint(
    random: np.random.Generator, pixels: Pixels, look: Look, radius: float, solid: float
) -> None:
    """Blend a striped shape into the pixels, at a place of its own; radius as part of a side."""
    height, width = pixels.shape[:2]
    side = min(width, height)
    radius_px = radius * side
    reach = radius_px * 1.45
    margin = radius_px * 0.75
    centre_x = random.uniform(margin, width - margin)
    centre_y = random.uniform(margin, height - margin)
    left, right = max(0, int(centre_x - reach)), min(width, int(centre_x + reach) + 1)
    top, bottom = max(0, int(centre_y - reach)), min(height, int(centre_y + reach) + 1)
    x = (np.arange(left, right, dtype=np.float32) - np.float32(centre_x))[None, :]
    y = (np.arange(top, bottom, dtype=np.float32) - np.float32(centre_y))[:, None]
    distance_px = _distance(
        look.shape, x / radius_px, y / radius_px, random.uniform(0, 2 * math.pi)
    )
    distance_px *= radius_px
    cover = np.clip(0.5 - distance_px / 1.5, 0, 1) * np.float32(solid)

    wave = 2 * math.pi * look.stripes / side
    phase = random.uniform(0, 2 * math.pi)
    stripes = np.sin(
        x * np.float32(wave * math.cos(look.orientation_rad))
        + y * np.float32(wave * math.sin(look.orientation_rad))
        + np.float32(phase)
    )
    light = colorsys.hsv_to_rgb(look.hue, random.uniform(0.45, 0.85), random.uniform(0.7, 1.0))
    dark = colorsys.hsv_to_rgb(look.hue, random.uniform(0.2, 0.8), random.uniform(0.15, 0.45))
    middle = (np.array(light) + np.array(dark)) * 127.5
    swing = (np.array(light) - np.array(dark)) * 127.5
    patch = pixels[top:bottom, left:right]
    for channel in range(3):
        plane = patch[..., channel]
        plane += cover * (
            np.float32(middle[channel]) + stripes * np.float32(swing[channel]) - plane
        )


def _distance(shape: str, x: Pixels, y: Pixels, turn_rad: float) -> Pixels:
    """Give the signed distance to a shape's edge, negative inside, in units of its radius."""
    if shape in ("disc", "ring"):
        from_centre: Pixels = np.sqrt(x * x + y * y)
        return from_centre - 1 if shape == "disc" else np.abs(from_centre - 0.75) - 0.3
    cos, sin = np.float32(math.cos(turn_rad)), np.float32(math.sin(turn_rad))
    u, v = x * cos + y * sin, y * cos - x * sin
    if shape == "square":
        return np.maximum(np.abs(u), np.abs(v)) - np.float32(0.88)
    if shape == "triangle":
        return np.maximum(np.float32(0.866) * np.abs(u) + v / 2, -v) - np.float32(0.65)
    u, v = np.abs(u), np.abs(v)
    return np.maximum(np.minimum(u, v) - np.float32(0.36), np.maximum(u, v) - np.float32(1.05))


def _grain(random: np.random.Generator, width: int, height: int, strength: float) -> Pixels:
    """Film grain: mostly of brightness, a little of colour."""
    # Uniform bytes cost a tenth of normal floats, and a JPEG cannot tell them apart.
    colour = random.integers(0, 256, (height, width, 3), dtype=np.uint8).astype(np.float32)
    brightness = random.integers(0, 256, (height, width, 1), dtype=np.uint8).astype(np.float32)
    per_unit = strength / (256 / math.sqrt(12))
    colour -= np.float32(127.5)
    colour *= np.float32(0.4 * per_unit)
    brightness -= np.float32(127.5)
    brightness *= np.float32(per_unit)
    colour += brightness
    return colour


def _encode_near(
    picture: Image.Image, wanted_bytes: float, quality: int, *, full_colour: bool
) -> bytes:
    """Encode with the quality that comes nearest to a number of bytes, in few tries."""
    tried: dict[int, bytes] = {}
    slope = -0.6
    while quality not in tried and len(tried) < MAX_ENCODES:
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=quality, subsampling=0 if full_colour else 2)
        tried[quality] = buffer.getvalue()
        off = math.log(len(tried[quality]) / wanted_bytes)
        if abs(off) <= CLOSE_ENOUGH:
            break
        if len(tried) > 1:
            one, other = list(tried)[-2:]
            grown = math.log(len(tried[other]) / len(tried[one]))
            slope = min(-0.2, grown / (_log_step(other) - _log_step(one)))
        quality = _quality_at(_log_step(quality) - off / slope)
    return min(tried.values(), key=lambda encoded: abs(len(encoded) - wanted_bytes))


def _log_step(quality: int) -> float:
    """Give the logarithm of libjpeg's quantisation step at a quality, in percent of its table."""
    return math.log(5000 / quality if quality < 50 else 201 - 2 * quality)


def _quality_at(log_step: float) -> int:
    step = math.exp(log_step)
    return min(max(round(5000 / step if step > 100 else (201 - step) / 2), 4), 100)
