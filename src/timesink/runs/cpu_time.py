"""CPU time of a run's training processes beside what their cores had: it proves machine.cores."""

from typing import Any

from timesink.runs.record import RunRecord

TICK_S = 0.01
"""What a kernel that counts CPU time by its clock's ticks may be wrong by, on each core."""


def cpu_facts(run: RunRecord) -> dict[str, Any] | None:
    """Give what summary.json says, over all processes whose end was seen; None without one.

    Wall time is from the start of a process to its end, without what was measured after it.
    """
    seen = [
        (process.cores, float(process.ended["cpu_s"]), process.gone_ns / 1e9)
        for process in run.processes.values()
        if process.ended and process.cores and "cpu_s" in process.ended
    ]
    if not seen:
        return None
    cores = max(cores for cores, _, _ in seen)
    cpu_s, wall_s = sum(cpu_s for _, cpu_s, _ in seen), sum(wall_s for _, _, wall_s in seen)
    # Resumed elsewhere, a run that asks for no number may have got another one.
    there_s = sum(cores * wall_s for cores, _, wall_s in seen)
    within = all(cpu_s <= cores * (wall_s + TICK_S) for cores, cpu_s, wall_s in seen)
    return {
        "cores": cores,
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "share": cpu_s / there_s if there_s else None,
        "within": within,
    }
