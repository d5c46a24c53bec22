"""`timesink dataset sync` as users start it."""

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers import Site, Sshd, images_in, make_images, parts_in

Command = Callable[..., subprocess.CompletedProcess[str]]


def sftp_arguments(sshd: Sshd, remote: Path, local: Path) -> list[str]:
    return [
        *("dataset", "sync", sshd.url(remote), str(local)),
        *("--key", str(sshd.key), "--known-hosts", str(sshd.known_hosts)),
    ]


def test_the_summary_says_what_came(timesink: Command, tmp_path: Path) -> None:
    make_images(tmp_path / "remote", "train/cat", "train/dog")
    first = timesink("dataset", "sync", "remote", "local", "--class", "cat")
    assert first.returncode == 0
    assert "3 files came" in first.stdout
    assert "timesink dataset info local" in first.stderr
    second = timesink("dataset", "sync", "remote", "local", "--json")
    summary = json.loads(second.stdout)
    assert (summary["files"], summary["unchanged"], summary["failed"]) == (3, 3, [])
    assert summary["bytes"] == 60_000
    assert {"seconds", "mb_per_s", "skipped", "refused", "remote", "local"} <= summary.keys()


def test_a_file_that_failed_is_named_and_the_exit_code_is_3(
    timesink: Command, site: Site, tmp_path: Path
) -> None:
    make_images(tmp_path / "site", "cat")
    site.fail_with = {"/cat/1.jpg": 404}
    run = timesink("dataset", "sync", site.url, "local", "--json")
    assert run.returncode == 3
    assert json.loads(run.stdout)["failed"] == [
        {"path": "cat/1.jpg", "reason": "HTTP 404 Not Found"}
    ]
    assert "'cat/1.jpg': HTTP 404" in run.stderr
    assert "Traceback" not in run.stderr


def test_hostile_names_are_shown_escaped(timesink: Command, site: Site, tmp_path: Path) -> None:
    make_images(tmp_path / "site", "cat")
    site.pages = {"/cat/": '<a href="0.jpg">0</a><a href="..%5C%1b[31mred.jpg">x</a>'}
    run = timesink("dataset", "sync", site.url, "local")
    assert run.returncode == 0
    assert "1 refused" in run.stdout
    assert "\x1b" not in run.stderr


@pytest.mark.parametrize(
    ("remote", "part"),
    [
        ("sftp://ann:hunter2@host/set", "use a key"),
        ("sftp://127.0.0.1:9/set", "cannot be reached"),
        ("sftp://no-such-host.invalid/set", "cannot be reached"),
        ("http://127.0.0.1:9/set", "cannot be reached"),
        ("gopher://host/set", "gopher:// is not known"),
        ("nowhere", "No such file or directory"),
    ],
)
def test_an_error_is_one_line(timesink: Command, remote: str, part: str) -> None:
    run = timesink("dataset", "sync", remote, "local")
    assert run.returncode == 3
    assert part in run.stderr
    assert run.stderr.startswith("timesink: ")
    assert len(run.stderr.splitlines()) == 1
    assert "hunter2" not in run.stderr


def test_an_unknown_host_is_one_line(timesink: Command, sshd: Sshd, tmp_path: Path) -> None:
    make_images(tmp_path / "remote", "cat")
    sshd.known_hosts.write_text("")
    run = timesink(*sftp_arguments(sshd, tmp_path / "remote", tmp_path / "local"))
    assert run.returncode == 3
    assert "SHA256:" in run.stderr
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("module", "remote"),
    [
        ("paramiko", "sftp://h/p"),
        ("aiohttp", "http://h/p"),
        ("fsspec", "https://h/p"),
        ("s3fs", "s3://b/p"),
    ],
)
def test_a_missing_extra_says_what_to_install(
    timesink: Command, tmp_path: Path, module: str, remote: str
) -> None:
    (tmp_path / "stubs").mkdir()
    (tmp_path / f"stubs/{module}.py").write_text("raise ImportError('not here')")
    run = timesink(
        "dataset", "sync", remote, "local", env=os.environ | {"PYTHONPATH": str(tmp_path / "stubs")}
    )
    assert run.returncode == 2
    assert "pip install 'timesink[remote]'" in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_help_imports_no_network_library() -> None:
    program = (
        "import sys\nfrom timesink.cli import cli\n"
        "cli(['dataset', 'sync', '--help'], standalone_mode=False)\n"
        "assert not {'fsspec', 'paramiko', 'aiohttp', 's3fs'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_after_a_kill_the_same_command_brings_the_rest(
    timesink: Command, sshd: Sshd, tmp_path: Path, sent: signal.Signals
) -> None:
    remote, local = tmp_path / "remote", tmp_path / "local"
    contents = make_images(remote, "cat", count=60, size_bytes=1_000_000)
    arguments = sftp_arguments(sshd, remote, local)
    process = subprocess.Popen(
        [sys.executable, "-m", "timesink", *arguments], stderr=subprocess.PIPE, text=True
    )
    # Stop while some files are whole and others are on their way.
    while len(list(local.rglob("*.jpg"))) < 5 or not parts_in(local):
        assert process.poll() is None
    process.send_signal(sent)
    _, stderr = process.communicate()
    here = images_in(local)
    assert 5 <= len(here) < 60
    assert here.items() <= contents.items()
    if sent == signal.SIGINT:
        assert process.returncode == 130
        assert stderr.splitlines()[-1] == "timesink: stopped"
        assert "Traceback" not in stderr
        assert not parts_in(local)
    again = timesink(*arguments, "--json")
    summary = json.loads(again.stdout)
    assert (summary["files"], summary["unchanged"]) == (60 - len(here), len(here))
    assert images_in(local) == contents
    assert not parts_in(local)


def test_a_redirect_from_https_to_http_is_refused(
    timesink: Command, site: Site, tmp_path: Path
) -> None:
    make_images(tmp_path / "site", "cat")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", key, "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    (tmp_path / "secure").mkdir()
    make_images(tmp_path / "secure", "cat", "dog")
    secure = Site(tmp_path / "secure")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    secure.redirects = {"/cat/1.jpg": f"{site.url}/cat/1.jpg", "/cat/2.jpg": "/dog/2.jpg"}
    url = f"https://localhost:{secure.server_port}"
    try:
        stranger = timesink("dataset", "sync", url, "local")
        trusted = timesink(
            *("dataset", "sync", url, "local", "--json"),
            env=os.environ | {"SSL_CERT_FILE": str(certificate)},
        )
    finally:
        secure.shutdown()
        secure.server_close()
    assert stranger.returncode == 3
    assert "certificate" in stranger.stderr
    assert len(stranger.stderr.splitlines()) == 1
    failed = json.loads(trusted.stdout)["failed"]
    assert [failure["path"] for failure in failed] == ["cat/1.jpg"]
    assert "from https to http" in failed[0]["reason"]
    assert site.answers == []
