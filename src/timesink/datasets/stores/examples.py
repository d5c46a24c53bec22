"""`tf.train.Example` on the wire, without TensorFlow: one image written, any one read.

Example.features (1) → Features.feature (1), a map: key (1), value (2) → one of bytes_list (1),
float_list (2), int64_list (3), each with its values as field 1. Reading looks at lengths and
passes over what they cover, so that of a mapped file few pages are touched.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

BYTES, FLOATS, INTS = 1, 2, 3
"""The kinds of a feature: its field's number."""

KINDS = {BYTES: "bytes", FLOATS: "float", INTS: "int64"}

_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5


class NotAnExampleError(ValueError):
    """Bytes that are no Example."""


class Readable(Protocol):
    """Bytes, or a mapped file."""

    def __getitem__(self, index: slice, /) -> bytes: ...


@dataclass(frozen=True)
class Feature:
    """A feature of an Example: where its list of values lies."""

    kind: int
    start: int
    end: int


@dataclass(frozen=True)
class Found:
    """What an Example holds."""

    features: dict[bytes, Feature]
    is_sequence: bool
    """Whether it is a SequenceExample, which begins in the same way."""


def image_example(
    encoded: bytes, *, label: int, class_name: bytes, filename: bytes, image_format: str | None
) -> tuple[bytes, bytes]:
    """Give an Example of one image as the bytes before it and itself: the image comes last."""
    small = [
        _entry(b"image/class/label", _int64_list(label)),
        _entry(b"image/class/text", _bytes_list(class_name)),
        _entry(b"image/filename", _bytes_list(filename)),
    ]
    if image_format is not None:
        small.append(_entry(b"image/format", _bytes_list(image_format.encode())))
    before = b"".join(small)
    head = _head_of_last(b"image/encoded", len(encoded))
    return _field(1, len(before) + len(head) + len(encoded)) + before + head, encoded


def find_features(content: Readable, start: int, end: int) -> Found:
    """Find the features of the Example between two offsets; NotAnExampleError else."""
    features: dict[bytes, Feature] = {}
    is_sequence = False
    for number, at, stop in _messages(content, start, end):
        if number == 2:
            is_sequence = True
        if number != 1:
            continue
        for entry_number, entry_at, entry_stop in _messages(content, at, stop):
            if entry_number == 1:
                key, feature = _read_entry(content, entry_at, entry_stop)
                if feature is not None:
                    features[key] = feature
    return Found(features, is_sequence)


def byte_values(content: Readable, feature: Feature) -> Iterator[tuple[int, int]]:
    """Give where each value of a list of bytes lies: offset and length."""
    for number, at, stop in _messages(content, feature.start, feature.end):
        if number == 1:
            yield at, stop - at


def int_values(content: Readable, feature: Feature, *, most: int) -> list[int]:
    """Give the first values of a list of integers, packed or not."""
    values: list[int] = []
    at = feature.start
    while at < feature.end and len(values) < most:
        tag, at = _varint(content, at, feature.end)
        if tag == 1 << 3 | _VARINT:
            value, at = _varint(content, at, feature.end)
            values.append(_signed(value))
        elif tag == 1 << 3 | _LENGTH_DELIMITED:
            length, at = _varint(content, at, feature.end)
            stop = _checked(at + length, feature.end)
            while at < stop and len(values) < most:
                value, at = _varint(content, at, stop)
                values.append(_signed(value))
            at = stop
        else:
            at = _skip(content, tag & 7, at, feature.end)
    return values


def describe(features: Mapping[bytes, Feature]) -> str:
    """Name the keys of an Example and their kinds, for a message."""
    named = [
        f"{key.decode('utf-8', 'backslashreplace')} ({KINDS[feature.kind]})"
        for key, feature in sorted(features.items())
    ]
    more = f" and {len(named) - 12} more" if len(named) > 12 else ""
    return ", ".join(named[:12]) + more if named else "no keys"


def _read_entry(content: Readable, start: int, end: int) -> tuple[bytes, Feature | None]:
    key, feature = b"", None
    for number, at, stop in _messages(content, start, end):
        if number == 1:
            key = content[at:stop]
        elif number == 2:
            for kind, list_at, list_stop in _messages(content, at, stop):
                if kind in KINDS:
                    feature = Feature(kind, list_at, list_stop)
    return key, feature


def _messages(content: Readable, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Give the length-delimited fields of a message: number, where it begins, where it ends."""
    at = start
    while at < end:
        tag, at = _varint(content, at, end)
        if not tag >> 3:
            raise NotAnExampleError("field 0")
        if tag & 7 == _LENGTH_DELIMITED:
            length, at = _varint(content, at, end)
            stop = _checked(at + length, end)
            yield tag >> 3, at, stop
            at = stop
        else:
            at = _skip(content, tag & 7, at, end)


def _varint(content: Readable, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    for byte in content[at : min(at + 10, end)]:
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7
    raise NotAnExampleError("a number without end")


def _skip(content: Readable, wire_type: int, at: int, end: int) -> int:
    if wire_type == _VARINT:
        return _varint(content, at, end)[1]
    if wire_type == _FIXED64:
        return _checked(at + 8, end)
    if wire_type == _FIXED32:
        return _checked(at + 4, end)
    raise NotAnExampleError(f"wire type {wire_type}")


def _checked(stop: int, end: int) -> int:
    if stop > end:
        raise NotAnExampleError("a field that ends after its message")
    return stop


def _signed(value: int) -> int:
    value &= 2**64 - 1
    return value - 2**64 if value >> 63 else value


def _written(value: int) -> bytes:
    """Write a number as a varint."""
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


def _field(number: int, length: int) -> bytes:
    return bytes([number << 3 | _LENGTH_DELIMITED]) + _written(length)


def _bytes_list(value: bytes) -> bytes:
    values = _field(1, len(value)) + value
    return _field(BYTES, len(values)) + values


def _int64_list(value: int) -> bytes:
    packed = _written(value & 2**64 - 1)
    values = _field(1, len(packed)) + packed
    return _field(INTS, len(values)) + values


def _entry(key: bytes, feature: bytes) -> bytes:
    entry = _field(1, len(key)) + key + _field(2, len(feature)) + feature
    return _field(1, len(entry)) + entry


def _head_of_last(key: bytes, length: int) -> bytes:
    """Give what stands before a value of bytes in its entry, so that the value is not copied."""
    value = _field(1, length)
    values = _field(BYTES, len(value) + length) + value
    feature = _field(1, len(key)) + key + _field(2, len(values) + length) + values
    return _field(1, len(feature) + length) + feature
