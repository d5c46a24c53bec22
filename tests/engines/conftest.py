"""What the engines' tests share: a network written by a user."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from timesink.engines.tensorflow.networks import Network, build_network
from timesink.experiment import TrainingSection


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Network]]:
    """Write a module `mine` into the working directory and build what is named in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))

    def build(source: str, name: str = "net", **training: object) -> Network:
        Path("mine.py").write_text("import keras\nfrom keras import layers\n" + dedent(source))
        section = TrainingSection(network=f"mine:{name}", **training)
        return build_network(section, image_size=16, classes=5)

    yield build
    sys.modules.pop("mine", None)
