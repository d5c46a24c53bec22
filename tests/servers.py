"""Real servers on loopback for `dataset sync`: OpenSSH, HTTP that can misbehave, S3."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import boto3
import psutil
import pytest

FILE_BYTES = 20_000


def make_images(
    root: Path, *folders: str, count: int = 3, size_bytes: int = FILE_BYTES
) -> dict[str, bytes]:
    """Write files that are images by their names; gives path → content."""
    contents = {}
    for folder in folders:
        (root / folder).mkdir(parents=True, exist_ok=True)
        for index in range(count):
            path = f"{folder}/{index}.jpg"
            contents[path] = os.urandom(size_bytes)
            (root / path).write_bytes(contents[path])
    return contents


def images_in(local: Path) -> dict[str, bytes]:
    """Read every file that is visible as an image."""
    return {
        str(path.relative_to(local)): path.read_bytes()
        for path in local.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def parts_in(local: Path) -> list[Path]:
    return list(local.rglob("*.part"))


class Sshd:
    """An OpenSSH server of our own: its port, its host key, one user key that may log in."""

    def __init__(self, folder: Path) -> None:
        self.program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
        if self.program is None:
            pytest.fail("these tests need an OpenSSH server: install openssh-server")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        self.folder = folder
        self.key = new_key(folder / "user_key")
        self.host_key = new_key(folder / "host_key")
        self.known_hosts = folder / "known_hosts"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process: subprocess.Popen[bytes]
        self.start()
        self.trust()

    def url(self, path: Path | str) -> str:
        return f"sftp://{getpass.getuser()}@127.0.0.1:{self.port}{path}"

    def trust(self) -> None:
        public = self.host_key.with_suffix(".pub").read_text()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {public}")

    def start(self) -> None:
        config = self.folder / "sshd_config"
        config.write_text(
            f"ListenAddress 127.0.0.1:{self.port}\nHostKey {self.host_key}\n"
            f"AuthorizedKeysFile {self.key}.pub\nPasswordAuthentication no\n"
            "KbdInteractiveAuthentication no\nStrictModes no\nUsePAM no\nPidFile none\n"
            "PermitRootLogin yes\nSubsystem sftp internal-sftp\nMaxStartups 50\n"
        )
        log = self.folder / "log"
        log.write_text("")
        self.process = subprocess.Popen([self.program, "-D", "-E", log, "-f", config])
        while "Server listening" not in log.read_text():
            if self.process.poll() is not None:
                pytest.fail(f"sshd did not start: {log.read_text()}")

    def cut_connections(self) -> int:
        """Kill the processes that serve the present connections; the server stays."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        for child in children:
            try:
                child.kill()
            except psutil.NoSuchProcess:
                continue
        return len(children)

    def stop(self) -> None:
        """End the server and its connections."""
        if self.process.poll() is None:
            children = psutil.Process(self.process.pid).children(recursive=True)
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            for child in children:
                try:
                    child.kill()
                except psutil.NoSuchProcess:
                    continue


def new_key(path: Path) -> Path:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", path], check=True
    )
    return path


class Site(ThreadingHTTPServer):
    """A folder over HTTP that cuts, lies, fails and redirects as it is told."""

    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(root)))
        self.answers: list[tuple[str, int]] = []
        self.cut_once: set[str] = set()
        self.cut_always: set[str] = set()
        self.fail_with: dict[str, int] = {}
        self.pages: dict[str, str] = {}
        self.redirects: dict[str, str] = {}
        self.etags: dict[str, str] = {}
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def fetched(self) -> list[str]:
        """The files whose content was sent, whole or not."""
        return [path for path, status in self.answers if status == 200 and path[-1] != "/"]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no matter."""


class _Handler(SimpleHTTPRequestHandler):
    server: Site
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = unquote(self.path)
        site = self.server
        if path in site.redirects:
            self.send_response(302)
            self.send_header("Location", site.redirects[path])
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif path in site.fail_with:
            self.send_error(site.fail_with[path])
        elif path in site.pages:
            self._send(site.pages[path].encode(), "text/html", {})
        elif path in site.etags:
            self._send_with_etag(path)
        elif path in site.cut_once | site.cut_always:
            site.cut_once.discard(path)
            body = Path(self.translate_path(self.path)).read_bytes()
            self._send(body, "image/jpeg", {}, sent=len(body) // 2)
            self.close_connection = True
        else:
            super().do_GET()

    def _send_with_etag(self, path: str) -> None:
        etag = self.server.etags[path]
        if self.headers.get("If-None-Match") == etag:
            self.send_response(304)
            self.end_headers()
            return
        body = Path(self.translate_path(self.path)).read_bytes()
        self._send(body, "image/jpeg", {"ETag": etag})

    def _send(
        self, body: bytes, kind: str, headers: dict[str, str], sent: int | None = None
    ) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[:sent])

    def log_request(self, code: object = "-", size: object = "-") -> None:
        self.server.answers.append((unquote(self.path), int(code)))  # type: ignore[call-overload]

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    folder = tmp_path / "sshd"
    folder.mkdir()
    server = Sshd(folder)
    yield server
    server.stop()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    root = tmp_path / "site"
    root.mkdir()
    server = Site(root)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """A boto3 client of an S3 server; the environment leads to it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test-secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client = boto3.client("s3")
    yield client
    client.close()
    server.stop()
