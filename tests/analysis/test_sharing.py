"""From two rates alone to the rate of both, and from some numbers of cores to others."""

import pytest

from timesink.analysis.sharing import (
    CONTENTION,
    Alone,
    Scaling,
    cores_to_feed,
    scaling,
    together,
)


def test_on_a_device_of_its_own_the_slower_side_decides():
    assert together(Alone(400, 8), Alone(100, 0), 8) == pytest.approx(100)
    assert together(Alone(100, 8), Alone(400, 0), 8) == pytest.approx(100)


def test_where_both_fill_the_cores_each_takes_the_other_s_time():
    assert CONTENTION > 1
    both_s = 1 / together(Alone(400, 2), Alone(100, 2), 2)
    assert both_s == pytest.approx(1 / 100 + CONTENTION / 400)
    assert together(Alone(100, 2), Alone(400, 2), 2) == pytest.approx(
        together(Alone(400, 2), Alone(100, 2), 2)
    )


def test_what_the_longer_side_leaves_idle_the_shorter_has_for_nothing():
    idle_half = 1 / together(Alone(400, 8), Alone(100, 4), 8)
    assert idle_half == pytest.approx(1 / 100 + CONTENTION / 400 / 2)
    assert together(Alone(400, 3), Alone(100, 5), 8) == pytest.approx(100)


def test_a_device_that_takes_a_little_of_the_cores_costs_little():
    times_s = [1 / together(Alone(100, 8), Alone(120, core), 8) for core in (0, 0.5, 1, 8)]
    assert times_s[0] == pytest.approx(1 / 100)
    assert times_s[1] == pytest.approx(1 / 100 + CONTENTION / 120 / 16)
    assert times_s[2] == pytest.approx(1 / 100 + CONTENTION / 120 / 8)
    assert times_s[3] == pytest.approx(1 / 100 + CONTENTION / 120)


def test_a_side_that_scales_as_said_is_found_again():
    exact = Scaling(0.002, 0.012)
    found = scaling({cores: 1 / exact.at(cores) for cores in (1, 2, 6)})
    assert found.fixed_s == pytest.approx(exact.fixed_s)
    assert found.per_core_s == pytest.approx(exact.per_core_s)


def test_one_number_of_cores_says_nothing_of_a_fixed_part():
    assert scaling({4: 100}) == Scaling(0.0, pytest.approx(0.04))
    assert scaling({4: 100}, of_cores=False) == Scaling(pytest.approx(0.01), 0.0)


def test_no_part_is_negative():
    quicker_than_cores = scaling({1: 10, 2: 30})
    assert quicker_than_cores.fixed_s == 0
    assert quicker_than_cores.per_core_s > 0
    slower_with_cores = scaling({1: 10, 2: 8})
    assert slower_with_cores.per_core_s == 0
    assert 1 / 10 < slower_with_cores.fixed_s < 1 / 8


@pytest.mark.parametrize(("network_s", "cores"), [(0.0041, 3), (0.004, 3), (0.0021, 6), (0.5, 1)])
def test_the_fewest_cores_that_feed_a_device(network_s, cores):
    made, taken = Scaling(0.0, 0.012), Scaling(network_s, 0.0)
    assert cores_to_feed(made, taken) == cores


def test_what_scales_alike_is_never_overtaken():
    assert cores_to_feed(Scaling(0.0, 0.012), Scaling(0.0, 0.010)) is None
    assert cores_to_feed(Scaling(0.005, 0.012), Scaling(0.004, 0.0)) is None
    # The network gains less from cores than the input.
    assert cores_to_feed(Scaling(0.0, 0.012), Scaling(0.001, 0.008)) == 4
