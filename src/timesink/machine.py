"""What a run runs on: cores, memory, disk, accelerators, versions and the revision of the code."""

import os
import platform
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

import timesink
from timesink.cgroups import ROOT, cpu_quota
from timesink.errors import ExperimentError

PACKAGES = ("tensorflow", "tensorflow-cpu", "keras", "numpy", "pillow", "polars")


def cores(root: Path = ROOT) -> int:
    """Count the cores this process may use: what an affinity mask and a container's quota leave."""
    return max(1, min(schedulable_cpus(), cpu_quota(root) or sys.maxsize))


def schedulable_cpus() -> int:
    """Count the CPUs of this process's affinity mask: what frameworks size their threads by."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chosen_cpus(cores: int | None) -> tuple[int, ...] | None:
    """Choose the CPUs of so many cores; None, which is no choice, where no number is asked for.

    The same number gives the same CPUs, as long as the affinity mask is the same.
    """
    if cores is None:
        return None
    _refuse_what_cannot_be(cores)
    return spread_over_cores(os.sched_getaffinity(0))[:cores]


def spread_over_cores(cpus: Iterable[int], root: Path = ROOT) -> tuple[int, ...]:
    """Order CPUs by number, but a second hyper-thread of a core behind the first of all others."""
    taken = Counter[str]()
    ranked = []
    for cpu in sorted(cpus):
        topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
        try:
            core = topology.read_text().strip()
        except OSError:
            core = str(cpu)
        ranked.append((taken[core], cpu))
        taken[core] += 1
    return tuple(cpu for _, cpu in sorted(ranked))


@contextmanager
def confined(cpus: Sequence[int] | None) -> Iterator[None]:
    """Confine this thread alone to some CPUs: a process that it starts meanwhile stays on them.

    Linux keeps the mask a thread, and hands it on to what is started. So the child is confined
    before its first instruction, and nothing has to run between fork and exec.
    """
    if cpus is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def describe(directory: Path, asked_cores: int | None = None) -> dict[str, Any]:
    """Describe the machine, and the disk that a directory is on, as plain values for JSON."""
    memory = psutil.virtual_memory()
    disk = shutil.disk_usage(directory)
    return {
        "cpu": {
            "model": _cpu_model(),
            "cores": cores(),
            "cores_of_machine": os.cpu_count(),
            "cores_asked": asked_cores,
            "cpus_chosen": chosen_cpus(asked_cores),
        },
        "memory_bytes": _memory_limit() or memory.total,
        "disk": {
            "filesystem": _filesystem(directory),
            "total_bytes": disk.total,
            "free_bytes": disk.free,
        },
        "gpus": gpus(),
        "system": {"os": platform.platform(), "machine": platform.machine()},
        "versions": {
            "timesink": timesink.__version__,
            "python": platform.python_version(),
            **{name: version for name in PACKAGES if (version := _version(name))},
        },
        "git": _git_revision(),
    }


def _refuse_what_cannot_be(asked_cores: int) -> None:
    if not hasattr(os, "sched_setaffinity"):
        raise ExperimentError(
            f"machine.cores: found {asked_cores}, allowed: nothing on this system: "
            "keeping a process to some of the cores needs Linux"
        )
    there = cores()
    if asked_cores > there:
        raise ExperimentError(
            f"machine.cores: found {asked_cores}, allowed: at most {there}, "
            "the cores that this process may use here"
        )


def available_memory_bytes() -> int:
    """Tell how much memory can be had without swapping, here and in this container."""
    return int(min(psutil.virtual_memory().available, _memory_limit() or sys.maxsize))


def oom_kills() -> int:
    """Count the processes the kernel has killed for want of memory, here and in this container."""
    total = 0
    for path in ("/sys/fs/cgroup/memory.events", "/proc/vmstat"):
        try:
            lines = Path(path).read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return total


def _memory_limit() -> int | None:
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return None
    return None if limit == "max" else int(limit)


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()


def _filesystem(directory: Path) -> str | None:
    where = directory.resolve()
    mounts = [
        partition
        for partition in psutil.disk_partitions(all=True)
        if where.is_relative_to(partition.mountpoint)
    ]
    return max(mounts, key=lambda mount: len(mount.mountpoint)).fstype if mounts else None


def gpus() -> list[dict[str, Any]]:
    """List the GPUs, as their driver's own tool does."""
    if shutil.which("nvidia-smi") is None:
        return []
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    lines = _output(query)
    fields = [line.split(", ") for line in (lines or "").splitlines()]
    return [
        {"name": name, "memory": memory, "driver": driver}
        for name, memory, driver in (field for field in fields if len(field) == 3)
    ]


def _git_revision() -> dict[str, Any] | None:
    """Give the revision of the code in the working directory: the user's, not Timesink's."""
    revision = _output(["git", "rev-parse", "HEAD"])
    if not revision:
        return None
    return {"revision": revision, "modified": bool(_output(["git", "status", "--porcelain"]))}


def _output(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
