"""The books of the traced steps: events, steps and a map of ops in, charged time out.

For each device, at each instant of a step, the time goes to the strongest evidence there is:

    ops of the network  >  compiled instructions that were launched and had not ended
    >  collectives  >  copies  >  waiting for input  >  garbage collection
    >  the function running (`runtime`)  >  the host blocked (`idle`)  >  Python at a known place
    >  Python in between  >  nothing (`unattributed`)
"""

import numpy as np
import numpy.typing as npt
import polars as pl

from timesink.ledger.device_ops import DeviceOps, Key
from timesink.ledger.opmap import COPIES, OpMap, Share
from timesink.ledger.places import python_places
from timesink.ledger.steps import StepSpans
from timesink.ledger.sweep import UNATTRIBUTED, Charges, Level, apportion_many, sweep
from timesink.traces.events import Events, Kind

Ints = npt.NDArray[np.int64]

PENDING_LEVEL = 1
MEASURED_LEVELS = 5
"""The levels that are events of their own: ops, pending ones, collectives, copies, input."""
SCHEMA = {
    "iteration": pl.Int64,
    "device": pl.String,
    "account": pl.String,
    "layer": pl.String,
    "phase": pl.String,
    "place": pl.String,
    "op": pl.String,
    "type": pl.String,
    "op_ns": pl.Int64,
    "charged_ns": pl.Int64,
    "estimated": pl.Boolean,
}

WORDS = ("device", "account", "layer", "phase", "place", "op", "type")


def close_steps(events: Events, steps: StepSpans, opmap: OpMap) -> pl.DataFrame:
    """Charge each step's wall time; gives a row for each iteration, device, account and op.

    For each iteration and device the rows' `charged_ns` sum to the step's length.
    """
    ops = DeviceOps(events, opmap)
    frames = [_close_device(device, events, steps, ops) for device in ops.devices]
    return pl.concat(frames) if frames else pl.DataFrame(schema=SCHEMA)


def _close_device(device: str, events: Events, steps: StepSpans, ops: DeviceOps) -> pl.DataFrame:
    mine = ops.on(device)
    chosen, numbers = ops.chosen[mine], ops.number[mine]
    strength = np.array([_strength(key) for key in ops.keys] or [0])[numbers]
    levels = [
        _level(events, chosen[strength == each], numbers[strength == each], shared=True)
        for each in range(3)
    ]
    levels[:1] = _launched(events, chosen[strength == 0], numbers[strength == 0])
    on_device = np.array([line.device in (None, device) for line in events.lines], bool)
    copies = [
        np.flatnonzero((events.kind == kind) & on_device[events.line])
        for kind in (Kind.COPY_IN, Kind.COPY_OUT)
    ]
    for account, found in zip(COPIES, copies, strict=True):
        number = ops.key(Key((Share(account),)))
        levels[3] = _joined(levels[3], _level(events, found, np.full(len(found), number)))
    levels += _host_levels(events, steps, ops)
    charges = sweep(steps.begin_ns, steps.end_ns, levels)
    return _rows(device, steps, charges, ops)


def _launched(events: Events, chosen: Ints, key: Ints) -> list[Level]:
    """Tell what ran on a thread from what had been launched and not yet ended."""
    begin, end = events.begin_ns[chosen], events.end_ns[chosen]
    pending = (events.kind[chosen] == Kind.HLO) & (events.number[chosen] > 0)
    seen = np.where(pending, begin + events.number[chosen], end)
    return [
        Level(begin, seen, key, shared=True),
        Level(seen[pending], end[pending], key[pending], shared=True),
    ]


def _strength(key: Key) -> int:
    account = key.shares[0].account
    return 1 if account == "collective" else 2 if account in COPIES else 0


