"""Which features of other people's Examples are the image, the label and the class's name."""

import mmap
from dataclasses import dataclass

from timesink.datasets.stores.examples import (
    BYTES,
    INTS,
    Feature,
    byte_values,
    describe,
    find_features,
    int_values,
)
from timesink.datasets.verify import image_format

# As the ImageNet scripts, TensorFlow Datasets, Kaggle's sets and tutorials name them.
IMAGE_KEYS = (
    b"image/encoded",
    b"image_raw",
    b"image",
    b"encoded",
    b"image/raw",
    b"image_bytes",
    b"image_data",
    b"img",
    b"img_raw",
    b"jpeg",
    b"jpg",
    b"png",
    b"data",
)
LABEL_KEYS = (
    b"image/class/label",
    b"label",
    b"class",
    b"target",
    b"labels",
    b"class_id",
    b"category",
    b"y",
)
TEXT_KEYS = (
    b"image/class/text",
    b"text",
    b"class_name",
    b"label_name",
    b"class/text",
    b"label",
    b"class",
)


@dataclass(frozen=True)
class Keys:
    """What is read of an Example."""

    image: bytes
    label: bytes | None
    """A whole number; None where only names tell the classes apart."""
    text: bytes | None
    """The class's name."""

    def __str__(self) -> str:
        label = self.label if self.label is not None else self.text
        named = [("image", self.image), ("label", label)]
        if self.label is not None and self.text is not None:
            named.append(("class name", self.text))
        return ", ".join(f"{what} = {shown(key)}" for what, key in named if key is not None)


class UnknownKeysError(ValueError):
    """An Example of which it cannot be told what is what; the message says why."""


def shown(key: bytes) -> str:
    """Write a key so that it can be printed."""
    return key.decode("utf-8", "backslashreplace")


def guess_keys(content: mmap.mmap, start: int, end: int) -> Keys:
    """Tell by an Example's keys and values which is the image and which the label."""
    found = find_features(content, start, end)
    if found.is_sequence:
        raise UnknownKeysError(
            "these are SequenceExamples, of which no image classifier is trained; its context has "
            f"{describe(found.features)}"
        )
    features = found.features
    texts = [key for key in TEXT_KEYS if _is_one_text(content, features.get(key))]
    return Keys(
        image=_image_key(content, features),
        label=_label_key(content, features, has_text=bool(texts)),
        text=texts[0] if texts else None,
    )


def _image_key(content: mmap.mmap, features: dict[bytes, Feature]) -> bytes:
    encoded = [key for key, feature in features.items() if _is_image(content, feature)]
    for key in IMAGE_KEYS:
        if key in encoded:
            return key
    if len(encoded) == 1:
        return encoded[0]
    there = describe(features)
    if encoded:
        raise UnknownKeysError(f"several features hold images, none has a usual name: {there}")
    raw = [key for key in IMAGE_KEYS if key in features]
    if raw:
        raise UnknownKeysError(
            f"{shown(raw[0])} holds no JPEG, PNG, GIF or BMP, perhaps pixels as they are, whose "
            f"size and order nothing tells: write encoded images; the keys are {there}"
        )
    raise UnknownKeysError(f"no feature holds a JPEG, PNG, GIF or BMP; the keys are {there}")


def _label_key(
    content: mmap.mmap, features: dict[bytes, Feature], *, has_text: bool
) -> bytes | None:
    single = [
        key
        for key, feature in features.items()
        if feature.kind == INTS and len(int_values(content, feature, most=2)) == 1
    ]
    for key in LABEL_KEYS:
        if key in single:
            return key
    if has_text:
        return None
    if len(single) == 1:
        return single[0]
    what = "several features could be the label" if single else "no feature is one whole number"
    raise UnknownKeysError(f"{what}, a label; the keys are {describe(features)}")


def _is_image(content: mmap.mmap, feature: Feature) -> bool:
    if feature.kind != BYTES:
        return False
    values = list(byte_values(content, feature))
    return len(values) == 1 and image_format(content[values[0][0] : values[0][0] + 16]) is not None


def _is_one_text(content: mmap.mmap, feature: Feature | None) -> bool:
    if feature is None or feature.kind != BYTES:
        return False
    values = list(byte_values(content, feature))
    if len(values) != 1 or not 0 < values[0][1] <= 1024:
        return False
    try:
        return content[values[0][0] : sum(values[0])].decode().isprintable()
    except UnicodeDecodeError:
        return False
