"""A child process that measures something: asked with one JSON object, it answers with one."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from timesink import machine
from timesink.errors import RunError, TimeLimitError, error_named
from timesink.runs.supervisor import NOISE, child_environment


def ask(
    request: Mapping[str, Any], *, time_limit_s: float, cores: int | None = None
) -> dict[str, Any]:
    """Let `measurer` measure, on so many cores; what it says went wrong is raised here."""
    with child_process("timesink.runs.measurer", [str(os.getpid())], cores=cores) as child:
        answer = answer_of(child, json.dumps(request), time_limit_s)
    if answer.get("late"):
        raise TimeLimitError(f"the pipeline could not be measured: {answer['failed']}")
    if "error" in answer:
        raise error_named(answer["error"], answer["message"])
    if "failed" in answer:
        raise RunError(f"the pipeline could not be measured: {answer['failed']}")
    return answer


@contextmanager
def child_process(
    module: str, arguments: list[str], *, cores: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Start a module as a process of its own group; nothing of it is left afterwards.

    Given a number of cores, it and all that it starts run on the CPUs chosen for that number.
    """
    with machine.confined(machine.chosen_cpus(cores)):
        child = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=child_environment(cores),
            start_new_session=True,
        )
    try:
        yield child
    finally:
        kill(child)
        child.communicate()


def answer_of(child: subprocess.Popen[str], question: str, time_limit_s: float) -> dict[str, Any]:
    """Wait for the answer; why there is none stands under `failed`."""
    try:
        said, errors = child.communicate(question, timeout=time_limit_s)
    except subprocess.TimeoutExpired:
        return {"failed": f"it took longer than {time_limit_s:.0f} s", "late": True}
    with suppress(ValueError):
        answer = json.loads(said)
        if isinstance(answer, dict):
            return answer
    if child.returncode < 0:
        return {"failed": f"its process was ended by {signal.Signals(-child.returncode).name}"}
    lines = [line for line in errors.splitlines() if line.strip() and not NOISE.search(line)]
    last = f": {lines[-1].strip()[:200]}" if lines else ""
    return {"failed": f"its process ended with code {child.returncode}{last}"}


def kill(child: subprocess.Popen[str]) -> None:
    """End a child and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