def _host_levels(events: Events, steps: StepSpans, ops: DeviceOps) -> list[Level]:
    """Give what the host did, for the time in which the device did nothing."""

    def of(kind: Kind, key: Key) -> Level:
        found = np.flatnonzero(events.kind == kind)
        return _level(events, found, np.full(len(found), ops.key(key)))

    spans = _in_order(events, np.flatnonzero(events.kind == Kind.SPAN))
    gc = np.array([events.names[n].text.startswith("gc ") for n in events.name[spans]], bool)
    collections = [
        ops.key(Key((Share("python"),), f"garbage collection ({events.names[n].text[3:]})"))
        for n in events.name[spans[gc]]
    ]
    calls = _in_order(events, np.flatnonzero(events.kind == Kind.FUNCTION))
    traced = set(events.retraced)
    running = [
        ops.key(
            Key((Share("python"),), f"tracing {name}")
            if (name := events.names[events.name[call]].text, int(events.begin_ns[call])) in traced
            else Key((Share("runtime"),))
        )
        for call in calls
    ]
    busy = np.concatenate([calls, np.flatnonzero(np.isin(events.kind, (Kind.INPUT, Kind.BLOCKED)))])
    cells = python_places(events, busy, spans[~gc])
    places = [ops.key(Key((Share("python"),), place)) for place in cells.place]
    named = [
        ops.key(Key((Share("python"),), events.names[n].text)) for n in events.name[spans[~gc]]
    ]
    between = ops.key(Key((Share("python"),)))
    inside = Level(steps.begin_ns, steps.end_ns, np.full(len(steps), between), shared=False)
    evidence = steps.source != "whole file"
    return [
        of(Kind.INPUT, Key((Share("input_wait"),))),
        _level(events, spans[gc], np.array(collections, np.int64)),
        _level(events, calls, np.array(running, np.int64)),
        of(Kind.BLOCKED, Key((Share("idle"),))),
        Level(cells.begin_ns, cells.end_ns, np.array(places, np.int64), shared=False),
        _level(events, spans[~gc], np.array(named, np.int64)),
        *([inside] if evidence else []),
    ]


def _in_order(events: Events, chosen: Ints) -> Ints:
    """Sort, so that keys are numbered alike however the file's events are ordered."""
    columns = (events.name, events.end_ns, events.begin_ns)
    return chosen[np.lexsort([column[chosen] for column in columns])]


def _level(events: Events, chosen: Ints, key: Ints, *, shared: bool = False) -> Level:
    return Level(events.begin_ns[chosen], events.end_ns[chosen], key.astype(np.int64), shared)


def _joined(first: Level, second: Level) -> Level:
    return Level(
        np.concatenate([first.begin_ns, second.begin_ns]),
        np.concatenate([first.end_ns, second.end_ns]),
        np.concatenate([first.key, second.key]),
        first.shared,
    )


def _rows(device: str, steps: StepSpans, charges: Charges, ops: DeviceOps) -> pl.DataFrame:
    """Name the charges; what was fused is divided among its layers, to the nanosecond."""
    assert UNATTRIBUTED == -1  # so that it points at the last key
    keys = [*ops.keys, Key((Share("unattributed"),))]
    counts = np.array([len(key.shares) for key in keys], np.int64)
    first = np.cumsum(counts) - counts
    parts = [(key, share) for key in keys for share in key.shares]
    words = pl.DataFrame(
        {
            "device": [device] * len(parts),
            "account": [share.account for _, share in parts],
            "layer": [share.layer for _, share in parts],
            "phase": [share.phase for _, share in parts],
            "place": [key.place for key, _ in parts],
            "op": [key.name.text if key.name else None for key, _ in parts],
            "type": [key.name.type if key.name else None for key, _ in parts],
        },
        schema={name: SCHEMA[name] for name in WORDS},
    )
    weights = np.array([share.weight for _, share in parts], np.float64)
    split = counts[charges.key]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(split)])
    row = np.repeat(np.arange(len(split)), split)
    part = first[charges.key][row] + np.arange(len(row)) - offsets[row]
    level = charges.level[row]
    measured = (level < MEASURED_LEVELS) & (level != UNATTRIBUTED)
    rows: pl.DataFrame = words[part]
    return (
        rows.with_columns(
            iteration=steps.iteration[charges.step[row]],
            op_ns=apportion_many(charges.work_ns, offsets, weights[part]),
            charged_ns=apportion_many(charges.charged_ns, offsets, weights[part]),
            estimated=(split[row] > 1) | (level == PENDING_LEVEL),
        )
        .with_columns(op_ns=pl.when(pl.Series(measured)).then("op_ns"))
        .select(list(SCHEMA))
    )
