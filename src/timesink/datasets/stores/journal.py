"""The journal of a conversion: a line for each shard that is done, so that none is made twice."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from timesink.datasets.stores.contents import JOURNAL, VERSION


@dataclass(frozen=True)
class Done:
    """A shard that is on the disk, whole."""

    number: int
    bytes: int
    crc32c: int
    images: list[int]
    """The numbers of the images in it, in order."""
    columns: dict[str, list[int]]
    """Of each of them, where it lies: columns of the index."""
    faults: list[tuple[int, str]]
    """Images that were to be in it and are left out, and why."""


class StoreJournal:
    """Appends lines; what stands in a journal of the same plan is kept."""

    def __init__(self, out: Path, plan: str) -> None:
        self.path, self.plan = out / JOURNAL, plan

    def read(self) -> list[Done]:
        """Give what is done; of another plan, or from a torn line on, nothing."""
        try:
            lines = self.path.read_bytes().split(b"\n")
        except OSError:
            return []
        done: list[Done] = []
        try:
            if json.loads(lines[0]) != {"version": VERSION, "plan": self.plan}:
                return []
            done += (_done(json.loads(line)) for line in lines[1:-1])
        except (ValueError, TypeError, KeyError):
            pass
        return done

    def start(self, kept: list[Done]) -> Self:
        """Begin the journal anew with what is kept."""
        head = json.dumps({"version": VERSION, "plan": self.plan})
        lines = [head, *(json.dumps(asdict(done)) for done in kept)]
        temporary = self.path.with_name(f".{JOURNAL}.tmp")
        temporary.write_text("".join(f"{line}\n" for line in lines))
        temporary.replace(self.path)
        return self

    def add(self, done: Done) -> None:
        """Note a shard; on the disk before the next is begun."""
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(done)) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def remove(self) -> None:
        """End: the manifest says it all."""
        self.path.unlink(missing_ok=True)


def _done(line: dict[str, Any]) -> Done:
    done = Done(**line)
    return Done(**(line | {"faults": [(int(i), str(why)) for i, why in done.faults]}))
