"""One shard of TFRecords out of image files, whose bytes stay as they are."""

from dataclasses import dataclass
from pathlib import Path

import google_crc32c

from timesink.datasets.stores import framing
from timesink.datasets.stores.examples import image_example
from timesink.datasets.stores.journal import Done
from timesink.datasets.verify import EMPTY, MISSING, UNREADABLE, image_format
from timesink.files import replacing


@dataclass(frozen=True)
class ImageFile:
    """An image to be written: its number and what its record says of it."""

    number: int
    path: str
    name: bytes
    label: int
    class_name: bytes


@dataclass(frozen=True)
class RecordTask:
    """The images of one shard, for one worker."""

    number: int
    target: Path
    images: tuple[ImageFile, ...]


def write_shard(task: RecordTask) -> Done:
    """Write a shard, whole or not at all; what cannot be read is left out and told."""
    images: list[int] = []
    columns: dict[str, list[int]] = {
        name: [] for name in ("offset", "bytes", "image_offset", "image_bytes")
    }
    faults: list[tuple[int, str]] = []
    offset = crc = 0
    with replacing(task.target) as temporary, temporary.open("xb", buffering=1 << 20) as file:
        for image in task.images:
            encoded = _read(image.path)
            if isinstance(encoded, str):
                faults.append((image.number, encoded))
                continue
            before, encoded = image_example(
                encoded,
                label=image.label,
                class_name=image.class_name,
                filename=image.name,
                image_format=image_format(encoded),
            )
            length = len(before) + len(encoded)
            head, foot = framing.header(length), framing.footer((before, encoded))
            for piece in (head, before, encoded, foot):
                file.write(piece)
                crc = google_crc32c.extend(crc, piece)
            images.append(image.number)
            columns["offset"].append(offset)
            columns["bytes"].append(length)
            columns["image_offset"].append(offset + len(head) + len(before))
            columns["image_bytes"].append(len(encoded))
            offset += len(head) + length + len(foot)
    return Done(task.number, offset, crc, images, columns, faults)


def _read(path: str) -> bytes | str:
    """Read a file, or name why it cannot be."""
    try:
        encoded = Path(path).read_bytes()
    except FileNotFoundError:
        return MISSING
    except OSError:
        return UNREADABLE
    return encoded or EMPTY
