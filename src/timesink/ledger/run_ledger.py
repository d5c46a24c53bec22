"""The accounts of one process of a run, closed: they sum to its wall time, to the nanosecond."""

from collections.abc import Sequence

ACCOUNTS = (
    "startup",
    "tracing",
    "steps",
    "epoch_gap",
    "validation",
    "checkpoint",
    "profile",
    "probe",
    "teardown",
    "unattributed",
)


def close_run(
    transitions: Sequence[tuple[int, str]],
    *,
    end_ns: int,
    last_evidence_ns: int,
    ended_well: bool,
) -> dict[str, int]:
    """Charge a process's wall time, from 0 to its end, to accounts.

    `transitions` are (time, account charged from then on). A process starts in `startup`. One that
    did not end by itself leaves no evidence of what it did after its last sign of life: that time
    is `unattributed`.
    """
    charged = dict.fromkeys(ACCOUNTS, 0)
    known_until_ns = end_ns if ended_well else min(max(last_evidence_ns, 0), end_ns)
    at_ns, account = 0, "startup"
    for next_ns, next_account in sorted(transitions, key=lambda transition: transition[0]):
        next_ns = min(max(next_ns, at_ns), known_until_ns)
        charged[account] += next_ns - at_ns
        at_ns, account = next_ns, next_account
    charged[account] += known_until_ns - at_ns
    charged["unattributed"] += end_ns - known_until_ns
    return charged
