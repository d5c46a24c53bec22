"""opmap.json: where each op's time goes, so that a trace can be read without the model.

Made from the graphs by an engine, or from names alone by `ledger/by_name.py`.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from timesink.errors import RunFileError

SCHEMA_VERSION = 1
MODULE = re.compile(r"^a_(.*?)(?:__XlaMustCompile.*|_*\.\d+.*)?$")
"""How XLA names the module that it makes of a function: `a_inference_step_12__.34`."""
CALLS = frozenset(
    {"PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "While", "StatelessWhile"}
    | {"Case", "StatelessCase", "XlaLaunch", "XlaRun", "_XlaRun", "_XlaCompile", "RemoteCall"}
    | {"XlaCompileOnDemand"}
)
"""Ops that only run other ops; these are counted, not the call."""
COPIES = ("host_to_device", "device_to_host")
GRADIENT = "gradient_tape"
"""The scope in which TensorFlow makes gradients, in front of the scope of what they are for."""
LAYER = "layer"
"""The account of everything that belongs to a layer; layer and phase say which."""


@dataclass(frozen=True)
class Share:
    """A part of an op's time: the account it goes to."""

    account: str
    layer: str | None = None
    """Names from the outermost nested model to the layer itself, joined by `/`."""
    phase: str | None = None
    weight: float = 1.0


@dataclass(frozen=True)
class Entry:
    """What is known of one op."""

    shares: tuple[Share, ...]
    """More than one where ops of several layers were fused; the weights sum to 1."""
    device: str | None = None
    """`CPU:1`; None where it was not said."""

    @property
    def estimated(self) -> bool:
        """Whether the time is split by work and not measured apart."""
        return len(self.shares) > 1


@dataclass(frozen=True)
class OpMap:
    """Every op of the step, and every layer."""

    entries: Mapping[str, Entry]
    layers: Mapping[str, str] = field(default_factory=dict)
    """Layer → its type, in the order of the network."""
    origin: Literal["optimized graph", "traced graph", "names"] = "names"

    def find(self, path: str, op_type: str = "") -> Entry | None:
        """Look an op up; calls that were inlined put more in front of its path."""
        fused = "Fused" in op_type and self.origin == "traced graph"
        while path:
            entry = self.entries.get(f"{path}:fused") if fused else None
            entry = entry or self.entries.get(path)
            if entry is not None:
                return entry
            path = path.partition("/")[2]
        return None

    def find_compiled(self, module: str, path: str) -> Entry | None:
        """Look up an op that XLA compiled: in the function it compiled, else as that one's call."""
        match = MODULE.match(module)
        function = match[1].strip("_") if match else ""
        return (
            self.entries.get(f"{function}:{path}")
            or self.find(path)
            or self.entries.get(f"{function}:")
        )

    def to_json(self) -> str:
        """Write it; equal entries are stored once."""
        numbers: dict[Entry, int] = {}
        ops = {
            path: numbers.setdefault(entry, len(numbers)) for path, entry in self.entries.items()
        }
        return json.dumps(
            {
                "schema_version": SCHEMA_VERSION,
                "origin": self.origin,
                "layers": dict(self.layers),
                "entries": [
                    {
                        "device": entry.device,
                        "shares": [
                            [share.account, share.layer, share.phase, share.weight]
                            for share in entry.shares
                        ],
                    }
                    for entry in numbers
                ],
                "ops": ops,
            },
            separators=(",", ":"),
        )


def read_opmap(path: Path) -> OpMap:
    """Read opmap.json."""
    try:
        stored: dict[str, Any] = json.loads(path.read_bytes())
        if stored["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"schema_version {stored['schema_version']}")
        entries = [
            Entry(tuple(Share(*share) for share in each["shares"]), each["device"])
            for each in stored["entries"]
        ]
        ops = {name: entries[number] for name, number in stored["ops"].items()}
        return OpMap(ops, stored["layers"], stored["origin"])
    except OSError as error:
        raise RunFileError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise RunFileError(f"{path}: not a map of ops that this version reads: {error!r}") from None
