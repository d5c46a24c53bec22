"""Syncing from a folder, what LOCAL must be, and what a disk can refuse."""

import errno
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import images_in, make_images, parts_in
from timesink.datasets import sync as sync_module
from timesink.datasets.arrival import receive
from timesink.datasets.remotes.address import parse_address
from timesink.datasets.remotes.remote import Incoming, Interrupted
from timesink.datasets.sync import sync
from timesink.errors import DiskFullError, SyncError


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return tmp_path / "remote"


@pytest.fixture
def local(tmp_path: Path) -> Path:
    return tmp_path / "local"


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_folder_is_a_remote_place_too(scheme: str, remote: Path, local: Path) -> None:
    contents = make_images(remote, "train/cat", "val/cat")
    assert sync(f"{scheme}{remote}", local).files == 6
    assert images_in(local) == contents
    assert sync(f"{scheme}{remote}", local).unchanged == 6


@pytest.mark.parametrize("name", ["a.JPG", "a.jpeg", "a.PnG", "a.bmp", "a.gif"])
def test_images_are_told_by_their_suffix(name: str, remote: Path, local: Path) -> None:
    make_images(remote, "cat", count=1)
    (remote / "cat" / name).write_bytes(b"x")
    assert sync(str(remote), local).files == 2


@pytest.mark.parametrize("name", ["a.txt", "a.jpg.part", "jpg", "._a.jpg"])
def test_other_and_hidden_files_are_skipped(name: str, remote: Path, local: Path) -> None:
    make_images(remote, "cat", count=1)
    (remote / "cat" / name).write_bytes(b"x")
    summary = sync(str(remote), local)
    assert (summary.files, summary.skipped) == (1, 1)


def test_a_pipe_with_an_images_name_does_not_hang(remote: Path, local: Path) -> None:
    make_images(remote, "cat", count=1)
    os.mkfifo(remote / "cat/pipe.jpg")
    assert sync(str(remote), local).files == 1


def test_a_loop_of_links_ends(remote: Path, local: Path) -> None:
    make_images(remote, "cat", "dog", count=1)
    (remote / "cat/there").symlink_to(remote / "dog")
    (remote / "dog/back").symlink_to(remote / "cat")
    assert sync(str(remote), local).files == 4


def test_a_name_that_is_not_utf8_comes(remote: Path, local: Path) -> None:
    make_images(remote, "cat", count=1)
    odd = os.fsdecode(b"\xe9t\xe9.jpg")
    (remote / "cat" / odd).write_bytes(b"x")
    assert sync(str(remote), local).files == 2
    assert sync(str(remote), local).unchanged == 2


@pytest.mark.parametrize("place", ["", "inside", ".."])
def test_a_local_folder_in_the_remote_one_is_refused(place: str, remote: Path) -> None:
    make_images(remote, "cat")
    with pytest.raises(SyncError, match="one is in the other"):
        sync(str(remote), remote / place)


def test_a_second_sync_into_the_same_folder_is_refused(remote: Path, local: Path) -> None:
    make_images(remote, "cat")
    local.mkdir()
    folder = os.open(local, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    with pytest.raises(SyncError, match="another sync is at work"):
        sync(str(remote), local)
    os.close(folder)
    assert sync(str(remote), local).files == 3


def test_a_local_place_that_is_a_file_is_refused(remote: Path, local: Path) -> None:
    make_images(remote, "cat")
    local.write_text("a file")
    with pytest.raises(SyncError, match="cannot be used"):
        sync(str(remote), local)


def test_the_state_is_saved_while_files_come(
    remote: Path, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync_module, "SAVE_EVERY_S", 0.0)
    monkeypatch.setattr(sync_module, "SAVING_SHARE", 1e9)
    make_images(remote, "cat", count=200, size_bytes=1000)
    remembered: list[int] = []

    def advance(files: int) -> None:
        state = local / ".timesink-sync.json"
        remembered.append(len(json.loads(state.read_text())["files"]) if state.exists() else 0)

    assert sync(str(remote), local, advance=advance).files == 200
    assert remembered[0] == 0
    assert remembered[-1] == 199


def test_a_folder_in_the_way_of_a_file_fails_alone(remote: Path, local: Path) -> None:
    make_images(remote, "cat")
    (local / "cat/0.jpg").mkdir(parents=True)
    summary = sync(str(remote), local)
    assert summary.files == 2
    assert [path for path, _ in summary.failed] == ["cat/0.jpg"]
    assert not parts_in(local)


@pytest.mark.parametrize("size_bytes", [5, 50])
def test_a_file_of_another_size_than_announced_is_no_file(size_bytes: int, tmp_path: Path) -> None:
    incoming = Incoming(size_bytes, "", None, iter([b"0123456789"]))
    with pytest.raises(Interrupted, match=f"10 of {size_bytes} bytes"):
        receive(incoming, tmp_path / "a.jpg")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_said_and_leaves_no_part(number: int, tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"first"
        raise OSError(number, os.strerror(number))

    with pytest.raises(DiskFullError, match="the disk is full"):
        receive(Incoming(10, "", None, chunks()), tmp_path / "a.jpg")
    assert list(tmp_path.iterdir()) == []


IN_A_SMALL_DISK = """
mount -t tmpfs -o size=600k tmpfs "$2" || exit 99
"$0" -m timesink dataset sync "$1" "$2"; code=$?
find "$2" -name '*.part'
find "$2" -name '*.jpg' -size -100k
exit $code
"""


def test_a_really_full_disk_keeps_what_is_whole(remote: Path, local: Path) -> None:
    make_images(remote, "cat", count=10, size_bytes=102_400)
    local.mkdir()
    run = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", IN_A_SMALL_DISK, sys.executable, remote, local],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 6, run.stderr
    assert "the disk is full" in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


@pytest.mark.parametrize(
    "remote_url",
    [
        "sftp://ann:s3cr3t@host/path",
        "https://ann:s3cr3t@host/path",
        "https://s3cr3t@host/path",
        "s3://s3cr3t@bucket/path",
        "sftp://ann:s3cr3t#more@host/path",
        "sftp://ann:1?s3cr3t@host/path",
        "http://host/path?token=s3cr3t",
        "ftp://ann:s3cr3t@host/path",
        "sftp://[s3cr3t/path",
        "sftp:///path",
    ],
)
def test_a_url_with_a_secret_is_refused_and_not_repeated(remote_url: str) -> None:
    with pytest.raises(SyncError) as caught:
        parse_address(remote_url)
    assert "s3cr3t" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_address_is_decoded_and_printed_as_it_was() -> None:
    address = parse_address("sftp://a%40b@[::1]:2222/my%20set/")
    assert (address.user, address.host, address.port) == ("a@b", "::1", 2222)
    assert address.path == "/my set"
    assert str(address) == "sftp://a%40b@[::1]:2222/my%20set"
