"""The page cache: dropped, filled and looked into, on files of a real disk."""

import contextlib
import mmap
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from timesink import machine, page_cache
from timesink.datasets.images import ImageSet
from timesink.errors import RunError

PAGE = mmap.PAGESIZE
NOBODY = 65534


@pytest.fixture
def disk() -> Iterator[Path]:
    """Give a directory on a disk: /tmp may be memory, /var/tmp outlives a restart."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        yield Path(directory)


@contextlib.contextmanager
def without_root() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def written(directory: Path, name: str = "image.jpg", total_bytes: int = 50 * PAGE) -> Path:
    path = directory / name
    path.write_bytes(os.urandom(total_bytes))
    return path


def in_memory(read: Callable[[], object], paths: Sequence[Path], wanted_bytes: int) -> bool:
    """Read, and tell whether so much is in memory then.

    Whoever drops or needs the machine's memory between reading and looking makes it less: again.
    """
    for _ in range(10):
        read()
        found = page_cache.residency(paths)
        if found.resident_bytes >= wanted_bytes:
            return found.resident_bytes == wanted_bytes
    return False


def test_what_was_dropped_is_read_from_the_disk_again(disk: Path) -> None:
    paths = [written(disk, f"{number}.jpg", 100_001) for number in range(20)]
    dropped = page_cache.drop(paths)
    assert (dropped.files, dropped.total_bytes, dropped.resident_bytes) == (20, 2_000_020, 0)
    before = page_cache.disk_read_bytes()
    read = [path.read_bytes() for path in paths]
    after = page_cache.disk_read_bytes()
    assert before is not None
    assert after is not None
    assert after - before >= len(b"".join(read)) == 2_000_020
    assert in_memory(lambda: [path.read_bytes() for path in paths], paths, 2_000_020)


def test_dropping_needs_no_root(disk: Path) -> None:
    disk.chmod(0o777)
    with without_root():
        path = written(disk)
        assert page_cache.drop([path]) == page_cache.Cache(1, 50 * PAGE, 0)
        assert in_memory(path.read_bytes, [path], 50 * PAGE)
        assert page_cache.drop([path]) == page_cache.Cache(1, 50 * PAGE, 0)


def test_what_is_not_yet_on_the_disk_is_written_and_dropped(disk: Path) -> None:
    disk.chmod(0o777)
    with without_root():
        path = written(disk, total_bytes=2**25)
        assert page_cache.drop([path]) == page_cache.Cache(1, 2**25, 0)


def test_looking_brings_nothing_into_memory(disk: Path) -> None:
    path = written(disk)
    page_cache.drop([path])
    page_cache.residency([path])
    assert page_cache.residency([path]).resident_bytes == 0


def test_a_part_that_was_read_is_told_to_the_page(disk: Path) -> None:
    path = written(disk, total_bytes=100 * PAGE + 1)
    page_cache.drop([path])

    def read_a_part() -> None:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # no reading ahead
        os.pread(descriptor, 2 * PAGE, 10 * PAGE)
        os.pread(descriptor, 1, 100 * PAGE)
        os.close(descriptor)

    assert in_memory(read_a_part, [path], 2 * PAGE + 1)


def test_a_large_file_is_looked_at_in_windows(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "_WINDOW_BYTES", 8 * PAGE)
    path = written(disk, total_bytes=50 * PAGE + 7)
    assert in_memory(path.read_bytes, [path], 50 * PAGE + 7)


def test_a_file_that_this_process_maps_is_told(disk: Path) -> None:
    path = written(disk)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert sum(mapped[::PAGE]) > 0
        with pytest.raises(RunError, match=rf"{path}: .* bytes stay .*: this process maps it"):
            page_cache.drop([written(disk, "other.jpg"), path])
    assert page_cache.drop([path]).resident_bytes == 0


def test_a_file_that_another_process_maps_is_told_with_its_number(disk: Path) -> None:
    path = written(disk)
    (disk / "link.jpg").symlink_to(path)
    map_it = (
        "import mmap, sys\n"
        "file = open(sys.argv[1], 'rb')\n"
        "mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)\n"
        "print(sum(mapped[::4096]), flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", map_it, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(
            RunError, match=rf"{50 * PAGE:,} of its {50 * PAGE:,} bytes .*process {other.pid} \("
        ):
            page_cache.drop([disk / "link.jpg"])


def test_a_hundredth_may_stay(disk: Path) -> None:
    path = disk / "large.bin"
    with path.open("wb") as file:
        file.truncate(8192 * PAGE)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert mapped[0] == 0
        left = page_cache.drop([path]).resident_bytes
    assert 0 < left <= 82 * PAGE


def test_memory_that_looks_like_a_disk_is_refused() -> None:
    with (
        tempfile.NamedTemporaryFile(dir="/dev/shm") as file,
        pytest.raises(RunError, match=rf"{file.name}: .*tmpfs.* no disk below; put the dataset"),
    ):
        page_cache.drop([file.name])


def test_missing_files_are_passed_over_and_empty_ones_counted(disk: Path) -> None:
    (disk / "empty.jpg").touch()
    (disk / "gone.jpg").symlink_to(disk / "nowhere")
    (disk / "loop.jpg").symlink_to(disk / "loop.jpg")
    paths = [disk / name for name in ("empty.jpg", "gone.jpg", "loop.jpg", "never.jpg")]
    assert page_cache.drop(paths) == page_cache.Cache(1, 0, 0)
    assert page_cache.drop([]) == page_cache.warm([]) == page_cache.Cache(0, 0, 0)


def test_a_file_that_may_not_be_read_is_passed_over(disk: Path) -> None:
    disk.chmod(0o777)
    with without_root():
        closed = written(disk, "closed.jpg")
        closed.chmod(0)
        assert page_cache.drop([written(disk), closed]).files == 1


def test_another_users_file_is_dropped_but_not_vouched_for() -> None:
    with without_root():
        left = page_cache.drop(["/etc/passwd"])
    assert left.files == 1
    assert left.unknown_bytes == left.total_bytes == Path("/etc/passwd").stat().st_size


def test_a_hole_is_dropped_like_any_page(disk: Path) -> None:
    path = disk / "hole.jpg"
    with path.open("wb") as file:
        file.truncate(100 * PAGE)
    assert in_memory(path.read_bytes, [path], 100 * PAGE)
    assert page_cache.drop([path]).resident_bytes == 0


def test_a_file_with_several_names_counts_once(disk: Path) -> None:
    path = written(disk)
    (disk / "symbolic.jpg").symlink_to(path)
    (disk / "hard.jpg").hardlink_to(path)
    names = [path, str(path), disk / "symbolic.jpg", disk / "hard.jpg"]
    assert page_cache.drop(names) == page_cache.Cache(1, 50 * PAGE, 0)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_refused(disk: Path, make) -> None:
    make(disk / "odd.jpg")
    with pytest.raises(RunError, match=r"odd\.jpg: not a file"):
        page_cache.drop([written(disk), disk / "odd.jpg"])


def test_too_few_descriptors_are_told(disk: Path) -> None:
    path = written(disk)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(RunError, match=r"Too many open files; `ulimit -n`"):
            page_cache.residency([path])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_warming_reads_as_much_as_memory_holds(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [written(disk, f"{number}.jpg") for number in range(4)]
    page_cache.drop(paths)
    monkeypatch.setattr(machine, "available_memory_bytes", lambda: 125 * PAGE)
    assert in_memory(lambda: page_cache.warm(paths), paths, 100 * PAGE)
    monkeypatch.setattr(machine, "available_memory_bytes", lambda: 10**9)
    assert in_memory(lambda: page_cache.warm(paths), paths, 200 * PAGE)


def test_what_children_read_is_counted_while_they_live_and_after(disk: Path) -> None:
    read_it = "import sys; print(len(open(sys.argv[1], 'rb').read()), flush=True); sys.stdin.read()"
    path = written(disk, total_bytes=1_000_000)
    page_cache.drop([path])
    before = page_cache.disk_read_bytes()
    assert before is not None
    with subprocess.Popen(
        [sys.executable, "-c", read_it, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert (page_cache.disk_read_bytes() or 0) - before >= 1_000_000
    assert (page_cache.disk_read_bytes() or 0) - before >= 1_000_000


def test_images_are_read_from_their_own_files_or_from_their_stores() -> None:
    class Shards:
        files = ("/store/0", "/store/1")

        def fault(self, record: int) -> str | None:
            return None

    assert page_cache.files_of(ImageSet(("b", "a", "b"), (0, 1, 0))) == ["b", "a"]
    stored = ImageSet(("a", "b"), (0, 1), Shards(), (0, 1))
    assert page_cache.files_of(stored) == ["/store/0", "/store/1"]


def test_elsewhere_than_on_linux_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(RunError, match="needs Linux"):
        page_cache.drop([])
