"""Small real image files, whole and broken, for tests."""

import io
from pathlib import Path

import numpy as np
from PIL import Image


def encoded(kind: str = "JPEG", *, size: tuple[int, int] = (48, 32), mode: str = "RGB") -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).convert(mode).save(buffer, kind)
    return buffer.getvalue()


def write(path: Path, content: bytes | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded() if content is None else content)
    return path
