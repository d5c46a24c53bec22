"""Waiting until nobody works in this process: what works ahead has filled its queues."""

import time

LOOK_S = 0.02
IDLE = 0.1
"""Of a look, the CPU time below which nobody works: a thread of tf.data's wakes up now and then."""


def settle(longest_s: float) -> None:
    """Wait until nobody works ahead any more."""
    until = time.monotonic() + longest_s
    while time.monotonic() < until:
        before = time.process_time()
        time.sleep(LOOK_S)
        if time.process_time() - before < IDLE * LOOK_S:
            return
