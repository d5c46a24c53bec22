"""Syncing over SFTP from a real OpenSSH server."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from tests.servers import Sshd, images_in, make_images, new_key, parts_in
from timesink.datasets.remotes import crew
from timesink.datasets.sync import SyncSummary, sync
from timesink.errors import SyncError


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return tmp_path / "remote"


@pytest.fixture
def local(tmp_path: Path) -> Path:
    return tmp_path / "local"


def bring(sshd: Sshd, remote: Path, local: Path, **options) -> SyncSummary:
    return sync(
        sshd.url(remote), local, **{"key": sshd.key, "known_hosts": sshd.known_hosts} | options
    )


def refusal(sshd: Sshd, remote: Path, local: Path, **options) -> str:
    with pytest.raises(SyncError) as caught:
        bring(sshd, remote, local, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_all_images_come_and_nothing_else(sshd: Sshd, remote: Path, local: Path) -> None:
    contents = make_images(remote, "train/cat", "train/dog", "val/cat")
    (remote / "train/cat/notes.txt").write_text("no image")
    summary = bring(sshd, remote, local)
    assert images_in(local) == contents
    assert (summary.files, summary.bytes) == (9, sum(map(len, contents.values())))
    assert (summary.skipped, summary.unchanged, summary.failed) == (1, 0, ())


def test_only_the_chosen_classes_come(sshd: Sshd, remote: Path, local: Path) -> None:
    contents = make_images(remote, "train/cat", "train/dog", "val/cat", "val/dog")
    bring(sshd, remote, local, classes=["dog"])
    assert images_in(local) == {path: c for path, c in contents.items() if "dog" in path}


def test_classes_may_stand_directly_in_the_place(sshd: Sshd, remote: Path, local: Path) -> None:
    contents = make_images(remote, "cat", "dog")
    bring(sshd, remote, local, classes=["cat"])
    assert images_in(local) == {path: c for path, c in contents.items() if "cat" in path}


def test_names_with_special_characters_come(sshd: Sshd, remote: Path, local: Path) -> None:
    contents = make_images(remote, "my #1 cät?")
    bring(sshd, remote, local)
    assert images_in(local) == contents


def test_an_unknown_host_is_refused_with_its_fingerprint(
    sshd: Sshd, remote: Path, local: Path
) -> None:
    make_images(remote, "cat")
    sshd.known_hosts.write_text("")
    line = refusal(sshd, remote, local)
    assert "is not known" in line
    assert "SHA256:" in line
    assert f"ssh-keyscan -p {sshd.port} 127.0.0.1" in line
    assert not local.exists()


def test_a_changed_host_key_is_refused(sshd: Sshd, remote: Path, local: Path) -> None:
    make_images(remote, "cat")
    other = new_key(sshd.folder / "other").with_suffix(".pub").read_text()
    sshd.known_hosts.write_text(f"[127.0.0.1]:{sshd.port} {other}")
    line = refusal(sshd, remote, local)
    assert "is not the known one" in line
    assert line.count("SHA256:") == 2
    assert not local.exists()


def test_known_hosts_of_the_home_are_used(
    sshd: Sshd, remote: Path, local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_images(remote, "cat")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home/.ssh").mkdir(parents=True)
    assert "is not known" in refusal(sshd, remote, local, known_hosts=None)
    shutil.copy(sshd.known_hosts, tmp_path / "home/.ssh/known_hosts")
    assert bring(sshd, remote, local, known_hosts=None).files == 3


def test_a_key_that_may_not_log_in_is_refused(sshd: Sshd, remote: Path, local: Path) -> None:
    stranger = new_key(sshd.folder / "stranger")
    assert "login refused" in refusal(sshd, remote, local, key=stranger)


@pytest.mark.parametrize("content", [None, "not a key\n"])
def test_a_key_that_cannot_be_read_is_named(
    sshd: Sshd, remote: Path, local: Path, content: str | None
) -> None:
    key = sshd.folder / "broken"
    if content is not None:
        key.write_text(content)
    assert str(key) in refusal(sshd, remote, local, key=key)


def test_a_path_that_is_not_there_is_named(sshd: Sshd, remote: Path, local: Path) -> None:
    line = refusal(sshd, remote / "nowhere", local)
    assert line.startswith(sshd.url(remote / "nowhere"))
    assert "no such file or folder" in line


def test_a_class_that_is_not_there_is_named(sshd: Sshd, remote: Path, local: Path) -> None:
    make_images(remote, "train/daisy")
    line = refusal(sshd, remote, local, classes=["dasy"])
    assert line.endswith("no class 'dasy' there; did you mean daisy?")


def test_a_server_that_is_not_there_is_said_at_once(sshd: Sshd, remote: Path, local: Path) -> None:
    sshd.stop()
    assert "cannot be reached" in refusal(sshd, remote, local)


def test_a_second_call_fetches_only_what_differs(sshd: Sshd, remote: Path, local: Path) -> None:
    contents = make_images(remote, "train/cat", count=4)
    bring(sshd, remote, local)
    (local / "train/cat/0.jpg").unlink()
    (remote / "train/cat/1.jpg").write_bytes(b"longer now" * 5000)
    summary = bring(sshd, remote, local)
    assert (summary.files, summary.unchanged) == (2, 2)
    contents["train/cat/1.jpg"] = b"longer now" * 5000
    assert images_in(local) == contents


def test_a_change_that_keeps_the_size_is_seen_by_its_time(
    sshd: Sshd, remote: Path, local: Path
) -> None:
    contents = make_images(remote, "cat")
    bring(sshd, remote, local)
    changed = remote / "cat/1.jpg"
    before_s = changed.stat().st_mtime
    changed.write_bytes(contents["cat/1.jpg"][::-1])
    os.utime(changed, (before_s + 10, before_s + 10))
    assert bring(sshd, remote, local).files == 1
    assert images_in(local)["cat/1.jpg"] == contents["cat/1.jpg"][::-1]


@pytest.mark.parametrize("state", [None, "{broken", '{"schema_version": 1, "files": []}'])
def test_without_its_memory_a_sync_still_knows_what_came(
    sshd: Sshd, remote: Path, local: Path, state: str | None
) -> None:
    make_images(remote, "cat")
    bring(sshd, remote, local)
    memory = local / ".timesink-sync.json"
    if state is None:
        memory.unlink()
    else:
        memory.write_text(state)
    summary = bring(sshd, remote, local)
    assert (summary.files, summary.unchanged) == (0, 3)


def test_a_foreign_file_of_the_same_size_is_replaced(sshd: Sshd, remote: Path, local: Path) -> None:
    contents = make_images(remote, "cat", count=1)
    make_images(local, "cat", count=1)
    os.utime(local / "cat/0.jpg", (1, 1))
    bring(sshd, remote, local)
    assert images_in(local) == contents


def test_a_cut_in_the_middle_of_a_file_is_overcome_and_never_visible(
    sshd: Sshd, remote: Path, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "RECONNECT_AFTER_S", (0, 0, 0, 0))
    contents = make_images(remote, "cat", count=3, size_bytes=16_000_000)
    cuts: list[int] = []
    partly_visible: list[Path] = []
    finished = threading.Event()

    def watch() -> None:
        while not finished.wait(0.001):
            for path in local.rglob("*.jpg"):
                if path.stat().st_size != 16_000_000:
                    partly_visible.append(path)
            if not cuts and any(_size(part) > 100_000 for part in parts_in(local)):
                cuts.append(sshd.cut_connections())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        summary = bring(sshd, remote, local)
    finally:
        finished.set()
        watcher.join()
    assert cuts and cuts[0] > 0
    assert (summary.files, summary.failed) == (3, ())
    assert images_in(local) == contents
    assert not partly_visible
    assert not parts_in(local)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def test_a_server_that_stays_away_ends_the_sync_and_the_next_goes_on(
    sshd: Sshd, remote: Path, local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "RECONNECT_AFTER_S", (0, 0))
    contents = make_images(remote, "cat", count=40, size_bytes=300_000)
    came: list[int] = []

    def advance(files: int) -> None:
        came.append(files)
        if len(came) == 5:
            sshd.stop()

    line = refusal(sshd, remote, local, advance=advance)
    here = images_in(local)
    assert 5 <= len(here) < 40
    assert f"{len(here)} files came, {40 - len(here)} are left" in line
    assert "run the same command again to go on" in line
    assert here.items() <= contents.items()
    assert not parts_in(local)
    sshd.start()
    summary = bring(sshd, remote, local)
    assert (summary.files, summary.unchanged) == (40 - len(here), len(here))
    assert images_in(local) == contents


def test_loops_of_links_end_and_links_are_followed(sshd: Sshd, remote: Path, local: Path) -> None:
    contents = make_images(remote, "train/cat", "elsewhere/dog")
    (remote / "train/dog").symlink_to(remote / "elsewhere/dog")
    (remote / "train/cat/up").symlink_to(remote / "train")
    (remote / "train/cat/self.jpg").symlink_to("self.jpg")
    (remote / "elsewhere/dog/other").symlink_to(remote / "train/cat")
    bring(sshd, remote, local, classes=["cat", "dog"])
    here = images_in(local)
    assert here["train/dog/0.jpg"] == contents["elsewhere/dog/0.jpg"]
    assert here["train/dog/other/0.jpg"] == contents["train/cat/0.jpg"]
    assert len(here) <= 12


def test_a_file_that_may_not_be_read_fails_alone(sshd: Sshd, remote: Path, local: Path) -> None:
    make_images(remote, "cat")
    (remote / "cat/gone.jpg").symlink_to(remote / "nowhere.jpg")
    summary = bring(sshd, remote, local)
    assert summary.files == 3
    assert summary.failed == (("cat/gone.jpg", "no such file or folder"),)
    with pytest.raises(SyncError, match=r"gone\.jpg"):
        summary.check()


def test_a_name_with_a_backslash_is_refused_and_counted(
    sshd: Sshd, remote: Path, local: Path
) -> None:
    contents = make_images(remote, "cat")
    (remote / "cat/..\\..\\evil.jpg").write_bytes(b"x")
    summary = bring(sshd, remote, local)
    assert summary.refused == ("cat/..\\..\\evil.jpg",)
    assert images_in(local) == contents


def test_a_local_link_that_leads_out_is_refused(
    sshd: Sshd, remote: Path, local: Path, tmp_path: Path
) -> None:
    make_images(remote, "train/cat", "train/dog")
    outside = tmp_path / "outside"
    outside.mkdir()
    (local / "train").mkdir(parents=True)
    (local / "train/cat").symlink_to(outside)
    summary = bring(sshd, remote, local)
    assert len(summary.refused) == 3
    assert summary.files == 3
    assert list(outside.iterdir()) == []


def test_leftovers_of_a_killed_sync_are_removed(sshd: Sshd, remote: Path, local: Path) -> None:
    make_images(remote, "cat")
    (local / "cat").mkdir(parents=True)
    (local / "cat/.0123456789abcdef.timesink.part").write_bytes(b"half")
    (local / "cat/.mine.part").write_bytes(b"kept")
    bring(sshd, remote, local)
    assert parts_in(local) == [local / "cat/.mine.part"]


def test_progress_counts_what_is_to_come(sshd: Sshd, remote: Path, local: Path) -> None:
    make_images(remote, "cat", count=5)
    totals: list[int] = []
    done: list[int] = []
    bring(sshd, remote, local, on_total=totals.append, advance=done.append)
    assert (totals, sum(done)) == ([5], 5)
