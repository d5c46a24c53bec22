"""Syncing from S3, as moto's server speaks it."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.servers import images_in
from timesink.datasets.sync import sync
from timesink.errors import SyncError


@pytest.fixture
def local(tmp_path: Path) -> Path:
    return tmp_path / "local"


@pytest.fixture
def contents(s3: Any) -> dict[str, bytes]:
    """Objects in s3://flowers/set, with a folder's marker and a note among them."""
    s3.create_bucket(Bucket="flowers")
    contents = {
        f"{split}/{name}/{index}.jpg": os.urandom(20_000)
        for split in ("train", "val")
        for name in ("rose", "tulip")
        for index in range(2)
    }
    for path, content in contents.items():
        s3.put_object(Bucket="flowers", Key=f"set/{path}", Body=content)
    s3.put_object(Bucket="flowers", Key="set/train/rose/", Body=b"")
    s3.put_object(Bucket="flowers", Key="set/train/rose/notes.txt", Body=b"no image")
    return contents


def test_all_images_come(contents: dict[str, bytes], local: Path) -> None:
    summary = sync("s3://flowers/set", local)
    assert images_in(local) == contents
    assert (summary.files, summary.skipped, summary.failed) == (8, 1, ())


def test_only_the_chosen_classes_come(contents: dict[str, bytes], local: Path) -> None:
    sync("s3://flowers/set", local, classes=["tulip"])
    assert images_in(local) == {path: c for path, c in contents.items() if "tulip" in path}


def test_a_change_that_keeps_the_size_is_seen_by_its_etag(
    s3: Any, contents: dict[str, bytes], local: Path
) -> None:
    sync("s3://flowers/set", local)
    path = "train/rose/0.jpg"
    s3.put_object(Bucket="flowers", Key=f"set/{path}", Body=contents[path][::-1])
    summary = sync("s3://flowers/set", local)
    assert (summary.files, summary.unchanged) == (1, 7)
    assert images_in(local)[path] == contents[path][::-1]


def test_keys_that_lead_out_are_refused_and_counted(
    s3: Any, contents: dict[str, bytes], local: Path, tmp_path: Path
) -> None:
    s3.put_object(Bucket="flowers", Key="set/train/rose/../../../evil.jpg", Body=b"x")
    s3.put_object(Bucket="flowers", Key="set/train/rose/..\\evil.jpg", Body=b"x")
    summary = sync("s3://flowers/set", local)
    assert sorted(summary.refused) == ["train/rose/..", "train/rose/..\\evil.jpg"]
    assert images_in(local) == contents
    assert not list(tmp_path.rglob("evil.jpg"))


@pytest.mark.parametrize("place", ["s3://no-such-bucket/set", "s3://flowers/no-such-set"])
def test_a_place_that_is_not_there_is_named(
    contents: dict[str, bytes], local: Path, place: str
) -> None:
    with pytest.raises(SyncError) as caught:
        sync(place, local)
    assert str(caught.value) == f"{place}: no such bucket, path or key"


def test_a_public_bucket_needs_no_credentials(
    s3: Any,
    contents: dict[str, bytes],
    local: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for path in contents:
        s3.put_object_acl(Bucket="flowers", Key=f"set/{path}", ACL="public-read")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    assert sync("s3://flowers/set", local).files == 8


def test_an_endpoint_that_is_not_there_is_said(
    contents: dict[str, bytes], local: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(SyncError, match="cannot be reached"):
        sync("s3://flowers/set", local)
