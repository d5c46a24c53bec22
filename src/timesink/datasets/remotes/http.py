"""A place served over HTTP: folders are the server's index pages, files are plain GETs."""

from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any, NoReturn
from urllib.parse import quote, unquote, urljoin, urlsplit

import aiohttp
import yarl
from fsspec.asyn import sync as run_in_loop
from fsspec.implementations.http import HTTPFileSystem

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

WORTH_ANOTHER_TRY = (408, 429, 500, 502, 503, 504)


class HttpRemote:
    """One session of fsspec's HTTP filesystem, whose loop and connections it uses."""

    def __init__(self, address: Address) -> None:
        self.url = f"{str(address).rstrip('/')}/"
        self.root_identity = ""
        trace = aiohttp.TraceConfig()
        trace.on_request_redirect.append(_refuse_downgrade)
        self._filesystem = HTTPFileSystem(
            skip_instance_cache=True,
            client_kwargs={
                "timeout": aiohttp.ClientTimeout(
                    total=None, sock_connect=CONNECT_TIMEOUT_S, sock_read=IDLE_TIMEOUT_S
                ),
                "trace_configs": [trace],
                "trust_env": True,  # HTTP(S)_PROXY
                # A compressed answer's length would not be the file's.
                "headers": {"Accept-Encoding": "identity"},
            },
        )
        self._session: Any = self._run(self._filesystem.set_session())

    def list_folder(self, path: str, identity: str) -> list[Entry]:
        """List what an index page links to, directly below it; other links are passed over."""
        url = self._url(path) if path else self.url
        url = f"{url.rstrip('/')}/"
        with _translated():
            page = self._run(self._page(url))
        links = _Links()
        links.feed(page)
        links.close()
        entries = (_entry(url, href, identity) for href in dict.fromkeys(links.hrefs))
        return list({entry.name: entry for entry in entries if entry is not None}.values())

    async def _page(self, url: str) -> str:
        async with self._session.get(yarl.URL(url, encoded=True)) as response:
            _check_status(response)
            if response.content_type not in ("text/html", "application/xhtml+xml"):
                raise Unavailable("no index page there: the server must list the folder")
            return str(await response.text(errors="replace"))

    @contextmanager
    def open(self, path: str, known_version: str | None) -> Iterator[Incoming | None]:
        """Ask for a file, unless it still has the known version."""
        with _translated():
            response = self._run(self._get(self._url(path), _condition(known_version)))
        try:
            if response.status == 304:
                yield None
            else:
                yield Incoming(
                    response.content_length,
                    _version(response.headers),
                    _mtime_s(response.headers),
                    self._chunks(response),
                )
        finally:
            # Not release(): what is left of an unwanted body is not worth reading.
            self._filesystem.loop.call_soon_threadsafe(response.close)

    async def _get(self, url: str, headers: dict[str, str]) -> Any:
        response = await self._session.get(yarl.URL(url, encoded=True), headers=headers)
        try:
            if response.status != 304:
                _check_status(response)
        except BaseException:
            response.close()
            raise
        return response

    def _chunks(self, response: Any) -> Iterator[bytes]:
        while True:
            with _translated():
                chunk = self._run(response.content.read(CHUNK_BYTES))
            if not chunk:
                return
            yield chunk

    def close(self) -> None:
        """End the session."""
        if not self._session.closed:
            self._run(self._session.close())

    def _url(self, path: str) -> str:
        return self.url + "/".join(quote(part, safe="") for part in path.split("/"))

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        async def awaited() -> Any:
            return await work

        return run_in_loop(self._filesystem.loop, awaited)


class _Links(HTMLParser):
    """Collects where the page's anchors lead."""

    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.hrefs += [value for name, value in attrs if name == "href" and value]


def _entry(folder_url: str, href: str, identity: str) -> Entry | None:
    """Read a link of a folder's page; None when it leads out, up, or to a sorted view."""
    try:
        target = urlsplit(urljoin(folder_url, href))
    except ValueError:
        return None
    base = urlsplit(folder_url)
    if (target.scheme, target.netloc) != (base.scheme, base.netloc) or target.query:
        return None
    # Compared decoded: a server may escape other characters than we do.
    base_path, path = unquote(base.path), target.path
    depth = base.path.count("/")
    folder_path, name = "/".join(path.split("/")[:depth]) + "/", path.split("/")[depth:]
    if unquote(folder_path) != base_path or not name or not name[0] or len(name) > 2:
        return None
    if len(name) == 2 and name[1]:
        return None
    decoded = unquote(name[0])
    return Entry(decoded, is_folder=len(name) == 2, identity=f"{identity}/{decoded}")


def _check_status(response: Any) -> None:
    status = int(response.status)
    if status in WORTH_ANOTHER_TRY:
        raise Interrupted(f"HTTP {status} {response.reason}")
    if status != 200:
        raise Unavailable(f"HTTP {status} {response.reason}")


async def _refuse_downgrade(
    session: aiohttp.ClientSession, context: SimpleNamespace, params: Any
) -> None:
    target = params.response.headers.get("Location", "")
    if params.url.scheme == "https" and urljoin(str(params.url), target).startswith("http:"):
        raise Unavailable("the server redirects from https to http: refused")


def _version(headers: Any) -> str:
    for name in ("ETag", "Last-Modified"):
        if name in headers:
            return f"{name} {headers[name]}"
    return ""


def _condition(known_version: str | None) -> dict[str, str]:
    name, _, value = (known_version or "").partition(" ")
    question = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}.get(name)
    return {} if question is None else {question: value}


def _mtime_s(headers: Any) -> int | None:
    try:
        return int(parsedate_to_datetime(headers["Last-Modified"]).timestamp())
    except (KeyError, ValueError, TypeError):
        return None


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError) as error:
        raise SyncError(f"the server's certificate was not accepted: {one_line(error)}") from None
    except aiohttp.ClientConnectorError as error:
        raise Unreachable(one_line(error)) from None
    except (aiohttp.InvalidURL, aiohttp.TooManyRedirects) as error:
        raise Unavailable(f"{type(error).__name__}: {one_line(error)}") from None
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        _interrupted(error)
    except RuntimeError as error:
        # "Session is closed": by the main thread, which stops the others.
        _interrupted(error)


def _interrupted(error: BaseException) -> NoReturn:
    raise Interrupted(one_line(error)) from None
