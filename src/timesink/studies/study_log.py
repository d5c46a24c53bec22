"""The journal of a study or a sweep: begun once, gone on with where it is the same, never mixed."""

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from timesink import machine
from timesink.errors import OutputExistsError, RunError, RunFileError
from timesink.files import TEMPORARY_SUFFIX, alone_in, write_atomically
from timesink.runs.journal import Event, Journal, read_events

NAME = "study.log"
INPUTS = ("machine.json", "study.toml", "stores")
"""Written before the journal: alone, they are of a study that was cut before it began."""


@dataclass(frozen=True)
class StudyLog:
    """The journal in a directory, and what makes two of them the same."""

    out: Path
    kind: str
    plan: Mapping[str, Any]
    toml: str

    @property
    def path(self) -> Path:
        """The file."""
        return self.out / NAME

    def open(self) -> list[Event]:
        """Begin it, or read what an earlier process wrote into the same one."""
        here = machine.describe(self.out)
        if not self.path.exists():
            if any(_not_ours(member.name) for member in self.out.iterdir()):
                raise OutputExistsError(f"{self.out} exists and is not a study; give another --out")
            write_atomically(self.out / "machine.json", json.dumps(here, indent=2) + "\n")
            write_atomically(self.out / "study.toml", self.toml)
            journal = self.append()
            journal.write(
                "study",
                kind=self.kind,
                utc=datetime.now(UTC).isoformat(),
                plan=self.plan,
                machine=here,
            )
            journal.close()
            return []
        events = list(read_events(self.path))
        began = events[0] if events else None
        if began is None or began.name != "study" or began.fields.get("kind") != self.kind:
            raise OutputExistsError(f"{self.out} exists and is another study; give another --out")
        if began.fields["plan"] != json.loads(json.dumps(self.plan)):
            raise OutputExistsError(
                f"{self.out} holds a study that was asked for otherwise; --force overwrites it"
            )
        for what in ("model", "cores"):
            before, now = began.fields["machine"]["cpu"][what], here["cpu"][what]
            if before != now:
                raise RunFileError(
                    f"{self.out} was begun on another machine ({what} {before}, here {now}): what "
                    "was measured there and here could not be compared; give another --out"
                )
        return events[1:]

    def append(self) -> Journal:
        """Open it to write."""
        return Journal(self.path, 1, time.monotonic_ns())


def _not_ours(name: str) -> bool:
    return name not in (NAME, *INPUTS) and not name.endswith(TEMPORARY_SUFFIX)


def clear(out: Path) -> None:
    """Delete a study that may be overwritten, and nothing else."""
    log = out / NAME
    first = next(iter(read_events(log)), None) if log.is_file() else None
    if first is None or first.name != "study":
        if out.is_dir() and not any(out.iterdir()):
            return
        raise OutputExistsError(f"{out} exists and is not a study: --force does not delete it")
    with alone_in(out, "study", RunError):
        shutil.rmtree(out)


def minutes(seconds: float) -> str:
    """Say how long something takes."""
    whole = round(seconds / 60)
    if whole < 1:
        return "less than a minute"
    return f"about {whole} min" if whole < 120 else f"about {seconds / 3600:.1f} h"
