"""Which events are a device's work, and whom each one's time is charged to."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from timesink.ledger.opmap import CALLS, OpMap, Share
from timesink.traces.events import Events, Kind, Name

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Key:
    """Who can be charged: shares of an op, or an account with a place."""

    shares: tuple[Share, ...]
    place: str | None = None
    name: Name | None = None


class DeviceOps:
    """The events that are work of devices, each with the number of its key."""

    def __init__(self, events: Events, opmap: OpMap) -> None:
        self.keys: list[Key] = []
        self._numbers: dict[Key, int] = {}
        hosts = np.array([line.device is None for line in events.lines], bool)
        inputs = np.array([line.input for line in events.lines], bool)
        streams = [line.device for line in events.lines if line.device is not None]
        worked = np.isin(events.kind, (Kind.OP, Kind.HLO)) & ~inputs[events.line]
        gpu = bool(streams) and bool((worked & ~hosts[events.line]).any())
        if gpu:
            # Beside GPUs the host's ops only feed them.
            worked &= ~hosts[events.line]
        chosen = np.flatnonzero(worked)
        eager = self._outside_functions(events, chosen) if not gpu else np.zeros(len(chosen), bool)
        number, names = self._resolve(events, chosen, eager, opmap)
        if gpu:
            names = [line.device or "" for line in events.lines]
        used = {name: place for place, name in enumerate(sorted(set(names)))}
        places = np.array([used[name] for name in names], np.int64)
        device = places[(events.line if gpu else events.name)[chosen]]
        kept = np.flatnonzero(number >= 0)
        kept = kept[_outermost(events, chosen[kept])]
        self.chosen, self.number = chosen[kept], number[kept]
        self._device, self._places = device[kept], used
        ran = set(np.unique(self._device).tolist())
        self.devices = [name for name, place in used.items() if place in ran] or ["CPU:0"]

    def on(self, device: str) -> npt.NDArray[np.bool_]:
        """Tell which of the events ran on a device."""
        there: npt.NDArray[np.bool_] = self._device == self._places.get(device, -1)
        return there

    def key(self, key: Key) -> int:
        """Give a key's number."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return number

    def _outside_functions(self, events: Events, chosen: Ints) -> npt.NDArray[np.bool_]:
        """Tell which ops ran eagerly: on a thread that calls functions, but not within a call."""
        calls = np.flatnonzero(events.kind == Kind.FUNCTION)
        if not len(calls):
            return np.zeros(len(chosen), bool)
        callers = np.isin(events.line[chosen], np.unique(events.line[calls]))
        return callers & ~_covered(
            events.begin_ns[chosen], events.begin_ns[calls], events.end_ns[calls]
        )

    def _resolve(
        self,
        events: Events,
        chosen: Ints,
        eager: npt.NDArray[np.bool_],
        opmap: OpMap,
    ) -> tuple[Ints, list[str]]:
        """Give the key of each event, -1 for none, and the device of each name."""
        names = events.name[chosen].astype(np.int64)
        number = np.full(len(events.names), -1, np.int64)
        devices = ["CPU:0"] * len(events.names)
        for each in np.flatnonzero(np.bincount(names, minlength=len(number))):
            name = events.names[each]
            shares, on = _shares_of(name, events, opmap)
            devices[each] = on or "CPU:0"
            if shares and shares[0].account != "runtime":
                number[each] = self.key(Key(shares, name=name))
        numbers = number[names]
        for each in np.unique(names[eager]):
            name = events.names[each]
            unknown = opmap.find(name.text, name.type) is None
            if unknown:
                key = Key((Share("python"),), f"eager {name.type or name.text}")
                numbers[eager & (names == each)] = self.key(key)
        return numbers, devices


def _shares_of(name: Name, events: Events, opmap: OpMap) -> tuple[tuple[Share, ...], str | None]:
    """Find where an op's time goes; a compiled instruction is made of many ops."""
    members = events.hlo.get(name)
    if members is None and name.type in CALLS:
        return (), None
    if members is None:
        entry = opmap.find(name.text, name.type)
        return (entry.shares, entry.device) if entry is not None else ((), None)
    weights: dict[tuple[str, str | None, str | None], float] = {}
    device = None
    convolves = name.text.startswith("convolution")
    for member in members:
        entry = opmap.find_compiled(name.type, member.path)
        if entry is None:
            continue
        device = device or entry.device
        for share in entry.shares:
            if share.account != "runtime":
                # A gradient that XLA left nameless borrows its name from the update it goes to.
                phase = "backward" if convolves and share.phase == "update" else share.phase
                key = (share.account, share.layer, phase)
                weights[key] = weights.get(key, 0.0) + member.weight * share.weight
    total = sum(weights.values())
    if not weights:
        return (), device
    if total == 0:
        return (Share(*next(iter(weights))),), device
    return tuple(Share(*key, weight / total) for key, weight in weights.items()), device


def _outermost(events: Events, chosen: Ints) -> Ints:
    """Give the places of ops that ran inside no other op of the same thread, which has their time.

    They come in the order of threads and time.
    """
    order = np.lexsort(
        [each[chosen] for each in (events.name, -events.end_ns, events.begin_ns, events.line)]
    )
    chosen = chosen[order]
    plain = events.kind[chosen] == Kind.OP
    ops = chosen[plain]
    keep = np.ones(len(chosen), bool)
    if len(ops):
        line, begin, end = events.line[ops], events.begin_ns[ops], events.end_ns[ops]
        # Lines one after the other on one axis, so that a running maximum restarts at each.
        span = int(end.max() - begin.min()) + 1
        shift = line.astype(np.int64) * span - int(begin.min())
        reach = np.maximum.accumulate(end + shift)
        inside = np.zeros(len(ops), bool)
        inside[1:] = end[1:] + shift[1:] <= reach[:-1]
        keep[np.flatnonzero(plain)[inside]] = False
    return order[keep]


def _covered(at_ns: Ints, begin_ns: Ints, end_ns: Ints) -> npt.NDArray[np.bool_]:
    """Tell which instants lie within some interval."""
    order = np.argsort(begin_ns, kind="stable")
    begin, reach = begin_ns[order], np.maximum.accumulate(end_ns[order])
    before = np.searchsorted(begin, at_ns, side="right") - 1
    return (before >= 0) & (at_ns < reach[np.maximum(before, 0)])
