"""What a grid of cells says: the sentences follow from the numbers, and from nothing else."""

import math

import pytest

from timesink.analysis.augmentation import layers_fed, sentences
from timesink.analysis.cells import Cell, Setting, family_of, prediction, row_of
from timesink.analysis.findings import findings

ALL = (2.0, 2.0, 2.0)
SMALL, LARGE = Setting("small", 64, 224), Setting("large", 64, 224)


def cell(
    made, taken, *, layers=0, cores=2, setting=SMALL, both=None, shared=False, wobble=0.0, **other
):
    """A cell of rates that wobble by a share from round to round."""
    category = f"basic+randaugment({layers})" if layers else "basic"
    both = both if both is not None else min(made, taken)
    rates = [
        tuple(rate * part for part in (1 - wobble, 1, 1 + wobble)) for rate in (made, taken, both)
    ]
    busy = (cores, cores if shared else 0.0, cores)
    return Cell(setting, other.get("category", category), cores, *rates, busy, shared)


def said(cells, about):
    return [each.text for each in sentences(cells) if each.about == about]


def values(cells, about):
    return [each.value for each in sentences(cells) if each.about == about]


def test_a_category_is_a_family_and_its_layers():
    basic, none = family_of("basic")
    two, layers = family_of("basic+randaugment(2, 9)")
    assert (none, layers) == (0, 2)
    assert basic.others == two.others
    assert (basic.magnitudes, two.magnitudes) == ((), (9,))
    assert family_of("basic+randaugment(2, 15)")[0] != two
    assert family_of("basic+randaugment(2)+random_erasing")[0].others != two.others
    assert family_of("basic+randaugment(1)+randaugment(2)")[1] == 3
    weak_and_strong = family_of("basic+randaugment(1, 9)+randaugment(1, 30)")[0]
    assert weak_and_strong != family_of("basic+randaugment(2, 9)")[0]


def test_where_input_becomes_the_slower_side_is_between_what_was_measured():
    points = {0: cell(400, 100), 2: cell(200, 100, layers=2), 8: cell(50, 100, layers=8)}
    # A layer's load grows from 0.5 at two to 2 at eight: it is 1 a third of the way.
    assert layers_fed(points) == pytest.approx(4)
    text = said(points.values(), "layers")
    assert text == ["small at batch 64 becomes input-bound at N = 5 on 2 cores."]
    assert values(points.values(), "layers") == [pytest.approx(4)]


@pytest.mark.parametrize("fastest", [101, 104, 140])
def test_the_sentence_agrees_with_the_cells_at_every_crossing(fastest):
    points = {n: cell(fastest / (1 + 0.2 * n), 100, layers=n) for n in (0, 1, 2, 4, 8)}
    (text,) = said(points.values(), "layers")
    first = int(text.partition("N = ")[2].partition(" ")[0])
    for layers, each in points.items():
        assert each.input_bound == (layers >= first)


@pytest.mark.parametrize(("made", "layers"), [(700, "about 6"), (1000, "more than 8")])
def test_layers_beyond_the_measured_ones_are_extrapolated_but_not_far(made, layers):
    points = {n: cell(made / (1 + n), 100, layers=n) for n in (0, 1, 2)}
    assert layers_fed(points) == pytest.approx(made / 100 - 1)
    assert said(points.values(), "layers") == [
        "small at batch 64 stays compute-bound up to N = 2 on 2 cores, which could feed "
        f"{layers} layers."
    ]


def test_input_bound_without_a_layer_is_said_so():
    points = {n: cell(90 / (1 + n), 100, layers=n) for n in (0, 1)}
    assert said(points.values(), "layers") == [
        "small at batch 64 is input-bound with basic already on 2 cores."
    ]
    assert layers_fed(points) < 0


def test_layers_that_cost_nothing_have_no_limit():
    assert layers_fed({0: cell(200, 100), 1: cell(200, 100, layers=1)}) == math.inf


def test_noise_in_the_wrong_direction_moves_no_crossing_backwards():
    points = {
        0: cell(400, 100),
        1: cell(90, 100, layers=1),
        2: cell(110, 100, layers=2),
        4: cell(50, 100, layers=4),
    }
    assert 0 < layers_fed(points) < 1


def test_two_magnitudes_are_two_families():
    cells = [
        cell(400, 100),
        cell(50, 100, category="basic+randaugment(2, 9)"),
        cell(200, 100, category="basic+randaugment(2, 30)"),
    ]
    texts = said(cells, "layers")
    assert len(texts) == 2
    assert "N = 1 of magnitude 9 on 2 cores" in texts[0]
    assert "of magnitude 30 on 2 cores" in texts[1]


