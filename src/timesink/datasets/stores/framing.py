"""The frame of a TFRecord: length, its checksum, payload, its checksum; written and checked."""

import struct
from collections.abc import Iterable
from typing import Any

import google_crc32c

HEADER_BYTES = 12
"""Before a payload: its length and the checksum of that."""
FOOTER_BYTES = 4
"""After a payload: its checksum."""

_HEADER, _LENGTH, _CRC = struct.Struct("<QI"), struct.Struct("<Q"), struct.Struct("<I")


def crc32c(pieces: Iterable[Any]) -> int:
    """Give the CRC32C of bytes or NumPy arrays, one after the other."""
    crc = 0
    for piece in pieces:
        crc = google_crc32c.extend(crc, piece)
    return crc


def masked(crc: int) -> int:
    """Mask a checksum as TFRecords do, so that one of bytes that hold checksums stays good."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def header(payload_bytes: int) -> bytes:
    """Give what stands before a payload."""
    length = _LENGTH.pack(payload_bytes)
    return length + _CRC.pack(masked(google_crc32c.value(length)))


def footer(payload: Iterable[Any]) -> bytes:
    """Give what stands after a payload that is given in pieces."""
    return _CRC.pack(masked(crc32c(payload)))


def payload_bytes(head: bytes) -> int | None:
    """Read a payload's length; None where its checksum does not hold."""
    if len(head) < HEADER_BYTES:
        return None
    length, expected = _HEADER.unpack(head)
    return length if masked(google_crc32c.value(head[:8])) == expected else None


def holds(content: Any, offset: int, payload_length: int) -> bool:
    """Tell whether the record at an offset of an array of bytes is whole and unchanged."""
    start = offset + HEADER_BYTES
    end = start + payload_length
    if offset < 0 or end + FOOTER_BYTES > len(content):
        return False
    if payload_bytes(content[offset:start].tobytes()) != payload_length:
        return False
    expected: int = _CRC.unpack(content[end : end + FOOTER_BYTES].tobytes())[0]
    return masked(google_crc32c.value(content[start:end])) == expected
