"""Seed 002's figures from cells: throughput by category, the input alone, and by cores."""

from dataclasses import replace

from timesink.analysis.cells import Cell, Setting
from timesink.studies.figures.augmentation import figures

SMALL, LARGE = Setting("mobilenetv2", 64, 224), Setting("resnet50", 64, 224)


def cell(setting, category, cores, made, taken, both):
    rates = [tuple(rate * part for part in (0.99, 1, 1.01)) for rate in (made, taken, both)]
    return Cell(setting, category, cores, *rates, (cores, 0.0, cores), False)


def grid():
    """The small network waits for the input, more so on two cores and with layers."""
    cells = []
    for setting, taken in ((SMALL, 400), (LARGE, 100)):
        for cores in (2, 8):
            for category, cost in (
                ("basic", 1),
                *((f"basic+randaugment({n})", 2 * n) for n in (2, 4)),
            ):
                made = 100 * cores / cost
                cells.append(cell(setting, category, cores, made, taken, min(made, taken)))
            cells.append(cell(setting, "synthetic", cores, 1e6, taken, taken))
    return cells


def by_number(cells):
    return {each.number: each for each in figures(cells)}


def test_the_seed_s_four_figures_come_out():
    found = by_number(grid())
    assert list(found) == ["Fig. 1", "Fig. 2", "Fig. 3", "Fig. 4"]
    assert {each.agreement for each in found.values()} == {"agrees"}
    assert "basic makes 800 images/s, basic+randaugment(4) 100: 88 % fewer" in found["Fig. 2"].here
    assert "training is slowed in 2 of 2 cells; elsewhere in 0 of 3." in found["Fig. 1"].here
    assert "basic costs 50 % on 2 and 0 % on 8" in found["Fig. 3"].here
    assert "basic+randaugment(2) costs 50 % on 2 and 0 % on 8" in found["Fig. 4"].here


def test_by_category_has_every_network_and_the_input_on_the_most_cores():
    found = by_number(grid())["Fig. 1"]
    rates = {(row["category"], row["series"]): row["images_per_s"] for row in found.rows}
    assert rates["basic", "training mobilenetv2"] == 400
    assert rates["basic+randaugment(2)", "training resnet50"] == 100
    assert rates["basic+randaugment(2)", "input alone"] == 200
    assert ("synthetic", "input alone") not in rates


def test_one_number_of_cores_says_nothing_of_cores():
    found = by_number([each for each in grid() if each.cores == 8])
    assert found["Fig. 3"].agreement == "not measured"
    assert found["Fig. 3"].here == "Only one number of cores was measured."


def test_another_network_has_a_figure_by_cores_too():
    own = [
        replace(each, setting=Setting("my:net", 64, 224))
        for each in grid()
        if each.setting == LARGE
    ]
    found = figures([*grid(), *own])
    assert [each.number for each in found][-1] == "like Fig. 3"
    assert found[-1].name == "cores-my-net"


def test_settings_of_one_network_are_told_apart():
    larger = [replace(each, setting=replace(each.setting, batch_size=128)) for each in grid()]
    found = by_number([*grid(), *larger])
    series = {row["series"] for row in found["Fig. 1"].rows}
    assert {"training resnet50, batch 64, 224 px", "training resnet50, batch 128, 224 px"} < series
    assert {row["cores"] for row in found["Fig. 4"].rows} == {
        f"{cores}, batch {size}, 224 px" for cores in (2, 8) for size in (64, 128)
    }


def test_a_disturbed_cell_is_no_comparison():
    cells = grid()
    place = next(
        n for n, c in enumerate(cells) if (c.setting, c.category, c.cores) == (SMALL, "basic", 2)
    )
    cells[place] = cell(SMALL, "basic", 2, 200, 100, 190)
    assert cells[place].disturbed
    assert "basic costs" not in by_number(cells)["Fig. 3"].here


def test_nothing_measured_is_four_figures_without_rows():
    found = figures([])
    assert [each.agreement for each in found] == ["not measured"] * 4


def test_training_that_falls_with_no_category_input_bound_does_not_agree():
    cells = [
        cell(SMALL, category, 2, 800, 100, both)
        for category, both in (("basic", 80), ("basic+randaugment(2)", 60))
    ]
    found = by_number([replace(each, shared=True) for each in cells])["Fig. 1"]
    assert found.agreement == "undecided"
    assert "In no category is the input alone slower than the network; training is slowed in 2" in (
        found.here
    )
    assert "because both share the cores" in found.here


def test_training_that_does_not_fall_where_the_input_is_slower_differs():
    cells = [cell(SMALL, "basic", 2, 50, 100, 99), cell(LARGE, "basic", 2, 50, 300, 299)]
    assert by_number(cells)["Fig. 1"].agreement != "agrees"


def test_layers_are_compared_by_their_number_whatever_their_order():
    cells = [
        cell(SMALL, category, 2, made, 400, 90)
        for category, made in (("basic+randaugment(8)", 100), ("basic", 400), ("basic+mixup", 300))
    ]
    found = by_number(cells)["Fig. 2"]
    assert found.here == "basic makes 400 images/s, basic+randaugment(8) 100: 75 % fewer."
    assert found.agreement == "agrees"


def test_inputs_of_other_sizes_are_not_mixed():
    large = [replace(each, setting=replace(each.setting, image_size=448)) for each in grid()]
    slow = [
        replace(
            each,
            input_rates=tuple(rate / 4 for rate in each.input_rates),
            both_rates=tuple(rate / 4 for rate in each.both_rates),
        )
        for each in large
    ]
    found = by_number([*grid(), *slow])["Fig. 2"]
    assert {row["images_per_s"] for row in found.rows} == {800, 400 / 2, 100, 200, 50, 25}
    assert "basic makes 200 images/s, batch 64, 448 px" in found.here


def test_synthetic_images_are_drawn_as_what_the_others_are_compared_with():
    cells = grid()
    odd = [replace(c, both_rates=(1.0,) * 3) if c.category == "synthetic" else c for c in cells]
    rows = by_number(odd)["Fig. 3"].rows
    drawn = [row["images_per_s"] for row in rows if row["category"] == "synthetic"]
    assert drawn == [400, 400]


def test_one_category_alone_is_said_to_be_too_few():
    found = by_number([cell(SMALL, "basic", 2, 800, 100, 80)])["Fig. 2"]
    assert found.here == "Not two numbers of layers were measured."
    assert found.rows
