"""A place reached over SSH: host keys are checked, logins are by key, links are followed once.

paramiko is used without fsspec's filesystem on top: that one accepts any host key, and loses the
rest of a name after a "?".
"""

import logging
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko

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

SYSTEM_KNOWN_HOSTS = Path("/etc/ssh/ssh_known_hosts")
KEEPALIVE_S = 15
REQUESTS_IN_FLIGHT = 64

# Without a handler of its own, its transport thread prints tracebacks to stderr.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Login:
    """Who connects where, and which host keys are trusted; read once, used by each connection."""

    address: Address
    private_key: Any
    known_hosts: tuple[Path, ...]

    @classmethod
    def read(cls, address: Address, *, key: Path | None, known_hosts: Path | None) -> "Login":
        """Read the key; without one, the agent's and the default ones are tried."""
        private_key = None if key is None else _private_key(key)
        if known_hosts is not None and not known_hosts.is_file():
            raise SyncError(f"{known_hosts}: no such file of known hosts")
        trusted = (
            [Path.home() / ".ssh" / "known_hosts", SYSTEM_KNOWN_HOSTS]
            if known_hosts is None
            else [known_hosts]
        )
        return cls(address, private_key, tuple(trusted))

    @property
    def host(self) -> str:
        """The host as known_hosts writes it."""
        port = self.address.port or 22
        return self.address.host if port == 22 else f"[{self.address.host}]:{port}"


class _RefuseUnknownHost:
    """Called by paramiko when no file of known hosts has the server's key."""

    def __init__(self, login: Login) -> None:
        self.login = login

    def missing_host_key(self, client: Any, hostname: str, key: Any) -> None:
        address = self.login.address
        scan = f"ssh-keyscan -p {address.port or 22} {address.host} >> {self.login.known_hosts[0]}"
        raise SyncError(
            f"{address}: the host {self.login.host} is not known; its {key.get_name()} key has the "
            f"fingerprint {key.fingerprint}: compare it with the server's, then connect once "
            f"with ssh or add it: {scan}"
        )


class SftpRemote:
    """One SSH connection with one SFTP channel."""

    def __init__(self, login: Login) -> None:
        self.root = login.address.path
        self._client = paramiko.SSHClient()
        try:
            self._ftp = _connect(self._client, login)
            with self._translated():
                self.root_identity = str(self._ftp.normalize(self.root))
        except BaseException:
            self._client.close()
            raise

    def list_folder(self, path: str, identity: str) -> list[Entry]:
        """List a folder; a link is what it leads to."""
        folder = f"{self.root}/{path}".rstrip("/") or "/"
        with self._translated():
            try:
                attributes = list(self._ftp.listdir_iter(folder))
            except UnicodeDecodeError:
                raise Unavailable("a name in this folder is not UTF-8") from None
            entries = [self._entry(folder, attribute, identity) for attribute in attributes]
        return [entry for entry in entries if entry is not None]

    def _entry(self, folder: str, attribute: Any, parent_identity: str) -> Entry | None:
        name = attribute.filename
        identity = f"{parent_identity}/{name}"
        if stat.S_ISLNK(attribute.st_mode or 0):
            try:
                attribute = self._ftp.stat(f"{folder}/{name}")
                if stat.S_ISDIR(attribute.st_mode or 0):
                    identity = str(self._ftp.normalize(f"{folder}/{name}"))
            except FileNotFoundError:
                return Entry(name, is_folder=False)  # a dangling link: opening it says so
            except OSError:
                if not self._is_alive():
                    raise
                return None  # a link to itself: "Failure"
        mode = attribute.st_mode or 0
        if stat.S_ISDIR(mode):
            return Entry(name, is_folder=True, identity=identity)
        if not stat.S_ISREG(mode):
            return None
        mtime_s = None if attribute.st_mtime is None else int(attribute.st_mtime)
        return Entry(
            name,
            is_folder=False,
            size_bytes=attribute.st_size,
            version="" if mtime_s is None else f"mtime {mtime_s}",
            mtime_s=mtime_s,
        )

    @contextmanager
    def open(self, path: str, known_version: str | None) -> Iterator[Incoming | None]:
        """Open a file; its reads are sent ahead of their answers."""
        with self._translated():
            file = self._ftp.open(f"{self.root}/{path}", "rb")
        try:
            with self._translated():
                now = file.stat()
                _quieten_prefetch(file)
                file.prefetch(now.st_size, REQUESTS_IN_FLIGHT)
            mtime_s = None if now.st_mtime is None else int(now.st_mtime)
            version = "" if mtime_s is None else f"mtime {mtime_s}"
            yield Incoming(now.st_size, version, mtime_s, self._chunks(file))
        finally:
            if self._is_alive():
                with self._translated():
                    file.close()

    def _chunks(self, file: Any) -> Iterator[bytes]:
        while True:
            with self._translated():
                chunk = file.read(CHUNK_BYTES)
            if not chunk:
                return
            yield chunk

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def _is_alive(self) -> bool:
        transport = self._client.get_transport()
        return transport is not None and bool(transport.is_active())

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise Unavailable("no such file or folder") from None
        except PermissionError:
            raise Unavailable("permission denied") from None
        except (paramiko.SSHException, EOFError, TimeoutError, ConnectionError) as error:
            raise Interrupted(one_line(error)) from None
        except OSError as error:
            if not self._is_alive():
                raise Interrupted("connection closed") from None
            raise Unavailable(one_line(error)) from None


