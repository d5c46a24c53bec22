"""Broken images met in training: each named once, counted, and stopped at the budget."""

from collections.abc import Callable, Iterable
from pathlib import Path

from timesink.datasets.folder import ImageSet
from timesink.datasets.verify import USABLE, inspect
from timesink.engines.recorder import Recorder
from timesink.errors import BadImagesError


class BadImages:
    """The broken images of one split, found as gaps in the positions that came."""

    def __init__(
        self,
        images: ImageSet,
        root: Path,
        split: str,
        max_bad: float,
        image_at: Callable[[int], int],
        recorder: Recorder,
        *,
        next_position: int = 0,
        known: Iterable[int] = (),
    ) -> None:
        self.images, self.root, self.split, self.max_bad = images, root, split, max_bad
        self.image_at, self.recorder = image_at, recorder
        self.next_position = next_position
        self.known = set(known)

    def saw(self, positions: Iterable[int]) -> None:
        """Take the positions of a batch that came, in order; what lies between is broken."""
        for position in positions:
            for skipped in range(self.next_position, position):
                self._add(self.image_at(skipped))
            self.next_position = position + 1

    def saw_the_end(self, last_position: int) -> None:
        """Take the end of the stream; what never came is broken if it does not decode."""
        for skipped in range(self.next_position, last_position):
            index = self.image_at(skipped)
            if inspect(self.images.paths[index]) not in (None, *USABLE):
                self._add(index)
        self.next_position = last_position

    def _add(self, index: int) -> None:
        if index in self.known:
            return
        self.known.add(index)
        path = self.images.paths[index]
        name = Path(path).relative_to(self.root) if Path(path).is_relative_to(self.root) else path
        reason = inspect(path) or "not decodable by TensorFlow"
        self.recorder.write("bad_image", split=self.split, path=str(name), reason=reason)
        if len(self.known) > self.max_bad * len(self.images):
            raise BadImagesError(
                f"{len(self.known)} of {len(self.images)} {self.split} images are broken, more "
                f"than dataset.max_bad = {self.max_bad:g} allows; the last is {name} ({reason}); "
                f"`timesink dataset verify` lists all, --quarantine moves them aside"
            )
