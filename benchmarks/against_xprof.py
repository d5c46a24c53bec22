"""The time of each op against XProf's framework op statistics, on the same trace file.

Networks are trained a few steps with `timesink run`, in graph mode and compiled by XLA. Of each
trace, XProf says how long every op (name and type) took over the whole file. Ours are, over the
whole file as well, because XProf knows no steps' borders:

  events   what `traces/` read, summed for each op, before any attribution
  ledger   `op_ns` of the books, closed over one step that is the whole file

    python benchmarks/against_xprof.py [--network resnet50] [--steps 10] [--xprof-python PYTHON]

XProf stands in the extra `bench`, or in another Python of its own. To reach: every op that takes
over 0.1 % of the time within 1 %, and the sums too. Exit code 1 where that fails.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from _training import images, train
from timesink.ledger.opmap import read_opmap
from timesink.ledger.step_ledger import close_steps
from timesink.ledger.steps import StepSpans
from timesink.traces.events import Events, Kind
from timesink.traces.xplane import find_traces, read_xplane

NETWORKS = ("mobilenetv2", "resnet50", "googlenet")
TO_REACH = 0.01
COUNTS = 0.001
"""An op that takes less of the time than this is only part of the sums."""

ASK = """
import sys
from xprof.convert.raw_to_tool_data import xspace_to_tool_data
table, _ = xspace_to_tool_data([sys.argv[1]], "framework_op_stats", {})
sys.stdout.buffer.write(table)
"""

Op = tuple[str, str]
"""Name and type."""


@dataclass(frozen=True)
class Statistics:
    """What XProf says: times in ns."""

    ops: dict[Op, float]
    functions: dict[Op, float]
    """Compiled functions that it takes for one op each."""


@dataclass(frozen=True)
class Difference:
    """Our times of the ops against XProf's."""

    ops: int
    xprof_ns: float
    ours_ns: float
    worst: float
    worst_op: str
    median: float
    """Of the ops' relative differences, weighted by time."""

    @property
    def total(self) -> float:
        """The relative difference of the sums."""
        return abs(self.ours_ns / self.xprof_ns - 1)

    @property
    def reached(self) -> bool:
        """Whether it is as small as it should be."""
        return self.total <= TO_REACH and self.worst <= TO_REACH


def ask_xprof(trace: Path, python: str) -> Statistics:
    """Have XProf make its statistics, from a copy: it leaves its own files beside a trace."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(shutil.copy(trace, directory))
        asked = subprocess.run([python, "-c", ASK, str(copy)], capture_output=True, check=False)
    if asked.returncode:
        sys.exit(f"XProf failed; is it installed for {python}?\n{asked.stderr.decode()[-600:]}")
    # Of its two tables the first has the time between ops as well, as an op.
    table = json.loads(asked.stdout)[1]
    columns = [column["id"] for column in table["cols"]]
    ops: Counter[Op] = Counter()
    functions: Counter[Op] = Counter()
    for row in table["rows"]:
        cells = dict(zip(columns, (cell["v"] for cell in row["c"]), strict=True))
        if cells["type"] == "Dataset":  # tf.data's iterators, which are no ops
            continue
        into = functions if cells["type"].startswith("__inference_") else ops
        into[cells["operation"], cells["type"]] += cells["total_time"] * 1e3
    return Statistics(dict(ops), dict(functions))


def from_events(events: Events) -> dict[Op, int]:
    """Sum the events of each op."""
    chosen = np.isin(events.kind, (Kind.OP, Kind.INPUT))
    took_ns = np.zeros(len(events.names), np.int64)
    np.add.at(took_ns, events.name[chosen], (events.end_ns - events.begin_ns)[chosen])
    named = zip(events.names, took_ns, strict=True)
    return {(name.text, name.type): int(took) for name, took in named if took and name.type}


def from_ledger(events: Events, run: Path) -> dict[Op, int]:
    """Sum what the books say of each op, closed over the whole file as one step."""
    one = np.ones(1, np.int64)
    whole = StepSpans(one, one * events.begin_ns.min(), one * events.end_ns.max(), "markers")
    rows = close_steps(events, whole, read_opmap(run / "opmap.json"))
    ops = rows.filter(pl.col("op").is_not_null()).group_by("op", "type").agg(pl.col("op_ns").sum())
    return {(name, kind): took_ns for name, kind, took_ns in ops.iter_rows()}


def compare(xprof: Mapping[Op, float], ours: Mapping[Op, int]) -> Difference | None:
    """Compare the ops that XProf has; one that we have not counts as nothing. None of none."""
    ops = sorted(xprof)
    theirs_ns = np.array([xprof[op] for op in ops])
    ours_ns = np.array([ours.get(op, 0) for op in ops], np.float64)
    total_ns = theirs_ns.sum()
    if not total_ns:
        return None
    relative = np.abs(ours_ns - theirs_ns) / np.maximum(theirs_ns, 1)
    order = np.argsort(relative)
    half = np.searchsorted(np.cumsum(theirs_ns[order]), total_ns / 2)
    counted = np.where(theirs_ns >= COUNTS * total_ns, relative, 0)
    worst = int(np.argmax(counted))
    return Difference(
        len(ops),
        float(total_ns),
        float(ours_ns.sum()),
        float(counted[worst]),
        ops[worst][0],
        float(relative[order][half]),
    )


def on_input_lines(events: Events) -> frozenset[Op]:
    """Find the ops that ran on the input pipeline's threads: they are no part of a step's books."""
    inputs = np.array([line.input for line in events.lines], bool)[events.line]
    names = np.unique(events.name[inputs & (events.kind == Kind.OP)])
    return frozenset((events.names[name].text, events.names[name].type) for name in names)


def report(network: str, mode: str, run: Path, python: str) -> list[bool]:
    """Print one run's comparisons; gives whether each is as it should be."""
    (trace,) = find_traces(run / "profile")
    events, xprof = read_xplane(trace), ask_xprof(trace, python)
    read, booked = from_events(events), from_ledger(events, run)
    beside = on_input_lines(events)
    in_step = {op: took for op, took in xprof.ops.items() if op not in beside}
    found = {"events": compare(xprof.ops, read), "ledger": compare(in_step, booked)}
    for ours, d in found.items():
        if d is None:
            print(f"{network:12} {mode:6} {ours:7}     0  XProf shows none of the step's ops")
            continue
        print(
            f"{network:12} {mode:6} {ours:7} {d.ops:5} {d.xprof_ns / 1e6:11.3f}"
            f" {d.ours_ns / 1e6:11.3f} {100 * d.total:9.4f} {100 * d.worst:9.4f}"
            f" {100 * d.median:9.4f}  {'within 1 %' if d.reached else 'NOT: ' + d.worst_op}"
        )
    explain(events, xprof, read, booked, beside)
    return [difference.reached for difference in found.values() if difference is not None]


