"""Broken images met in training: each named once, counted, and stopped at the budget."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from timesink.datasets.images import ImageSet
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
        self._ahead: set[int] = set()

    def saw(self, positions: Sequence[int], *, in_order: bool = True) -> None:
        """Take the positions of a batch that came; in order, what lies between is broken.

        Out of order, what is missing may still come: `next_position` waits for it.
        """
        self._ahead.update(positions)
        last = max(self._ahead) if in_order else -1
        while self.next_position in self._ahead or self.next_position < last:
            if self.next_position not in self._ahead:
                self._add(self.image_at(self.next_position))
            self._ahead.discard(self.next_position)
            self.next_position += 1

    def saw_the_end(self, last_position: int) -> None:
        """Take the end of the stream; what never came is broken if it does not decode."""
        for skipped in range(self.next_position, last_position):
            index = self.image_at(skipped)
            if skipped not in self._ahead and self._fault(index) not in (None, *USABLE):
                self._add(index)
        self.next_position = last_position
        self._ahead.clear()

    def _fault(self, index: int) -> str | None:
        store = self.images.store
        return (
            store.fault(self.images.records[index]) if store else inspect(self.images.paths[index])
        )

    def _add(self, index: int) -> None:
        if index in self.known:
            return
        self.known.add(index)
        path = self.images.paths[index]
        name = Path(path).relative_to(self.root) if Path(path).is_relative_to(self.root) else path
        reason = self._fault(index) or "not decodable by TensorFlow"
        self.recorder.write("bad_image", split=self.split, path=str(name), reason=reason)
        if len(self.known) > self.max_bad * len(self.images):
            raise BadImagesError(
                f"{len(self.known)} of {len(self.images)} {self.split} images are broken, more "
                f"than dataset.max_bad = {self.max_bad:g} allows; the last is {name} ({reason}); "
                f"`timesink dataset verify` lists all, --quarantine moves them aside"
            )
