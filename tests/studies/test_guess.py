"""How long measurements will take: what a guess goes by, and how what ended puts it right."""

import itertools

import pytest

from tests.runs.conftest import make_images
from tests.studies.measurements import planned_by
from timesink import machine
from timesink.studies.guess import (
    CORES,
    COSTS,
    GFLOPS,
    SIDE,
    Guess,
    guesses,
    left_s,
    speed_of_a_core,
)

RUN = f"""
[pipeline]
image_size = {SIDE}
[training]
network = "resnet50"
batch_size = 8
iterations = 10
validation = false
[profile]
mode = "off"
[machine]
cores = 1
"""


def guess(place, text: str = RUN, gflops: float | None = GFLOPS) -> Guess:
    (planned,) = planned_by(place, text)
    return guesses([planned], gflops)[planned.number]


def of_a_step(place, text: str = RUN, gflops: float | None = GFLOPS) -> float:
    more = text.replace("iterations = 10", "iterations = 110")
    return (guess(place, more, gflops).seconds - guess(place, text, gflops).seconds) / 100


def test_a_step_takes_its_images_and_its_update_on_the_cores_that_it_is_given(tmp_path):
    cost = COSTS["resnet50"]
    made = of_a_step(tmp_path)
    assert made == pytest.approx(CORES * (8 * cost.image_s + cost.step_s), rel=0.1)
    assert made > CORES * (8 * cost.image_s + cost.step_s)  # the input's work too


def test_a_step_is_longer_with_more_pixels_and_on_slower_cores(tmp_path):
    small = RUN.replace(f"image_size = {SIDE}", f"image_size = {SIDE // 2}")
    assert of_a_step(tmp_path, small) < of_a_step(tmp_path) / 2
    assert of_a_step(tmp_path, gflops=GFLOPS / 4) > 3.5 * of_a_step(tmp_path)


@pytest.mark.parametrize(
    ("text", "gflops"), [(RUN, None), (RUN.replace("resnet50", "mine:build"), GFLOPS)]
)
def test_nothing_is_guessed_of_steps_on_a_gpu_or_of_another_network(tmp_path, text, gflops):
    made = guess(tmp_path, text, gflops)
    assert not made.steps
    assert made.seconds > 0
    assert of_a_step(tmp_path, text, gflops) == 0


def test_epochs_and_validations_are_counted_in_images(tmp_path):
    make_images(tmp_path / "images")  # 48 to train, 12 to validate
    path = f'[dataset]\npath = "{tmp_path / "images"}"\n'
    two_epochs = path + RUN.replace("iterations = 10", "epochs = 2")
    twelve_steps = path + RUN.replace("iterations = 10", "iterations = 12")
    assert guess(tmp_path, two_epochs) == guess(tmp_path, twelve_steps)
    once = guess(tmp_path, two_epochs.replace("validation = false", "")).seconds
    each = guess(tmp_path, two_epochs.replace("validation = false", "validate_every = 1")).seconds
    assert once - guess(tmp_path, two_epochs).seconds > 0
    assert each - once == pytest.approx(2 * (once - guess(tmp_path, two_epochs).seconds))


def test_a_verdict_takes_time_of_its_own(tmp_path):
    traced = RUN.replace('mode = "off"', 'mode = "window"')
    without = traced.replace('mode = "window"', 'mode = "window"\nverdict = false')
    assert guess(tmp_path, traced).seconds > guess(tmp_path, without).seconds + 10


def test_a_pipeline_takes_what_is_asked_and_once_more_for_each_of_its_prefixes(tmp_path):
    alone = '[measure]\nhow = "pipeline"\nseconds = 10.0\n'
    assert 10 < guess(tmp_path, alone).seconds < 30
    assert guess(tmp_path, alone + "stages = true\n").seconds > 60


def test_sides_take_their_seconds_or_their_slow_batches(tmp_path):
    sides = '[measure]\nhow = "sides"\nseconds = 2.0\nrounds = 4\n' + RUN
    quick = guess(tmp_path, sides.replace("resnet50", "mine:build")).seconds
    assert 4 * 3 * 2 < quick < 60
    assert guess(tmp_path, sides.replace("batch_size = 8", "batch_size = 64")).seconds > 2 * quick


FIRST = {
    1: Guess(10.0, "run a"),
    2: Guess(10.0, "run a"),
    3: Guess(100.0, "run b"),
    4: Guess(1.0, "pipeline"),
}


def test_before_anything_ended_what_is_left_is_the_guesses():
    assert left_s(FIRST, {}, [1, 3]) == 110


def test_what_ended_puts_right_its_own_kind_and_else_all():
    assert left_s(FIRST, {1: 30.0}, [2]) == 30
    assert left_s(FIRST, {1: 30.0}, [2, 3]) == 330
    assert left_s(FIRST, {1: 30.0, 3: 50.0}, [2]) == 30
    assert left_s(FIRST, {1: 30.0, 3: 80.0}, [4]) == 1


def test_nothing_left_takes_no_time():
    assert left_s(FIRST, {1: 30.0}, []) == 0


def test_the_speed_of_a_core_is_told_by_the_quickest_product(monkeypatch):
    monkeypatch.setattr(machine, "gpus", list)
    times = itertools.accumulate(itertools.chain([0.0], itertools.cycle([0.5, 0.1])))
    speed = speed_of_a_core(lambda: next(times))
    assert speed == pytest.approx(2 * 768**3 / 0.5 / 1e9 / machine.cores())


def test_where_a_gpu_works_the_cores_say_nothing(monkeypatch):
    monkeypatch.setattr(machine, "gpus", lambda: [{"name": "a gpu"}])
    assert speed_of_a_core() is None