def test_cores_from_which_it_is_compute_bound():
    cells = [cell(60 * n, 200, cores=n) for n in (2, 4, 6)]
    assert said(cells, "cores") == [
        "With basic, small at batch 64 is compute-bound from about 4 cores on (interpolated "
        "between 2 and 4)."
    ]
    assert values(cells, "cores") == [4]


def test_cores_between_measured_ones_are_interpolated():
    far = [cell(60 * n, 200, cores=n) for n in (2, 16)]
    assert values(far, "cores") == [4]
    assert "from about 4 cores on (interpolated between 2 and 16)" in said(far, "cores")[0]
    near = [cell(60 * n, 200, cores=n) for n in (3, 4)]
    assert said(near, "cores") == [
        "With basic, small at batch 64 is compute-bound from 4 cores on."
    ]


def test_one_number_of_cores_says_what_has_to_be_assumed():
    assert said([cell(60, 100)], "cores") == [
        "With basic, small at batch 64 would be compute-bound from about 4 cores on, if the input "
        "is as many times as quick on them (only 2 measured)."
    ]
    assert said([cell(60, 100, shared=True)], "cores") == [
        "With basic, small at batch 64 is input-bound on 2 cores; on how many it would not be, one "
        "number of cores does not tell."
    ]


def test_a_network_that_gains_more_is_not_said_to_gain_as_much():
    cells = [cell(50, 100, cores=1, shared=True), cell(55, 200, cores=2, shared=True)]
    assert "the network gains more from each" in said(cells, "cores")[0]


def test_a_crossing_between_sides_that_are_alike_is_said_to_be_about_there():
    points = {n: cell(made, 100, layers=n) for n, made in ((0, 200), (2, 104), (4, 97), (8, 60))}
    assert said(points.values(), "layers") == [
        "small at batch 64 becomes input-bound at about N = 4 on 2 cores: at N = 2 and 4 the sides "
        "differ by less than 10 %."
    ]


def test_a_disturbed_cell_says_nothing_of_layers_or_cores():
    odd = cell(50, 100, layers=4, both=120)
    assert odd.disturbed
    whole = [cell(200, 100), cell(150, 100, layers=8)]
    assert said([*whole, odd], "layers") == said(whole, "layers")
    assert said([*whole, odd], "cores") == []


def test_families_with_other_stages_are_told_apart():
    cells = [
        cell(made, 100, category=f"basic{layers}{other}")
        for made, layers in ((400, ""), (50, "+randaugment(2)"))
        for other in ("", "+random_erasing")
    ]
    texts = said(cells, "layers")
    assert len(set(texts)) == 2
    assert [("random_erasing" in text) for text in texts] == [False, True]


def test_stages_as_a_list_are_a_category_by_another_name():
    listed = ("decode", "resize", "convert")
    own = Cell(SMALL, "mine", 2, (400.0,), (100.0,), (90.0,), ALL, False, listed)
    assert row_of(own)["layers"] == 0
    assert said([own, cell(400, 100)], "layers") == []


def test_what_costs_differ_by_no_more_than_rounds_do_is_said():
    cells = [cell(400, 100, both=90, wobble=0), cell(300, 100, layers=2, both=90)]
    assert said(cells, "slower")[0].endswith("synthetic images do, a difference within the noise.")


def test_cores_that_were_not_measured_are_extrapolated():
    cells = [cell(20 * n, 200, cores=n) for n in (2, 4)]
    assert said(cells, "cores") == [
        "With basic, small at batch 64 would be compute-bound from about 10 cores on (extrapolated "
        "from 2 and 4)."
    ]


def test_a_network_on_the_same_cores_is_never_caught_up_with():
    cells = [cell(20 * n, 30 * n, cores=n, shared=True) for n in (1, 2)]
    (text,) = said(cells, "cores")
    assert "would stay input-bound on any number of cores" in text
    assert "the network gains as much from each" in text


def test_more_cores_may_turn_it_round_on_shared_cores():
    cells = [cell(100, 90, cores=1, shared=True), cell(150, 190, cores=2, shared=True)]
    assert said(cells, "cores") == [
        "With basic, small at batch 64 is input-bound on 2, compute-bound on 1 cores."
    ]


def test_nothing_is_said_of_cores_where_the_input_always_keeps_up():
    assert said([cell(400, 100, cores=n) for n in (1, 2)], "cores") == []


def test_what_augmentation_costs_against_synthetic_images():
    cells = [cell(400, 100, both=97), cell(100, 100, layers=4, both=60), cell(9, 9, cores=1)]
    assert said(cells, "slower") == [
        "small at batch 64 on 2 cores: basic makes training 3 % slower than synthetic images do; "
        "basic+randaugment(4) makes training 40 % slower than synthetic images do."
    ]