def _quieten_prefetch(file: Any) -> None:
    """Keep the thread that sends reads ahead from printing a traceback when the line is cut.

    The thread that waits for the answers gets the error, and tells it.
    """
    send_ahead = file._prefetch_thread

    def quiet(*arguments: Any) -> None:
        try:
            send_ahead(*arguments)
        except (OSError, EOFError, paramiko.SSHException):
            return

    file._prefetch_thread = quiet


def _connect(client: Any, login: Login) -> Any:
    address = login.address
    for file in login.known_hosts:
        if file.is_file():
            try:
                client.load_system_host_keys(str(file))
            except (OSError, paramiko.SSHException, ValueError) as error:
                raise SyncError(f"{file}: cannot be read as known hosts: {error}") from None
    client.set_missing_host_key_policy(_RefuseUnknownHost(login))
    try:
        client.connect(
            address.host,
            port=address.port or 22,
            username=address.user,
            pkey=login.private_key,
            look_for_keys=login.private_key is None,
            allow_agent=login.private_key is None,
            timeout=CONNECT_TIMEOUT_S,
            banner_timeout=CONNECT_TIMEOUT_S,
            auth_timeout=CONNECT_TIMEOUT_S,
        )
        transport = client.get_transport()
        transport.set_keepalive(KEEPALIVE_S)
        # Small requests would wait for the answer to the one before: 30 ms a file.
        transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ftp = client.open_sftp()
    except paramiko.BadHostKeyException as error:
        raise SyncError(
            f"{address}: the host key of {login.host} is not the known one: it is now "
            f"{error.key.fingerprint}, known is {error.expected_key.fingerprint}; someone may be "
            "in between. If the server was changed on purpose, remove the old key with "
            f"ssh-keygen -R '{login.host}' -f {login.known_hosts[0]} and add the new one"
        ) from None
    except paramiko.AuthenticationException as error:
        transport = client.get_transport()
        if transport is None or not transport.is_active():
            raise Unreachable(one_line(error)) from None  # cut while logging in
        raise SyncError(
            f"{address}: login refused; check the user and the key (--key, or ssh-add)"
        ) from None
    except (OSError, EOFError, paramiko.SSHException) as error:
        raise Unreachable(one_line(error)) from None
    ftp.get_channel().settimeout(IDLE_TIMEOUT_S)
    return ftp


def _private_key(path: Path) -> Any:
    try:
        return paramiko.PKey.from_path(path)
    except OSError as error:
        raise SyncError(f"{path}: the key cannot be read: {error.strerror}") from None
    except (paramiko.PasswordRequiredException, TypeError):
        raise SyncError(
            f"{path}: the key has a passphrase: give it to the agent (ssh-add {path}) "
            "and leave --key out"
        ) from None
    except (paramiko.SSHException, ValueError, paramiko.pkey.UnknownKeyType):
        raise SyncError(f"{path}: not a private key that can be read") from None
