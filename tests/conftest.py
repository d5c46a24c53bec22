"""What every test stands on: a quiet TensorFlow, and the command as users start it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# How fast the machine is says nothing of the behaviour.
settings.register_profile("timesink", deadline=None)
settings.load_profile("timesink")

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def timesink(tmp_path: Path) -> Command:
    """Run the real command in an empty directory."""

    def run(*arguments: str, cwd: Path = tmp_path, **options) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "timesink", *map(str, arguments)],
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=300,
            **options,
        )

    return run
