"""What tracing costs: traced against untraced steps, in stretches that alternate within one run.

1. In the window: `--windows` traced stretches, each with an untraced one before and after it.
2. Over a whole run of 500 steps with the default window: by the run's own account of itself, and
   as whole runs without and with it, one after the other.
3. Every step traced, as the older program did: reported, not bounded.

    python benchmarks/own_cost.py [--network NAME …] [--windows 8] [--steps 10] [--whole 500]
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from _training import IMAGE_SIZE, images, train

MOST_IN_WINDOW = 1.05
MOST_IN_RUN = 1.02
NETWORKS = ("mobilenetv2", "resnet50", "alexnet")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--network", action="append", choices=IMAGE_SIZE)
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--whole", type=int, default=500, help="steps of a whole run; 0 is none")
    parser.add_argument("--pairs", type=int, default=2, help="whole runs without and with")
    asked = parser.parse_args()
    print("seed 001: profiled steps took 235-245 % longer than others (a GPU; this is a CPU)")
    missed = 0
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        dataset = images(directory)
        print(
            f"\n{'traced steps':<14} {'untraced ms':>12} {'slowdown':>9} {'interval':>17}  reached"
        )
        for network in asked.network or NETWORKS:
            summary = train(
                directory,
                dataset,
                network,
                training__iterations=10 + (2 * asked.windows + 1) * asked.steps,
                profile__start=10 + asked.steps,
                profile__windows=asked.windows,
                profile__steps=asked.steps,
            )
            missed += not _window(network, summary)
        if asked.whole:
            missed += not _whole(directory, dataset, asked.whole, asked.pairs)
    print("\nto reach: in the window ≤ 5 %, over the whole run ≤ 2 %")
    sys.exit(missed > 0)


def _window(network: str, summary: dict) -> bool:
    slowdown = summary["slowdown"]
    low, high = slowdown["window_interval"]
    reached = slowdown["window"] <= MOST_IN_WINDOW
    print(
        f"{network:<14} {summary['step_ms']['median']:>12.1f} {slowdown['window'] - 1:>+9.1%}"
        f" {f'[{low - 1:+.1%}, {high - 1:+.1%}]':>17}  {'yes' if reached else 'NO'}",
        flush=True,
    )
    return reached


def _whole(directory: Path, dataset: Path, steps: int, pairs: int) -> bool:
    print(f"\n{f'{steps} steps of mobilenetv2':<26} {'steps + profile s':>18} {'own account':>24}")
    took: dict[str, list[float]] = {"off": [], "window": [], "every": []}
    own: list[float] = []
    for pair in range(pairs):
        for mode in ("off", "window", *(("every",) if pair == 0 else ())):
            summary = train(
                directory,
                dataset,
                "mobilenetv2",
                training__iterations=steps,
                profile__mode=mode,
            )
            accounts = {row["account"]: row["s"] for row in summary["run_accounts"]}
            took[mode].append(accounts["steps"] + accounts.get("profile", 0.0))
            said = ""
            if mode == "window":
                low, high = summary["slowdown"]["run_interval"]
                own.append(summary["slowdown"]["run"])
                said = f"{own[-1] - 1:+.1%} [{low - 1:+.1%}, {high - 1:+.1%}]"
            print(f"  {mode:<24} {took[mode][-1]:>18.1f} {said:>24}", flush=True)
    without = statistics.median(took["off"])
    with_window = statistics.median(took["window"]) / without
    print(f"  whole runs: default window {with_window - 1:+.1%}", end="")
    print(f", every step traced {took['every'][0] / without - 1:+.1%}", end="")
    reached = statistics.median(own) <= MOST_IN_RUN
    print(f"; by the run's own account {statistics.median(own) - 1:+.1%}", end="")
    print(f"  {'yes' if reached else 'NO'}")
    return reached


if __name__ == "__main__":
    main()
