"""Three rates in, a verdict out: the bound, how much of a step it is, what would change it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timesink.analysis.verdict import InputWork, Rates, StepWork, judge

PIPELINED = InputWork(
    "pipelined",
    "auto",
    "auto",
    stages=[("read", 0.04), ("decode", 0.61), ("resize", 0.25), ("random_brightness", 0.1)],
    storable=["decode", "convert", "resize"],
)
TRACED = StepWork({"layer": 0.9, "runtime": 0.06, "input_wait": 0.04}, "conv1", 0.4)


def rates(made: float, taken: float, both: float, **known) -> Rates:
    """On a device of its own, the host's eight cores all at work for the input."""
    figures = {"waited": 0.0, "cores": 8, "input_cores": 8.0, "compute_cores": 0.1}
    return Rates(made, taken, both, **{**figures, "shares_cores": False, **known})


def sharing(made: float, taken: float, both: float, waited: float) -> Rates:
    """On two cores, each side alone keeping both of them busy."""
    return Rates(made, taken, both, waited, 2, 2.0, 2.0, shares_cores=True)


def test_the_slower_side_is_the_bound_and_its_share_is_what_lifting_it_would_save():
    found = judge(rates(410, 1290, 395, waited=0.68), PIPELINED, TRACED)
    assert found.bound == "input"
    assert found.share == pytest.approx(1 - 395 / 1290)
    assert found.sentence == (
        "Input-bound: the pipeline alone makes 410 images/s, the network alone could take 1,290; "
        "training ran at 395, so a step would be 69 % shorter without the input, 4 % without the "
        "computing."
    )
    assert found.notes == ()


def test_compute_bound_says_how_little_would_go_with_the_input():
    found = judge(rates(1730, 53, 52.1), PIPELINED, TRACED)
    assert found.bound == "compute"
    assert found.share == pytest.approx(1 - 52.1 / 1730)
    assert found.sentence == (
        "Compute-bound: the network alone takes 53.0 images/s, the pipeline alone could make "
        "1,730; training ran at 52.1, so a step would be 2 % shorter without the input, 97 % "
        "without the computing."
    )


def test_sides_that_differ_by_less_than_noise_are_balanced():
    found = judge(rates(400, 380, 360), PIPELINED, TRACED)
    assert found.bound == "balanced"
    assert found.share == pytest.approx(0.1)
    assert "5 % shorter without the input, 10 % without the computing" in found.sentence


def test_shared_cores_make_both_slower_than_the_slower_alone_and_that_is_said():
    found = judge(sharing(400, 1000, 285, waited=0.5), PIPELINED, TRACED)
    assert found.bound == "input"
    assert "72 % shorter without the input" in found.sentence
    assert found.sentence.endswith(
        "Input and compute share the 2 cores: 50 % of a step is waiting for images, "
        "22 % is lost by making them beside the computing."
    )


def test_shared_cores_without_contention_are_only_named():
    found = judge(sharing(1e6, 50, 50, waited=0.0), PIPELINED, TRACED)
    assert found.sentence.endswith("Input and compute share the 2 cores.")


def test_a_side_that_was_slower_alone_than_in_training_is_doubted():
    found = judge(rates(300, 350, 395), PIPELINED, TRACED)
    assert (found.bound, found.share) == ("balanced", 0.0)
    assert len(found.notes) == 2
    assert found.notes[0].startswith(
        "training ran at 395 images/s and the pipeline alone at 300: the machine was busier"
    )


def test_the_largest_stage_that_can_be_stored_is_named_with_what_goes_with_it():
    first = judge(rates(410, 1290, 395), PIPELINED, TRACED).first
    assert first == (
        "decode is 61 % of the pipeline's work: `timesink dataset convert --to materialized` "
        "does decode and resize (86 %) once instead of every epoch"
    )


