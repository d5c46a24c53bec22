"""What a sync remembers between calls: which version of each remote file is the local one."""

import json
from pathlib import Path
from typing import Any

from timesink.datasets.arrival import receive
from timesink.datasets.remotes.remote import Incoming

STATE_NAME = ".timesink-sync.json"
SCHEMA_VERSION = 1


class SyncState:
    """The size and version of each file that came from one remote place."""

    def __init__(self, path: Path, remote: str, files: dict[str, tuple[int, str]]) -> None:
        self.path, self.remote, self.files = path, remote, files
        self.changed = False

    @classmethod
    def load(cls, local: Path, remote: str) -> "SyncState":
        """Read the memory of LOCAL; none, a broken one or another place's is an empty one."""
        path = local / STATE_NAME
        try:
            stored: Any = json.loads(path.read_bytes())
            if stored["schema_version"] != SCHEMA_VERSION or stored["remote"] != remote:
                return cls(path, remote, {})
            files = {
                str(name): (int(size), str(version))
                for name, (size, version) in stored["files"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            # Modification times then say what is there already.
            return cls(path, remote, {})
        return cls(path, remote, files)

    def remember(self, path: str, size_bytes: int, version: str) -> None:
        """Note that the local file is this version."""
        if self.files.get(path) != (size_bytes, version):
            self.files[path] = (size_bytes, version)
            self.changed = True

    def version(self, path: str, size_bytes: int) -> str | None:
        """Give the version of a local file of this size; None when it is not remembered."""
        remembered_bytes, version = self.files.get(path, (-1, ""))
        return version if remembered_bytes == size_bytes else None

    def save(self) -> None:
        """Write the memory, if it changed."""
        if not self.changed:
            return
        stored = {"schema_version": SCHEMA_VERSION, "remote": self.remote, "files": self.files}
        content = json.dumps(stored).encode()
        # As the images come: whole or absent, and cleaned up after by the next sync.
        receive(Incoming(len(content), "", None, iter([content])), self.path)
        self.changed = False
