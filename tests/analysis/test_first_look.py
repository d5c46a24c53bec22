"""Where to look first: the largest accounts, in words that hold for their parts."""

import polars as pl

from timesink.analysis.first_look import first_look


def looked(*rows):
    names = ("device", "account", "layer", "phase", "place", "share")
    schema = {name: pl.Float64 if name == "share" else pl.String for name in names}
    return first_look(pl.DataFrame(rows, schema=schema, orient="row"))


def layer(name, phase, share, device="CPU:0"):
    return (device, "layer", name, phase, None, share)


def test_a_layer_says_which_phase_is_most_of_it():
    rows = [layer("conv", "forward", 0.1), layer("conv", "backward", 0.3)]
    assert looked(*rows) == ["conv takes 40% of the step, most of it backward"]


def test_the_largest_of_three_phases_is_not_most_of_it():
    shares = {"forward": 0.2, "backward": 0.3, "update": 0.25}
    assert looked(*(layer("fc", *item) for item in shares.items())) == [
        "fc takes 75% of the step, the longest part backward"
    ]


def test_phases_are_summed_over_devices():
    rows = [
        layer("conv", phase, share, device)
        for device, phase, share in (
            ("CPU:0", "forward", 0.3),
            ("CPU:0", "backward", 0.4),
            ("CPU:1", "forward", 0.3),
            ("CPU:1", "backward", 0.1),
        )
    ]
    # 0.6 of two steps forward, 0.5 backward, though the longest single part is a backward.
    assert looked(*rows) == ["conv takes 55% of the step, most of it forward"]


def test_the_largest_comes_first_and_what_is_small_not_at_all():
    rows = [
        ("CPU:0", "input_wait", None, None, None, 0.5),
        ("CPU:0", "python", None, None, "slow.py:3", 0.1),
        ("CPU:0", "runtime", None, None, None, 0.01),
        layer("conv", "forward", 0.39),
    ]
    found = looked(*rows)
    assert [each.split(" takes ")[0] for each in found] == ["input_wait", "conv", "python"]
    assert found[2].endswith("slow.py:3")
