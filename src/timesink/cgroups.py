"""How many CPUs this process's control groups let it use: the quotas of cgroup v1 and v2.

A quota holds for all below it, so the least on the way from the process's group up to the root of
what is mounted counts. In a namespace of its own a group is `/` and its files lie at the mount; a
container without one has a path that does not exist below its mounts, and its files there too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path("/")

USUAL_MOUNTS = (
    ("cgroup2", "/sys/fs/cgroup"),
    ("cgroup2", "/sys/fs/cgroup/unified"),
    ("cgroup", "/sys/fs/cgroup/cpu"),
    ("cgroup", "/sys/fs/cgroup/cpu,cpuacct"),
)
"""Where the kernel does not tell."""


@dataclass(frozen=True)
class _Mount:
    kind: str
    """`cgroup2`, or `cgroup` with the controller of CPUs."""
    root: str
    """The group that is mounted."""
    place: str


def cpu_quota(root: Path = ROOT) -> int | None:
    """Give the whole CPUs that quotas leave, at least 1; None without a quota."""
    groups = _own_groups(root)
    quotas = [
        quota
        for mount in _mounts(root)
        for directory in _directories(mount, groups.get(mount.kind, "/"), root)
        if (quota := _quota_of(directory, mount.kind)) is not None
    ]
    return max(1, min(quotas)) if quotas else None


def _own_groups(root: Path) -> dict[str, str]:
    """Read the groups this process is in: `0::/path` is of v2, `3:cpu,cpuacct:/path` of v1."""
    groups = {}
    for line in _lines(root / "proc/self/cgroup"):
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if hierarchy == "0" and not controllers:
            groups["cgroup2"] = path
        elif "cpu" in controllers.split(","):
            groups["cgroup"] = path
    return groups


def _mounts(root: Path) -> list[_Mount]:
    mounts = []
    for line in _lines(root / "proc/self/mountinfo"):
        about, _, filesystem = line.partition(" - ")
        fields, kind = about.split(), filesystem.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2" or (kind[0] == "cgroup" and "cpu" in kind[2].split(",")):
            mounts.append(_Mount(kind[0], fields[3], fields[4]))
    return mounts or [_Mount(kind, "/", place) for kind, place in USUAL_MOUNTS]


def _directories(mount: _Mount, group: str, root: Path) -> Iterator[Path]:
    """Give the directory of a group and of every group above it that is mounted."""
    place = root / mount.place.lstrip("/")
    path = PurePosixPath(group)
    if path.is_relative_to(mount.root):
        path = path.relative_to(mount.root)
    parts = [part for part in path.parts if part not in ("/", "..")]
    for count in range(len(parts), -1, -1):
        yield place.joinpath(*parts[:count])


def _quota_of(directory: Path, kind: str) -> int | None:
    """Read a group's quota in whole CPUs; None where there is none, or no such group."""
    if kind == "cgroup2":
        words = " ".join(_lines(directory / "cpu.max")).split()
    else:
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        words = [line.strip() for name in names for line in _lines(directory / name)]
    if len(words) != 2 or not all(word.isdecimal() for word in words) or words[1] == "0":
        return None  # `max` in v2 and -1 in v1 are no limit
    return int(words[0]) // int(words[1])


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(errors="replace").splitlines()
    except OSError:
        return []
