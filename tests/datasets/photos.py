"""A small dataset of differing images, and a renderer that needs no framework."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from tests.pictures import write
from timesink.datasets.stores.plan import Rendered

SIDE = 8
STAGES = ("decode", "convert", "resize(bilinear)")


def rendered(dtype: str = "uint8", side: int = SIDE) -> Rendered:
    return Rendered(STAGES, side, side, dtype)


def picture(number: int) -> bytes:
    """Encode an image that no other number gives."""
    random = np.random.default_rng(number)
    size = (int(random.integers(8, 40)), int(random.integers(8, 40)), 3)
    noise = random.integers(0, 256, size, dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).save(buffer, "PNG" if number % 5 == 4 else "JPEG")
    return buffer.getvalue()


def make_photos(
    root: Path, *, classes: int = 3, images: int = 6, validation_images: int = 2
) -> Path:
    """Write train/<class>/… and val/<class>/…, or only <class>/… with no validation images."""
    number = 0
    splits = {"train": images, "val": validation_images} if validation_images else {"": images}
    for split, count in splits.items():
        for label in range(classes):
            for index in range(count):
                write(root / split / f"class {label}" / f"{index}.jpg", picture(number))
                number += 1
    return root


def render(paths, *, side=SIDE, dtype="uint8", at_once=4):
    """Decode and resize with Pillow; what Pillow cannot read is left out."""
    order, images = [], []
    for number, path in enumerate(paths):
        try:
            with Image.open(path) as image:
                pixels = np.asarray(image.convert("RGB").resize((side, side)))
        except OSError:
            continue
        order.append(number)
        images.append(pixels if dtype == "uint8" else pixels.astype(np.float32) / 255)
        if len(order) == at_once:
            yield np.array(order), np.stack(images)
            order, images = [], []
    if order:
        yield np.array(order), np.stack(images)


def files_of(folder: Path) -> dict[str, bytes]:
    """Read all files of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
