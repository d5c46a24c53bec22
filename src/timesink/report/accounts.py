"""A step's time by account, in the order of the data's way: a summary in, closed parts out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from timesink.ledger.opmap import LAYER

Row = Mapping[str, Any]

MEANING = {
    "input_wait": "waiting for the next images",
    "host_to_device": "copying images to the device",
    "forward": "the layers, forward",
    "loss": "loss and metrics",
    "backward": "the layers, backward (gradients)",
    "collective": "replicas adding up their gradients",
    "update": "the optimizer changing the weights",
    "device_to_host": "copying results back",
    "compute": "the compiled step, not traced",
    "runtime": "the framework, between ops",
    "python": "Python, beside the network",
    "idle": "the host blocked on something else",
    "unattributed": "no evidence of what it was",
}
"""From disk to update; then what is of no station on the way."""
WAY = tuple(MEANING)


@dataclass(frozen=True)
class Part:
    """What one account took of a step."""

    account: str
    ms: float
    share: float


@dataclass(frozen=True)
class StepParts:
    """A mean step of one device, closed: the parts are all of it."""

    device: str
    wall_ms: float
    """By the clock, whatever was charged."""
    parts: tuple[Part, ...]
    steps: int
    traced: bool = True
    """Otherwise only waiting and computing are told apart."""

    @property
    def charged_ms(self) -> float:
        """What the parts sum to."""
        return sum(part.ms for part in self.parts)

    def share(self, account: str) -> float:
        """Give the share of one account."""
        return sum(part.share for part in self.parts if part.account == account)


def station(row: Row) -> str:
    """Name the part that a row of the ledger belongs to: a layer's is its phase."""
    return (row["phase"] or "forward") if row["account"] == LAYER else row["account"]


def traced_parts(summary: Mapping[str, Any]) -> list[StepParts]:
    """Give the mean traced step of each device; none where nothing was traced."""
    by_device: dict[str, dict[str, float]] = {}
    for row in summary["accounts"]:
        sums = by_device.setdefault(row["device"], {})
        sums[station(row)] = sums.get(station(row), 0.0) + row["charged_ms"]
    walls = {each["device"]: each for each in summary.get("traced", ())}
    found = []
    for device, sums in sorted(by_device.items()):
        charged_ms = sum(sums.values())
        wall = walls.get(device, {})
        found.append(
            StepParts(
                device,
                wall.get("step_ms", charged_ms),
                _in_order(sums, charged_ms),
                wall.get("steps", summary["traced_steps"]),
            )
        )
    return found


def timed_parts(
    step_ms: Sequence[float], data_ms: Sequence[float | None], compute_ms: Sequence[float]
) -> StepParts | None:
    """Give the mean step as it was timed without a trace; None where there is no step."""
    if not step_ms:
        return None
    count, wall_ms = len(step_ms), sum(step_ms) / len(step_ms)
    wait_ms = sum(each or 0.0 for each in data_ms) / count
    busy_ms = sum(compute_ms) / count
    sums = {"compute": busy_ms, "python": max(wall_ms - wait_ms - busy_ms, 0.0)}
    if any(each is not None for each in data_ms):
        sums["input_wait"] = wait_ms
    return StepParts("", wall_ms, _in_order(sums, sum(sums.values())), count, traced=False)


def mean_share(steps: Sequence[StepParts], account: str) -> float:
    """Give an account's share of a step, as the mean of the devices."""
    return sum(each.share(account) for each in steps) / len(steps) if steps else 0.0


def _in_order(sums: Mapping[str, float], whole_ms: float) -> tuple[Part, ...]:
    known = [account for account in WAY if account in sums]
    others = [account for account in sums if account not in MEANING]
    return tuple(
        Part(account, sums[account], sums[account] / whole_ms if whole_ms else 0.0)
        for account in (*known, *others)
        if sums[account] > 0 or account == "unattributed"
    )
