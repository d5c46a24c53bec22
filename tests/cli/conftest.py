"""The servers that `dataset sync` is tested against, and a quick way to give commands."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers import s3, site, sshd
from timesink.cli import main

__all__ = ["s3", "site", "sshd"]


@dataclass(frozen=True)
class Said:
    """What the command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Said]:
    """Run the command within the test's own process, where starting it would cost more."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["timesink", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Said(int(ended.value.code or 0), *capsys.readouterr())

    return run
