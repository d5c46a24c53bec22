"""Traces with random damage: read as what they still say, or refused by name; never a crash."""

import random
import time
from pathlib import Path

import pytest
from tests.traces.planes import Trace

from timesink.errors import TraceError
from timesink.ledger.by_name import opmap_from_names
from timesink.ledger.memory import memory_by_step
from timesink.ledger.step_ledger import close_steps
from timesink.ledger.steps import spans_from_trace
from timesink.traces.xplane import read_xplane

SECONDS = 120


def whole_trace() -> bytes:
    trace = Trace()
    host = trace.host()
    python, compute = host.line("python"), host.line("tf_Compute/1")
    for step in range(8):
        at = step * 1000
        python.event("train", at, at + 1000, step_num=step, _r=1, host_ns=at)
        python.event("step", at + 100, at + 900, tf_function_call="notTraced-nonXla")
        for op in range(12):
            begin = at + 110 + 50 * op
            compute.event(f"model/layer{op}/conv:Conv2D", begin, begin + 45)
            compute.event(f"gradient_tape/model/layer{op}/conv:Mul", at + 720, at + 750)
    return trace.serialize()


@pytest.mark.soak
def test_damage_anywhere_gives_books_that_close_or_a_named_error(tmp_path: Path) -> None:
    whole = whole_trace()
    chance = random.Random(1)
    file = tmp_path / "damaged.xplane.pb"
    refused = closed = 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 1, 2, 8, 64))):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        if chance.random() < 0.3:
            del damaged[chance.randrange(len(damaged)) :]
        file.write_bytes(damaged)
        try:
            events = read_xplane(file)
        except TraceError:
            refused += 1
            continue
        spans = spans_from_trace(events)
        books = close_steps(events, spans, opmap_from_names(events))
        memory_by_step(events, spans)
        walls = dict.fromkeys(spans.iteration.tolist(), 0)
        for iteration, begin, finish in zip(
            spans.iteration.tolist(), spans.begin_ns.tolist(), spans.end_ns.tolist(), strict=True
        ):
            walls[iteration] += finish - begin
        for (iteration, _), rows in books.group_by("iteration", "device"):
            assert rows["charged_ns"].sum() == walls[iteration]
            assert rows["charged_ns"].min() >= 0
        closed += 1
    assert refused and closed
