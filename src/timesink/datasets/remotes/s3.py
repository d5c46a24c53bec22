"""A place in S3, or in what speaks like it: a bucket and a prefix, through s3fs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import aiobotocore.session
import aiohttp
import botocore.exceptions
import s3fs
from fsspec.asyn import get_loop
from fsspec.asyn import sync as run_in_loop

from timesink.datasets.remotes.address import Address
from timesink.datasets.remotes.remote import (
    CHUNK_BYTES,
    CONNECT_TIMEOUT_S,
    IDLE_TIMEOUT_S,
    Entry,
    Incoming,
    Interrupted,
    Unavailable,
    Unreachable,
    one_line,
)
from timesink.errors import SyncError


class S3Remote:
    """One client, which all threads share: credentials from the environment, else none."""

    def __init__(self, address: Address) -> None:
        self.root = address.path
        self.root_identity = ""
        with _translated():
            self._filesystem = s3fs.S3FileSystem(
                anon=not _has_credentials(),
                endpoint_url=os.environ.get("AWS_ENDPOINT_URL") or None,
                skip_instance_cache=True,
                use_listings_cache=False,
                config_kwargs={
                    "connect_timeout": CONNECT_TIMEOUT_S,
                    "read_timeout": IDLE_TIMEOUT_S,
                    "retries": {"max_attempts": 1},  # the crew tries again
                },
            )

    def list_folder(self, path: str, identity: str) -> list[Entry]:
        """List the keys and the common prefixes directly below a prefix."""
        folder = f"{self.root}/{path}".rstrip("/")
        with _translated():
            found = self._filesystem.ls(folder, detail=True, refresh=True)
        return [
            _entry(item, identity)
            for item in found
            # A key that ends in "/" marks the folder itself.
            if item["name"].rstrip("/") != folder
        ]

    @contextmanager
    def open(self, path: str, known_version: str | None) -> Iterator[Incoming | None]:
        """Open an object."""
        bucket, _, key = f"{self.root}/{path}".partition("/")
        with _translated():
            answer = self._filesystem.call_s3("get_object", Bucket=bucket, Key=key)
        try:
            yield Incoming(
                answer["ContentLength"],
                f"ETag {answer['ETag']}",
                int(answer["LastModified"].timestamp()),
                self._chunks(answer["Body"]),
            )
        finally:
            self._filesystem.loop.call_soon_threadsafe(answer["Body"].close)

    def _chunks(self, body: Any) -> Iterator[bytes]:
        while True:
            with _translated():
                chunk = run_in_loop(self._filesystem.loop, body.read, CHUNK_BYTES)
            if not chunk:
                return
            yield chunk

    def close(self) -> None:
        """Do nothing: the client is shared, and s3fs closes it at the end."""


def _entry(item: dict[str, Any], identity: str) -> Entry:
    name = item["name"].rstrip("/").rpartition("/")[2]
    if item["type"] == "directory":
        return Entry(name, is_folder=True, identity=f"{identity}/{name}")
    return Entry(
        name,
        is_folder=False,
        size_bytes=item["size"],
        version=f"ETag {item['ETag']}" if item.get("ETag") else "",
        mtime_s=int(item["LastModified"].timestamp()) if item.get("LastModified") else None,
    )


def _has_credentials() -> bool:
    session = aiobotocore.session.get_session()
    return run_in_loop(get_loop(), session.get_credentials) is not None


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise Unavailable("no such bucket, path or key") from None
    except PermissionError as error:
        raise Unavailable(f"access denied: {one_line(error)}") from None
    except (
        botocore.exceptions.EndpointConnectionError,
        botocore.exceptions.ConnectTimeoutError,
    ) as error:
        raise Unreachable(one_line(error)) from None
    except (botocore.exceptions.HTTPClientError, aiohttp.ClientError, OSError) as error:
        raise Interrupted(one_line(error)) from None
    except (botocore.exceptions.BotoCoreError, ValueError) as error:
        raise SyncError(f"s3: {one_line(error)}") from None
