"""Two sides compared, as one value: the rows, the verdict in a sentence, what to be wary of."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from timesink.analysis.compare import (
    SIGNIFICANCE,
    Difference,
    compare_charged,
    compare_steps,
)
from timesink.cli._measured import Side, choose_steps, differing, measured, totals
from timesink.errors import UsageError

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Comparison:
    """What `compare` has to say."""

    before: Side
    after: Side
    steps_counted: tuple[int, int]
    counted: str
    """Which steps these are."""
    step: Difference
    data: Difference | None
    """The wait for data, as steps.csv has it; None where it was not measured."""
    accounts: list[Difference]
    """By account alone; empty without step ledgers."""
    rows: list[Difference]
    """By account, layer, phase, place and device."""
    differs: list[dict[str, Any]]
    notes: list[str]


def compare_sides(before: Side, after: Side) -> Comparison:
    """Compare the runs at two places."""
    sides = (before, after)
    counted, chosen = choose_steps(sides)
    first, second = (measured(*each, "step_ms") for each in zip(sides, chosen, strict=True))
    waits = [measured(*each, "data_ms") for each in zip(sides, chosen, strict=True)]
    timed = all(np.isfinite(run.step_ms).all() for side in waits for run in side)
    both = before.has_ledger and after.has_ledger
    traced = [
        sum(int(steps["traced"].sum()) for steps in side) / sum(steps.height for steps in side)
        for side in chosen
    ]
    notes = []
    if not both:
        without = " and ".join(str(side.path) for side in sides if not side.has_ledger)
        notes.append(
            f"no ledger of steps in {without} (was profile.mode off?): "
            "steps are compared, their accounts are not"
        )
    if traced[0] != traced[1]:
        notes.append(
            f"{traced[0]:.0%} of the steps before and {traced[1]:.0%} after were traced, "
            "which makes them slower: compare runs with the same [profile]"
        )
    if len(before.runs) == len(after.runs) == 1:
        notes.append(
            "one run each: what differs from run to run by chance counts as change; "
            "repetitions tell"
        )
    return Comparison(
        before=before,
        after=after,
        steps_counted=(
            sum(steps.height for steps in chosen[0]),
            sum(steps.height for steps in chosen[1]),
        ),
        counted=counted,
        step=compare_steps(first, second),
        data=compare_steps(*waits) if timed else None,
        accounts=compare_charged(totals(first), totals(second)) if both else [],
        rows=compare_charged(first, second) if both else [],
        differs=differing(before, after),
        notes=notes,
    )


def verdict(row: Difference) -> str:
    """Say in a word or few what became of a row."""
    if row.reason is not None:
        return row.reason
    if not row.changed:
        return "no change beyond noise"
    return "slower" if row.difference_ms > 0 else "faster"


def sentence(name: str, row: Difference) -> str:
    """Say what became of a row."""
    return f"{figures(name, row)}: {verdict(row)}"


def figures(name: str, row: Difference) -> str:
    """Give a row's times, and its difference with the interval in percent of before."""
    text = f"{name} {in_ms(row.before_ms, row.after_ms)} ms"
    if row.before_ms > 0:
        text += f", {100 * row.difference_ms / row.before_ms:+.1f} %"
        if row.low_ms is not None and row.high_ms is not None:
            low, high = (100 * bound / row.before_ms for bound in (row.low_ms, row.high_ms))
            text += f" [{low:+.1f}, {high:+.1f}]"
    return text


def in_ms(*times_ms: float) -> str:
    """Write times with an arrow between them, to three figures of the largest."""
    largest = max(map(abs, times_ms))
    places = 1 if largest >= 10 else 2 if largest >= 1 else 3
    return " → ".join(f"{each:,.{places}f}" for each in times_ms)


def judged_row(comparison: Comparison, account: str | None) -> Difference:
    """Find what --fail-over judges; a gate that cannot see must not look open."""
    row = comparison.step
    if account not in (None, "step"):
        if not comparison.accounts:
            raise UsageError(f"--account {account}: {comparison.notes[0]}")
        rows = {each.account: each for each in comparison.accounts}
        if account not in rows:
            raise UsageError(f"--account {account}: allowed: step, {', '.join(sorted(rows))}")
        row = rows[account]
    if row.reason is not None:
        raise UsageError(f"--fail-over cannot judge {row.account}: {row.reason}")
    return row


def exceeds(row: Difference, limit: float) -> bool:
    """Tell whether a row became slower by more than the limit, and beyond noise."""
    # One row was named beforehand: its p is judged alone, not among all the rows.
    beyond_noise = row.p is not None and row.p <= SIGNIFICANCE
    return beyond_noise and row.difference_ms > limit * row.before_ms


def as_object(
    comparison: Comparison, judged: Difference | None, limit: float | None
) -> dict[str, Any]:
    """Give the comparison as plain values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "before": _side(comparison.before, comparison.steps_counted[0]),
        "after": _side(comparison.after, comparison.steps_counted[1]),
        "counted": comparison.counted,
        "verdict": {
            "change": verdict(comparison.step),
            "sentence": sentence("step", comparison.step),
        },
        "step_ms": _figures(comparison.step),
        "data_ms": _figures(comparison.data) if comparison.data else None,
        "accounts": [{"account": row.account, **_figures(row)} for row in comparison.accounts],
        "rows": [asdict(row) for row in comparison.rows],
        "differs": comparison.differs,
        "notes": comparison.notes,
        "fail_over": None
        if judged is None or limit is None
        else {"account": judged.account, "limit": limit, "exceeded": exceeds(judged, limit)},
    }


def _side(side: Side, steps_counted: int) -> dict[str, Any]:
    return {
        "path": str(side.path),
        "runs": len(side.runs),
        "steps": steps_counted,
        "traced_steps": side.traced_steps,
    }


def _figures(row: Difference) -> dict[str, Any]:
    keys: Sequence[str] = ("account", "layer", "phase", "place", "device")
    return {name: value for name, value in asdict(row).items() if name not in keys}