def test_the_largest_stage_is_not_offered_for_storing_where_it_cannot_be_stored():
    images = replace(PIPELINED, stages=[("decode", 0.2), ("random_brightness", 0.7)])
    first = judge(rates(410, 1290, 395), images, TRACED).first
    assert first.startswith("random_brightness is 70 % of the pipeline's work")
    assert "convert" not in first


def test_stages_that_were_not_traced_are_not_guessed():
    first = judge(rates(410, 1290, 395), replace(PIPELINED, stages=[]), TRACED).first
    assert "decode" not in first
    assert "`timesink pipeline`" in first


@pytest.mark.parametrize(
    ("images", "said"),
    [
        (replace(PIPELINED, mode="by_batch"), 'pipeline.mode = "pipelined"'),
        (replace(PIPELINED, mode="whole_dataset"), 'pipeline.mode = "pipelined"'),
        (replace(PIPELINED, prefetch=0), 'pipeline.prefetch = "auto"'),
    ],
)
@pytest.mark.parametrize(("made", "taken"), [(400, 1000), (1000, 400)])
def test_taking_turns_is_what_changes_first_whichever_side_is_slower(images, said, made, taken):
    first = judge(rates(made, taken, 1 / (1 / made + 1 / taken)), images, TRACED).first
    assert first.startswith(said)
    assert first.endswith("up to 29 % shorter")


def test_taking_turns_costs_nothing_where_both_need_all_the_cores():
    images = replace(PIPELINED, mode="by_batch")
    assert judge(sharing(400, 1000, 285, waited=0.7), images, TRACED).first.startswith("decode")


def test_more_workers_are_advised_only_where_cores_are_idle():
    images = replace(PIPELINED, workers=1)
    idle = judge(rates(100, 1290, 98, input_cores=1.0), images, TRACED).first
    assert idle.startswith('pipeline.workers = "auto" instead of 1')
    assert "keep 1.0 of the 8 cores busy" in idle
    busy = judge(rates(100, 1290, 98, input_cores=8.0), images, TRACED).first
    assert busy.startswith("decode")


def test_compute_bound_names_the_layer_that_takes_most_and_the_headroom_of_the_input():
    first = judge(rates(500, 50, 50), PIPELINED, TRACED).first
    assert "the layers are 90 % of a step, conv1 most of all with 40 %" in first
    assert first.endswith("could feed a network 10.0 times as fast")


def test_headroom_of_the_input_is_not_claimed_on_shared_cores():
    assert "times as fast" not in judge(sharing(500, 50, 46, 0.0), PIPELINED, TRACED).first


def test_compute_bound_by_something_else_than_layers_names_that():
    step = StepWork({"layer": 0.3, "runtime": 0.6, "input_wait": 0.1}, "conv1", 0.2)
    assert judge(rates(500, 50, 50), PIPELINED, step).first.startswith("runtime is 60 % of a step")
    step = StepWork({"layer": 0.3, "python": 0.7}, "conv1", 0.2)
    assert judge(rates(500, 50, 50), PIPELINED, step).first.startswith("python is 70 % of a step")


def test_compute_bound_untraced_claims_no_layer():
    first = judge(rates(500, 50, 50), PIPELINED, StepWork()).first
    assert first.startswith("a faster device")


positive = st.floats(0.1, 1e7)


@given(positive, positive, positive, st.floats(0, 1), st.booleans())
def test_any_rates_give_whole_sentences_and_a_share(made, taken, both, waited, shares_cores):
    found = judge(
        Rates(made, taken, both, waited, 2, 1.5, 1.9, shares_cores=shares_cores), PIPELINED, TRACED
    )
    assert 0 <= found.share < 1
    assert found.sentence.endswith(".")
    assert not found.first.endswith(".")
    swapped = judge(
        Rates(taken, made, both, waited, 2, 1.5, 1.9, shares_cores=shares_cores), PIPELINED, TRACED
    )
    assert swapped.share == found.share
    opposite = {"input": "compute", "compute": "input", "balanced": "balanced"}
    assert swapped.bound == opposite[found.bound]