def explain(
    events: Events,
    xprof: Statistics,
    read: Mapping[Op, int],
    booked: Mapping[Op, int],
    beside: frozenset[Op],
) -> None:
    """Say what only one of them has."""
    alone = {op: took for op, took in xprof.ops.items() if op not in read}
    say("XProf only, of ops", alone)
    say(
        "XProf only, not in the ledger",
        {
            op: took
            for op, took in xprof.ops.items()
            if op in read and op not in booked | alone and op not in beside
        },
    )
    say(
        "on the input's threads, so not in the ledger",
        {op: took for op, took in xprof.ops.items() if op in beside},
    )
    say(
        "ours only (XProf lists the 500 longest)",
        {op: took for op, took in read.items() if op not in xprof.ops},
    )
    say("XProf has compiled functions only as a whole", xprof.functions)
    compiled, calls = (np.flatnonzero(events.kind == k) for k in (Kind.HLO, Kind.FUNCTION))
    if len(compiled):
        names = len(np.unique(events.name[compiled]))
        print(
            f"{'':20} ours only: {names} compiled instructions, some of which ran for"
            f" {busy_ms(events, compiled):.3f} ms; calls of functions took"
            f" {busy_ms(events, calls):.3f} ms"
        )


def busy_ms(events: Events, chosen: np.ndarray) -> float:
    """Give how long at least one of the events lasted."""
    order = chosen[np.argsort(events.begin_ns[chosen], kind="stable")]
    begin, reach = events.begin_ns[order], np.maximum.accumulate(events.end_ns[order])
    since = np.maximum(begin, np.concatenate([begin[:1], reach[:-1]]))
    return float(np.maximum(reach - since, 0).sum()) / 1e6


def say(what: str, ops: Mapping[Op, float]) -> None:
    """Print a group of ops by its longest."""
    if ops:
        name, kind = max(ops, key=lambda op: ops[op])
        longest_ms = ops[name, kind] / 1e6
        print(
            f"{'':20} {what}: {len(ops)}, {sum(ops.values()) / 1e6:.3f} ms,"
            f" longest {kind} {name[-50:]} {longest_ms:.3f} ms"
        )


def main() -> int:
    """Compare the networks asked for; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", action="append", help="repeatable")
    parser.add_argument("--steps", type=int, default=10, help="traced steps")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--mode", choices=("graph", "xla", "both"), default="both")
    parser.add_argument("--xprof-python", default=sys.executable, metavar="PYTHON")
    options = parser.parse_args()
    print("Time of the ops over the whole trace: ours against XProf's (to reach: within 1 %)")
    print(
        f"{'network':12} {'mode':6} {'ours':7}   ops    XProf ms     ours ms"
        "     sum %   worst %  median %"
    )
    reached: list[bool] = []
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        dataset = images(place)
        for network in options.network or NETWORKS:
            for mode in ("graph", "xla") if options.mode == "both" else (options.mode,):
                train(
                    place,
                    dataset,
                    network,
                    training__iterations=2 * options.steps + 6,
                    training__batch_size=options.batch_size,
                    training__xla=str(mode == "xla").lower(),
                    profile__mode="window",
                    profile__start=5,
                    profile__steps=options.steps,
                )
                run = place / f"run-{len(list(place.glob('run-*')))}"
                reached += report(network, mode, run, options.xprof_python)
    print(f"{sum(reached)} of {len(reached)} comparisons within 1 %")
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
