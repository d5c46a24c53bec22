"""Syncing over HTTP from a real server that cuts, lies and fails as it is told."""

import os
import socket
from pathlib import Path

import pytest

from tests.servers import Site, images_in, make_images, parts_in
from timesink.datasets.remotes import crew
from timesink.datasets.sync import sync
from timesink.errors import SyncError


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "RECONNECT_AFTER_S", (0, 0))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "site"


@pytest.fixture
def local(tmp_path: Path) -> Path:
    return tmp_path / "local"


def refusal(url: str, local: Path, **options) -> str:
    with pytest.raises(SyncError) as caught:
        sync(url, local, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_all_images_come_from_index_pages(site: Site, root: Path, local: Path) -> None:
    contents = make_images(root, "sub/train/cat & co", "sub/train/dög #1", "sub/val/cat & co")
    (root / "sub/train/dög #1/notes.txt").write_text("no image")
    summary = sync(f"{site.url}/sub", local)
    assert images_in(local) == {path.removeprefix("sub/"): c for path, c in contents.items()}
    assert (summary.files, summary.skipped) == (9, 1)


def test_only_the_chosen_classes_are_listed_and_come(site: Site, root: Path, local: Path) -> None:
    make_images(root, "train/cat", "train/dog", "val/cat", "val/dog")
    sync(site.url, local, classes=["dog"])
    assert {path.split("/")[1] for path in images_in(local)} == {"dog"}
    assert not any("cat" in path for path, _ in site.answers)


def test_what_did_not_change_is_not_sent_again(site: Site, root: Path, local: Path) -> None:
    contents = make_images(root, "cat", count=4)
    sync(site.url, local)
    site.answers.clear()
    changed = root / "cat/1.jpg"
    before_s = changed.stat().st_mtime
    changed.write_bytes(contents["cat/1.jpg"][::-1])
    os.utime(changed, (before_s + 10, before_s + 10))
    summary = sync(site.url, local)
    assert (summary.files, summary.unchanged) == (1, 3)
    assert site.fetched() == ["/cat/1.jpg"]
    assert images_in(local)["cat/1.jpg"] == contents["cat/1.jpg"][::-1]


def test_an_etag_tells_a_change_of_the_same_size(site: Site, root: Path, local: Path) -> None:
    contents = make_images(root, "cat", count=2)
    site.etags = {"/cat/0.jpg": '"one"', "/cat/1.jpg": '"one"'}
    sync(site.url, local)
    (root / "cat/1.jpg").write_bytes(contents["cat/1.jpg"][::-1])
    site.etags["/cat/1.jpg"] = '"two"'
    summary = sync(site.url, local)
    assert (summary.files, summary.unchanged) == (1, 1)
    assert images_in(local)["cat/1.jpg"] == contents["cat/1.jpg"][::-1]


def test_without_its_memory_a_sync_takes_nothing_twice(site: Site, root: Path, local: Path) -> None:
    make_images(root, "cat")
    sync(site.url, local)
    (local / ".timesink-sync.json").unlink()
    summary = sync(site.url, local)
    assert (summary.files, summary.unchanged) == (0, 3)


def test_a_transfer_cut_once_is_made_again(site: Site, root: Path, local: Path) -> None:
    contents = make_images(root, "cat")
    site.cut_once = {"/cat/1.jpg"}
    summary = sync(site.url, local)
    assert images_in(local) == contents
    assert summary.files == 3
    assert site.fetched().count("/cat/1.jpg") == 2


def test_a_body_that_is_always_short_is_a_failure_and_never_a_file(
    site: Site, root: Path, local: Path
) -> None:
    contents = make_images(root, "cat")
    site.cut_always = {"/cat/1.jpg"}
    summary = sync(site.url, local)
    del contents["cat/1.jpg"]
    assert images_in(local) == contents
    assert [path for path, _ in summary.failed] == ["cat/1.jpg"]
    assert not parts_in(local)
    site.cut_always.clear()
    assert sync(site.url, local).files == 1


def test_a_place_where_everything_is_cut_is_given_up(site: Site, root: Path, local: Path) -> None:
    contents = make_images(root, "cat", count=60)
    site.cut_always = {f"/{path}" for path in contents}
    line = refusal(site.url, local)
    assert "0 files came" in line
    assert len(set(site.fetched())) < 60
    assert images_in(local) == {}


@pytest.mark.parametrize("status", [404, 403, 500])
def test_a_place_that_answers_with_an_error_is_named_with_it(
    site: Site, local: Path, status: int
) -> None:
    site.fail_with = {"/": status}
    line = refusal(site.url, local)
    assert line.startswith(site.url)
    assert f"HTTP {status}" in line


def test_one_file_that_answers_with_an_error_fails_alone(
    site: Site, root: Path, local: Path
) -> None:
    make_images(root, "cat")
    site.fail_with = {"/cat/0.jpg": 500, "/cat/1.jpg": 404}
    summary = sync(site.url, local)
    assert summary.files == 1
    reasons = dict(summary.failed)
    assert reasons["cat/0.jpg"].startswith("HTTP 500")
    assert reasons["cat/1.jpg"].startswith("HTTP 404")


def test_a_server_that_is_not_there_is_said_at_once(local: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert "cannot be reached" in refusal(f"http://127.0.0.1:{port}", local)


def test_a_page_that_lists_nothing_is_no_dataset(site: Site, local: Path) -> None:
    site.pages = {"/": "<h1>Welcome</h1>"}
    assert "no class folders" in refusal(site.url, local)


def test_links_that_lead_out_are_passed_over(site: Site, root: Path, local: Path) -> None:
    contents = make_images(root, "sub/cat")
    make_images(root, "secret")
    links = [
        *("../", "/secret/", "../secret/", "?C=N;O=D", "/else/fox/", "cat/0.jpg", "cat/#top"),
        *("http://127.0.0.1:9/sub/far/", f"https://{site.url[7:]}/sub/near/", "//[broken/"),
    ]
    site.pages = {"/sub/": "".join(f'<a href="{link}">x</a>' for link in [*links, "cat/"])}
    summary = sync(f"{site.url}/sub", local)
    assert images_in(local) == {path.removeprefix("sub/"): c for path, c in contents.items()}
    assert summary.failed == ()
    assert {path for path, _ in site.answers} == {
        "/sub/",
        "/sub/cat/",
        *map("/{}".format, contents),
    }


def test_hostile_names_are_refused_and_counted(
    site: Site, root: Path, local: Path, tmp_path: Path
) -> None:
    contents = make_images(root, "cat", count=1)
    names = ["..%2F..%2Fevil.jpg", "%2Fetc%2Fevil.jpg", "..%5Cevil.jpg", "a%00.jpg", "%2e%2e"]
    links = "".join(f'<a href="{name}">x</a>' for name in [*names, "0.jpg"])
    site.pages = {"/cat/": links}
    summary = sync(site.url, local)
    assert len(summary.refused) == len(names)
    assert images_in(local) == contents
    assert not list(tmp_path.glob("**/evil.jpg"))


def test_a_name_too_long_for_the_disk_fails_alone(site: Site, root: Path, local: Path) -> None:
    make_images(root, "cat", count=1)
    name = "n" * 300 + ".jpg"
    site.pages = {"/cat/": f'<a href="0.jpg">x</a><a href="{name}">x</a>'}
    site.pages[f"/cat/{name}"] = "content"
    summary = sync(site.url, local)
    assert summary.files == 1
    assert [path for path, _ in summary.failed] == [f"cat/{name}"]


def test_the_longest_name_a_disk_takes_comes(site: Site, root: Path, local: Path) -> None:
    name = "n" * 251 + ".jpg"
    make_images(root, "cat", count=1)
    (root / "cat" / name).write_bytes(b"long")
    assert sync(site.url, local).files == 2
    assert (local / "cat" / name).read_bytes() == b"long"


def test_a_redirect_is_followed(site: Site, root: Path, local: Path) -> None:
    contents = make_images(root, "cat", count=2)
    site.redirects = {"/cat/0.jpg": "/cat/1.jpg"}
    sync(site.url, local)
    assert images_in(local)["cat/0.jpg"] == contents["cat/1.jpg"]
