"""Rates of several candidates in rounds that alternate: medians, spreads, ratios within a round.

A B C, B C A, C A B, …: what else the machine does falls on all of them.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import psutil

Round = Callable[[], float]
"""Takes one measurement; gives images/s."""
Rates = dict[str, list[float]]

QUIET_PERCENT = 30
LONGEST_WAIT_S = 3.0


def alternate(candidates: Mapping[str, Round], rounds: int) -> Rates:
    """Measure each candidate once a round, each round beginning with another one."""
    names = list(candidates)
    rates: Rates = {name: [] for name in names}
    for number in range(rounds):
        at = number % len(names)
        for name in names[at:] + names[:at]:
            wait_for_quiet()
            rates[name].append(candidates[name]())
    return rates


def pull(batches: Iterator[Any], count: int, batch_size: int) -> float:
    """Take batches as quickly as they come."""
    begin = time.perf_counter()
    for _ in range(count):
        next(batches)
    return count * batch_size / (time.perf_counter() - begin)


def wait_for_quiet() -> None:
    """Wait until the one before has filled its queues, and nobody computes."""
    end = time.monotonic() + LONGEST_WAIT_S
    while psutil.cpu_percent(interval=0.1) > QUIET_PERCENT and time.monotonic() < end:
        pass


def ratio(rates: Rates, name: str, over: str) -> tuple[float, str]:
    """Give the median ratio of two candidates within a round, and its 95 % interval."""
    ratios = [a / b for a, b in zip(rates[name], rates[over], strict=True)]
    drawn = np.random.default_rng(0).choice(ratios, (4000, len(ratios)))
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
    return statistics.median(ratios), f"[{low:.2f}, {high:.2f}]"


def best(rates: Rates, among: Iterator[str]) -> str:
    """Name the candidate with the highest median."""
    return max(among, key=lambda name: statistics.median(rates[name]))


def print_table(rates: Rates, over: str, title: str) -> None:
    """Print a row a candidate: its rate, its spread, and its ratio to one of them."""
    print(f"\n{title:<31} {'images/s':>8} {'lowest-highest':>15} {'ratio':>6}  95 % interval")
    for name in sorted(rates, key=lambda name: -statistics.median(rates[name])):
        found, interval = ratio(rates, name, over)
        spread = f"{min(rates[name]):,.0f}-{max(rates[name]):,.0f}"
        print(
            f"{name:<31} {statistics.median(rates[name]):>8,.0f} {spread:>15} {found:>6.3f}"
            f"  {interval}",
            flush=True,
        )
