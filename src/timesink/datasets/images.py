"""The images of a dataset as values: which there are, their classes, what is held out."""

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from timesink.datasets.store import Store


@dataclass(frozen=True)
class ImageSet:
    """Images with their labels, in a fixed order; files, or records of a store."""

    paths: tuple[str, ...]
    """Of a record, the file that it was made of: its name, no longer where it is read."""
    labels: tuple[int, ...]
    store: Store | None = None
    """What `dataset convert` made, or somebody's TFRecords; None where the images are files."""
    records: tuple[int, ...] = ()
    """Of each image, its number in the store."""

    def __len__(self) -> int:
        return len(self.paths)


@dataclass(frozen=True)
class ImageDataset:
    """The images of a folder: label i is classes[i]; validation may be empty."""

    root: Path
    classes: tuple[str, ...]
    train: ImageSet
    validation: ImageSet
    notes: tuple[str, ...]
    """Sentences for the user: what was held out, what was passed over."""

    def fingerprint(self) -> str:
        """Tell this list of images from any other: by names, labels and order, not by content."""
        digest = blake2b(digest_size=16)
        prefix = len(str(self.root))
        for images in (self.train, self.validation):
            names = (
                path[prefix:] if path.startswith(str(self.root)) else path for path in images.paths
            )
            digest.update("\0".join(names).encode(errors="surrogateescape"))
            digest.update(str(images.labels).encode())
        return digest.hexdigest()
