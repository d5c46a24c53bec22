"""Machine and experiment as lines for people; which settings differ among runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from timesink.report.text import NONE, size

NOT_SETTINGS = ("name", "seed", "repetitions", "grid")
"""What makes no other experiment of it."""


def machine_lines(machine: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name what a run ran on; what nobody noted is left out."""
    cpu, disk = machine.get("cpu") or {}, machine.get("disk") or {}
    system, git = machine.get("system") or {}, machine.get("git") or {}
    cores = cpu.get("cores")
    lines = [
        ("processor", cpu.get("model")),
        ("cores", _cores(cores, cpu.get("cores_of_machine"), cpu.get("cores_asked"))),
        ("memory", size(machine["memory_bytes"]) if machine.get("memory_bytes") else None),
        ("disk", _disk(disk)),
        ("accelerators", ", ".join(str(gpu.get("name")) for gpu in machine.get("gpus") or ())),
        ("system", system.get("os")),
        *((name, version) for name, version in (machine.get("versions") or {}).items()),
        ("revision of your code", _revision(git)),
    ]
    return [(name, str(value)) for name, value in lines if value]


def flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Give nested settings by their dotted keys."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{name}.")
        else:
            found[name] = value
    return found


def setting_lines(experiment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Give each key of an experiment with its value; empty ones are left out."""
    return [
        (key, written(value))
        for key, value in flat(experiment).items()
        if value is not None and value not in ({}, [])
    ]


def written(value: Any) -> str:
    """Write a setting's value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(map(written, value)) or NONE
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {written(each)}" for key, each in value.items())
    return NONE if value is None else str(value)


def differing(experiments: Sequence[Mapping[str, Any]]) -> list[str]:
    """Name the settings that all runs have and differ in, besides their names and seeds."""
    every = [flat(each) for each in experiments]
    return [
        key
        for key in every[0]
        if key.partition(".")[0] not in NOT_SETTINGS
        and all(key in each for each in every)
        and len({written(each.get(key)) for each in every}) > 1
    ]


def _cores(cores: int | None, of_machine: int | None, asked: int | None) -> str | None:
    if asked:
        return f"{asked}, as asked for, of {of_machine or cores}"
    if cores and of_machine and of_machine != cores:
        return f"{cores} of the machine’s {of_machine}"
    return str(cores) if cores else None


def _disk(disk: Mapping[str, Any]) -> str | None:
    free, total = disk.get("free_bytes"), disk.get("total_bytes")
    if not disk.get("filesystem"):
        return None
    room = f", {size(free)} free of {size(total)}" if free and total else ""
    return f"{disk['filesystem']}{room}"


def _revision(git: Mapping[str, Any]) -> str | None:
    revision = git.get("revision")
    return f"{revision[:12]}{', modified' if git.get('modified') else ''}" if revision else None
