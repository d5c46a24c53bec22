import os
import signal
from functools import partial

import pytest

from timesink.datasets._workers import map_unordered
from timesink.errors import RunError


@pytest.mark.parametrize("workers", [1, 2])
def test_every_task_gives_its_result_once(workers):
    assert sorted(map_unordered(abs, range(-20, 0), workers=workers)) == list(range(1, 21))


def test_ctrl_c_is_for_the_parent_alone():
    blocked = partial(signal.pthread_sigmask, signal.SIG_BLOCK)

    for signals in map_unordered(blocked, [(), ()], workers=2):
        assert signal.SIGINT in signals
    assert signal.SIGINT not in blocked(())


def test_a_worker_that_dies_is_an_error_in_one_line():
    with pytest.raises(RunError, match="a worker process died"):
        list(map_unordered(os._exit, [1], workers=2))


def test_an_error_of_the_function_is_raised_here():
    with pytest.raises(FileNotFoundError):
        list(map_unordered(os.stat, ["/nowhere/at/all"], workers=2))
