"""One measurement of a study, in processes of its own: how it ended out, what it found on disk."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from timesink.errors import (
    DiskFullError,
    OutOfMemoryError,
    RunError,
    TimeLimitError,
    TimesinkError,
)
from timesink.experiment_toml import to_toml as experiment_toml
from timesink.files import write_atomically
from timesink.runs.asking import ask
from timesink.runs.pipeline import Asked, Files, measure_pipeline
from timesink.studies.plan import Planned

GRACE_S = 60.0
"""What a run is given to stop at the end of a step; of a shorter time limit, as long as that."""
SIDES_LIMIT_S = 3600.0
KINDS = {
    OutOfMemoryError.exit_code: "out of memory",
    DiskFullError.exit_code: "disk full",
}
KILLED = "killed"
"""From outside, as far as anybody knows: it was cut, and is measured again."""
_BY_SIGNAL = re.compile(r"\bended by SIG[A-Z]+\b")
SIDES = "sides.json"
"""What was measured of input alone, compute alone and both."""

Outcome = Mapping[str, Any]
"""What the journal has of a measurement's end: `exit`, `reason`, `kind`, `wall_s`."""


def carry_out(each: Planned, out: Path, time_limit_s: float | None) -> dict[str, Any]:
    """Measure one cell; what it found is in its directory, how it ended is given."""
    begin_s = time.monotonic()
    if each.measure.how == "run":
        ended = _run(each, out, time_limit_s)
    else:
        try:
            if each.measure.how == "pipeline":
                _pipeline(each, out / each.place, time_limit_s)
            else:
                _sides(each, out / each.place, time_limit_s)
            ended = _ended(0, "")
        except TimeLimitError as error:
            ended = _late(time_limit_s) if time_limit_s else _ended(error.exit_code, str(error))
        except TimesinkError as error:
            ended = _ended(error.exit_code, str(error))
    return {**ended, "wall_s": time.monotonic() - begin_s}


def _ended(code: int, reason: str, kind: str | None = None) -> dict[str, Any]:
    if kind is None:
        other = KILLED if _BY_SIGNAL.search(reason) else "failed"
        kind = "" if code == 0 else KINDS.get(code, other)
    return {"exit": code, "reason": reason, "kind": kind}


def _late(time_limit_s: float) -> dict[str, Any]:
    return _ended(RunError.exit_code, f"it took longer than {time_limit_s:g} s", "time limit")


def _pipeline(each: Planned, place: Path, time_limit_s: float | None) -> None:
    """Measure an input pipeline alone, as `timesink pipeline` does, into the same files."""
    asked = Asked(
        seconds=each.measure.seconds,
        cpu=each.measure.stages,
        time_limit_s=time_limit_s or math.inf,
    )
    facts = measure_pipeline(each.experiment, asked, lambda _line: None)
    Files(place, force=True).write(facts)


def _sides(each: Planned, place: Path, time_limit_s: float | None) -> None:
    """Measure input alone, compute alone and both, in rounds."""
    answer = ask(
        {
            "experiment": each.experiment.model_dump(mode="json"),
            "part": "sides",
            "rounds": each.measure.rounds,
            "seconds": each.measure.seconds,
        },
        time_limit_s=time_limit_s or SIDES_LIMIT_S,
        cores=each.experiment.machine.cores,
    )
    write_atomically(place / SIDES, json.dumps(answer) + "\n")


def _run(each: Planned, out: Path, time_limit_s: float | None) -> dict[str, Any]:
    """Run one experiment in a process of its own."""
    place = out / each.place
    asked = out / f".{each.place}.toml.tmp"
    write_atomically(asked, experiment_toml(each.experiment, comments=False))
    child = subprocess.Popen(
        [
            *(sys.executable, "-m", "timesink.studies.one_run"),
            *(str(asked), str(place), str(os.getpid())),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        _, said = child.communicate(timeout=time_limit_s)
    except subprocess.TimeoutExpired:
        assert time_limit_s is not None
        _stop(child, min(GRACE_S, time_limit_s))
        return _late(time_limit_s)
    except BaseException:
        _stop(child, GRACE_S)
        raise
    finally:
        asked.unlink(missing_ok=True)
    return _ended(child.returncode, _reason(child.returncode, said))


def _stop(child: subprocess.Popen[str], grace_s: float) -> None:
    """Let a run stop at the end of its step, or end it; nothing of it is left."""
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        if child.poll() is None:
            child.send_signal(number)
        try:
            child.communicate(timeout=grace_s)
            return
        except subprocess.TimeoutExpired:
            continue


def _reason(code: int, said: str) -> str:
    if code == 0:
        return ""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return lines[-1][:400] if lines else f"it ended with code {code}"