def test_rates_of_a_round_belong_together():
    drifting = Cell(SMALL, "basic", 2, (50, 100, 200), (40, 80, 160), (30, 60, 120), ALL, False)
    assert drifting.slower.low == pytest.approx(0.25)
    assert drifting.slower.high == pytest.approx(0.25)


def test_the_prediction_stands_beside_the_measurement_with_its_error():
    row = row_of(cell(400, 100, both=125))
    assert row["predicted_images_per_s"] == pytest.approx(100)
    assert row["prediction_error"] == pytest.approx(-0.2)
    assert row["bound"] == "compute"
    assert not row["even"]
    assert row_of(cell(100, 105))["bound"] == "input"
    assert row_of(cell(100, 105))["even"]
    errors = [cell(400, 100, both=both) for both in (125, 100, 80)]
    assert prediction(errors) == {
        "cells": 3,
        "median_error": pytest.approx(0.2),
        "worst_error": pytest.approx(0.25),
    }


def grid(slower):
    """Two networks, two numbers of cores, none and four layers, each slowed as told."""
    return [
        cell(
            1e6,
            taken,
            layers=layers,
            cores=cores,
            setting=setting,
            both=taken * (1 - slower(setting, cores, layers)),
        )
        for setting, taken in ((SMALL, 400), (LARGE, 100))
        for cores in (1, 2)
        for layers in (0, 4)
    ]


def verdicts(cells):
    return [finding.verdict for finding in findings(cells)]


def test_the_study_s_findings_are_found_where_they_are():
    def slower(setting, cores, layers):
        return (0.2 if setting is SMALL else 0.1) + 0.1 / cores + 0.01 * layers

    assert verdicts(grid(slower)) == ["agrees"] * 3


def test_the_opposite_is_said_to_be_the_opposite():
    def slower(setting, cores, layers):
        return 0.5 - ((0.2 if setting is SMALL else 0.1) + 0.1 / cores + 0.01 * layers)

    assert verdicts(grid(slower)) == ["disagrees"] * 3
    assert all(
        "0 of 4 comparisons say so, 4 the opposite" in f.text for f in findings(grid(slower))
    )


def test_networks_as_quick_as_each_other_are_no_small_and_no_large_one():
    cells = [
        cell(1e6, taken, setting=setting, both=taken * (1 - slower))
        for setting, taken, slower in ((SMALL, 100.1, 0.3), (LARGE, 100.0, 0.1))
    ]
    assert verdicts(cells)[0] == "not measured"


def test_what_is_the_same_is_undecided():
    assert verdicts(grid(lambda *_: 0.2)) == ["undecided"] * 3


def test_rounds_that_overlap_decide_nothing():
    less, more = (60, 80, 90), (50, 70, 85)
    cells = [
        Cell(SMALL, "basic", 2, (500.0,) * 3, (100.0,) * 3, less, ALL, False),
        Cell(SMALL, "basic+randaugment(2)", 2, (500.0,) * 3, (100.0,) * 3, more, ALL, False),
    ]
    (layers,) = [each for each in findings(cells) if each.claim == "the more the layers"]
    assert (layers.worse, layers.better, layers.noise, layers.verdict) == (0, 0, 1, "undecided")


def test_what_was_not_varied_was_not_measured():
    assert verdicts([cell(400, 100)]) == ["not measured"] * 3


def test_synthetic_images_are_what_others_are_compared_with_and_nothing_else():
    cells = grid(lambda setting, cores, layers: 0.1 + 0.01 * layers)
    synthetic = [cell(10**6, 400, cores=cores, both=390, category="synthetic") for cores in (1, 2)]
    assert sentences([*synthetic, *cells]) == sentences(cells)
    assert findings([*synthetic, *cells]) == findings(cells)
    assert prediction([*synthetic, *cells]) == prediction(cells)
    assert row_of(synthetic[0])["layers"] is None


def test_training_that_is_quicker_than_a_side_of_it_was_disturbed_and_counts_nowhere():
    odd = cell(400, 100, both=120, layers=8)
    assert odd.disturbed
    assert row_of(odd)["disturbed"]
    (text,) = said([cell(400, 100), odd], "noise")
    assert "with basic+randaugment(8): training was 20 % quicker than the computing alone" in text
    assert said([cell(400, 100), odd], "slower") == said([cell(400, 100)], "slower")
    assert findings([cell(400, 100), odd])[2].verdict == "not measured"


def test_training_as_quick_as_a_side_within_the_rounds_is_no_disturbance():
    assert not cell(400, 100, both=101, wobble=0.05).disturbed
    assert not cell(400, 100).disturbed
