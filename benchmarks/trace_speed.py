"""How fast `timesink layers` makes a trace into layers.csv, and whether time grows as events do.

Traces of 250,000, 500,000 and a million events are written as TensorFlow's profiler writes them:
steps of a network of 50 layers on two executor threads, with calls, waits for input, allocations
and the thread pool's own talk, each as often as in a trace of MobileNetV2. Each file is read by
the command in fresh processes on one core, from the interpreter's start to its end; the fastest
counts. Time an event, and its ratio to that of the smallest trace, are of the processor's time,
which other programs disturb less; starting the interpreter is in it, so that the ratio falls.

    python benchmarks/trace_speed.py [--events 250000 --events 1000000] [--repeat 3] [--core 0]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from timesink.traces.messages import XLine, XPlane, XSpace

LAYERS = 50
FORWARD = ("Conv2D", "BiasAdd", "FusedBatchNormV3", "Relu", "ReadVariableOp", "Identity")
BACKWARD = ("Conv2DBackpropInput", "Conv2DBackpropFilter", "BiasAddGrad", "ReluGrad", "AddN", "Sum")
OP_PS, GAP_PS = 40_000_000, 2_000_000
TO_REACH_S, TO_REACH_MB = 3.0, 1000


@dataclass(frozen=True)
class Spent:
    """What one process took."""

    wall_s: float
    cpu_s: float
    peak_mb: float


class Writer:
    """A host's plane that grows step by step."""

    def __init__(self) -> None:
        self.plane = XPlane(name=b"/host:CPU")
        self.lines = {
            name: XLine(name=name.encode(), timestamp_ns=1_000_000)
            for name in ("python", "tf_Compute/1", "tf_Compute/2")
        }
        self.names: dict[str, int] = {}
        self.stats: dict[str, int] = {}
        self.events = 0

    def add(self, line: str, name: str, begin_ps: int, length_ps: int, **stats: int | str) -> None:
        """Add an event; a text is stored once, as the name of a stat."""
        event = self.lines[line].events.add(
            metadata_id=self._event(name), offset_ps=begin_ps, duration_ps=length_ps
        )
        for key, value in stats.items():
            stat = event.stats.add(metadata_id=self._stat(key))
            if isinstance(value, str):
                stat.ref_value = self._stat(value)
            else:
                stat.int64_value = value
        self.events += 1

    def add_step(self, number: int, begin_ps: int) -> int:
        """Add all events of a step; gives its end."""
        at_ps = begin_ps + OP_PS
        self.add("python", "IteratorGetNextOp::DoCompute", begin_ps, OP_PS // 2)
        for index, (path, op_type) in enumerate(OPS):
            thread = f"tf_Compute/{1 + index % 2}"
            if index % 3 == 0:
                self.add(thread, "ExecutorState::Process", at_ps - GAP_PS, OP_PS + GAP_PS)
            self.add(thread, f"{path}:{op_type}", at_ps, OP_PS)
            if index % 5 == 0:
                self.add(
                    thread,
                    "MemoryAllocation",
                    at_ps,
                    0,
                    allocator_name="cpu",
                    bytes_allocated=1_000_000 + index,
                    peak_bytes_in_use=2_000_000,
                    requested_bytes=4096,
                )
            # Two threads: half of an op runs beside the one before.
            at_ps += OP_PS // 2 + GAP_PS
        end_ps = at_ps + OP_PS
        self.add(
            "python",
            "train_step",
            begin_ps + OP_PS,
            end_ps - begin_ps - OP_PS,
            tf_function_call="notTraced-nonXla",
        )
        self.add("python", "train", begin_ps, end_ps - begin_ps, step_num=number, _r=1)
        return end_ps

    def write(self, path: Path) -> None:
        """Write the file."""
        self.plane.lines.extend(line.SerializeToString() for line in self.lines.values())
        space = XSpace(hostnames=[b"host"])
        space.planes.append(self.plane.SerializeToString())
        path.write_bytes(space.SerializeToString())

    def _event(self, name: str) -> int:
        if name not in self.names:
            self.names[name] = len(self.names) + 1
            entry = self.plane.event_metadata.add(key=self.names[name])
            entry.value.id, entry.value.name = entry.key, name.encode()
        return self.names[name]

    def _stat(self, name: str) -> int:
        if name not in self.stats:
            self.stats[name] = len(self.stats) + 1
            entry = self.plane.stat_metadata.add(key=self.stats[name])
            entry.value.id, entry.value.name = entry.key, name.encode()
        return self.stats[name]


def _ops() -> list[tuple[str, str]]:
    """Give the ops of a step in the order they run: path and type."""
    layers = [f"net/block_{number // 5}/layer_{number}" for number in range(LAYERS)]
    forward = [(f"{layer}/{kind}", kind) for layer in layers for kind in FORWARD]
    backward = [
        (f"gradient_tape/{layer}/{kind}", kind) for layer in reversed(layers) for kind in BACKWARD
    ]
    update = [(f"sgd/ResourceApply_{n}", "ResourceApplyGradientDescent") for n in range(LAYERS)]
    return [*forward, ("loss/Mean", "Mean"), *backward, *update]


OPS = _ops()


def write_trace(path: Path, events: int) -> int:
    """Write a trace of about so many events, in whole steps; gives how many."""
    writer = Writer()
    number, at_ps = 0, 0
    while writer.events < events:
        number += 1
        at_ps = writer.add_step(number, at_ps)
    writer.write(path)
    return writer.events


def run_command(trace: Path, core: int) -> Spent:
    """Run the command on one core, in a process of its own."""
    words = [sys.executable, "-m", "timesink", "layers", str(trace), "--out", f"{trace}.csv"]
    begin = time.perf_counter()
    process = subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"timesink layers {trace} ended with {process.returncode}")
    return Spent(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def main() -> None:
    """Measure every size and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, action="append")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    options = parser.parse_args()
    print("   events  file MB  seconds  processor s  peak MB  µs/event  ratio")
    first = None
    for asked in options.events or (250_000, 500_000, 1_000_000):
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "host.xplane.pb"
            events = write_trace(trace, asked)
            file_mb = trace.stat().st_size / 1e6
            runs = [run_command(trace, options.core) for _ in range(options.repeat)]
        best = min(runs, key=lambda spent: spent.wall_s)
        each_us = min(spent.cpu_s for spent in runs) / events * 1e6
        first = first or each_us
        print(
            f"{events:9,} {file_mb:8.1f} {best.wall_s:8.2f} {best.cpu_s:12.2f} "
            f"{best.peak_mb:8.0f} {each_us:9.2f} {each_us / first:6.2f}",
            flush=True,
        )
    reached = best.wall_s <= TO_REACH_S and best.peak_mb <= TO_REACH_MB
    print(
        f"to reach with a million: {TO_REACH_S:g} s and {TO_REACH_MB} MB "
        f"({'reached' if reached else 'NOT reached'})"
    )


if __name__ == "__main__":
    main()
