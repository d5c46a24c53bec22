"""Runs for reports, made without training: a traced run, its summary changed at will."""

import json
import os

from tests.traced_run import write_run

PROBES = {
    "input": {"images_per_s": 900.0, "wall_s": 1.0, "cpu_s": 1.9},
    "compute": {"images_per_s": 1000.0, "wall_s": 1.0, "cpu_s": 1.9},
}
HOSTILE = "</script><img src=x onerror=alert(1)>\"'`{{7*7}}${7*7}"


def traced(path, *, steps=60, window=range(20, 40), **options):
    """Write a run with a window of traced steps and its tables."""
    run = write_run(path, steps=steps, traced=window, pipeline=True, **options)
    run.write_tables()
    return run


def changed(run, **facts):
    """Change what summary.json says; it is newer than the journal, and so it is believed."""
    path = run.path / "summary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))
    later = run.log.stat().st_mtime_ns + 1_000_000_000
    os.utime(path, ns=(later, later))
    return run


def row(account, share, *, layer=None, phase=None, place=None, device="CPU:0", step_ms=100.0):
    """Give a row of summary.json's accounts."""
    ms = share * step_ms
    names = {"account": account, "layer": layer, "phase": phase, "place": place, "device": device}
    return {**names, "op_ms": ms, "charged_ms": ms, "share": share, "estimated": False}


def layers(count):
    """Give the rows of a network of so many layers, and a wait."""
    share = 0.9 / count / 3
    rows = [
        row("layer", share, layer=f"block_{number}/conv_{number}", phase=phase)
        for number in range(count)
        for phase in ("forward", "backward", "update")
    ]
    return [*rows, row("input_wait", 0.1)]
