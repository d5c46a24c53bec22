"""Stages: their text, a reason for what is refused, what is random, what can be stored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timesink.errors import ExperimentError
from timesink.pipelines.kinds import KINDS, METHODS, parse_stage
from timesink.pipelines.stages import (
    PRESETS,
    deterministic_prefix,
    for_validation,
    in_running_order,
    parse_stages,
    size_after,
    split_for_store,
    store_key,
    typical_epoch,
)


def texts(stages):
    return [str(stage) for stage in stages]


def ordered(low, high):
    bounds = st.floats(low, high, allow_subnormal=False)
    return st.tuples(bounds, bounds).map(sorted)


def written(name, numbers):
    return f"{name}({', '.join(map(repr, numbers))})"


FRACTIONS = st.integers(1, 255).map(lambda level: level / 255)
SIZED_RESIZE = st.tuples(st.integers(8, 4096), st.sampled_from(METHODS)).map(
    lambda both: f"resize({both[0]}, {both[1]})"
)
LAST_SIZE = st.one_of(
    st.sampled_from(["resize", "center_crop", "random_crop", "random_resized_crop"]),
    st.sampled_from(METHODS).map(lambda method: f"resize({method})"),
    st.tuples(ordered(0.001, 1), ordered(0.01, 100)).map(
        lambda bounds: written("random_resized_crop", [*bounds[0], *bounds[1]])
    ),
)
MOVES = st.one_of(LAST_SIZE, SIZED_RESIZE, st.just("random_flip"))
COLOURS = st.one_of(
    st.sampled_from(["random_brightness", "random_contrast", "clip", "normalise", "standardise"]),
    FRACTIONS.map(lambda delta: written("random_brightness", [delta])),
    ordered(0, 1e6).map(lambda bounds: written("random_contrast", bounds)),
    st.tuples(st.floats(-1e5, 1e5), st.floats(0.1, 1e5)).map(
        lambda pair: written("clip", [pair[0], pair[0] + pair[1]])
    ),
    st.tuples(*[st.floats(-1e6, 1e6)] * 3, *[st.floats(1e-6, 1e6)] * 3).map(
        lambda numbers: written("normalise", numbers)
    ),
)


@st.composite
def legal_lists(draw):
    """Any list that is allowed: moves before convert, moves and colours in any order behind it."""
    before = draw(st.lists(MOVES, max_size=3))
    after = draw(st.lists(st.one_of(MOVES, COLOURS), max_size=4))
    last = draw(LAST_SIZE)
    parts = [*before, "convert", *after]
    sized = [i for i, text in enumerate(parts) if KINDS[parse_stage(text).name].sizes]
    where = draw(st.integers(sized[-1] + 1 if sized else 0, len(parts)))
    return ["decode", *parts[:where], last, *parts[where:]]


@given(legal_lists())
def test_the_text_of_stages_gives_them_back(asked):
    stages = parse_stages(asked)
    assert len(stages) == len(asked)
    assert parse_stages(texts(stages)) == stages


@pytest.mark.parametrize(
    ("asked", "canonical"),
    [
        ("decode", "decode"),
        (" decode ( ) ", "decode"),
        ("resize", "resize(bilinear)"),
        ("resize(nearest)", "resize(nearest)"),
        ("resize(256)", "resize(256, bilinear)"),
        ("resize(area, 256)", "resize(256, area)"),
        ("clip", "clip(0, 1)"),
        ("clip(-0.5,1.50)", "clip(-0.5, 1.5)"),
        ("random_brightness", "random_brightness(32/255)"),
        ("random_brightness(16/255)", "random_brightness(16/255)"),
        ("random_contrast", "random_contrast(0.8, 1.2)"),
        ("random_resized_crop", "random_resized_crop(0.08, 1, 0.75, 4/3)"),
        ("normalise", "normalise(0.485, 0.456, 0.406, 0.229, 0.224, 0.225)"),
        ("randaugment", "randaugment(2, 9)"),
        ("randaugment(8)", "randaugment(8, 9)"),
        ("randaugment(1, 30)", "randaugment(1, 30)"),
        ("augmix(1)", "augmix(1, 3, 3)"),
        ("random_erasing(1)", "random_erasing(1, 0.02, 0.33, 0.3, 3.3)"),
        ("mixup", "mixup(0.2)"),
    ],
)
def test_a_stage_is_written_with_all_its_arguments(asked, canonical):
    assert str(parse_stage(asked)) == canonical
    assert parse_stage(canonical) == parse_stage(asked)


def test_the_default_is_what_seed_000_ran():
    names = [stage.name for stage in parse_stages("seed000")]
    assert names == ["decode", "convert", "resize", "random_brightness", "clip"]
    assert parse_stages("seed000")[3].arguments == (32 / 255,)


BASIC_END, LATE = ("convert", "normalise", "standardise"), ("random_erasing", "mixup")


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_stands_for_its_list(preset):
    assert parse_stages(preset) == parse_stages(PRESETS[preset])


@pytest.mark.parametrize(
    ("asked", "stands_for"),
    [
        (
            "basic+randaugment(2, 9)",
            ["decode", "random_resized_crop", "random_flip", "randaugment(2)", *BASIC_END],
        ),
        (
            " basic + autoaugment + random_erasing + mixup ",
            ["decode", "random_resized_crop", "random_flip", "autoaugment", *BASIC_END, *LATE],
        ),
        (  # a batch is mixed last, whatever is written
            "basic+cutmix+random_erasing",
            [*PRESETS["basic"], "random_erasing", "cutmix"],
        ),
        (  # behind what gives the size, before the levels are gone
            "seed000+randaugment(4)",
            ["decode", "resize", "randaugment(4)", "convert", "random_brightness", "clip"],
        ),
        ("plain+random_flip+augmix", ["decode", "resize", "random_flip", "augmix", "convert"]),
        ("plain+clip(-0.5, +0.5)", ["decode", "resize", "convert", "clip(-0.5, 0.5)"]),
    ],
)
def test_stages_can_be_added_to_a_preset(asked, stands_for):
    assert parse_stages(asked) == parse_stages(stands_for)


def test_reading_is_implied():
    assert parse_stages(["read", *PRESETS["plain"]]) == parse_stages("plain")


def test_each_stage_knows_whether_it_is_random():
    assert {name for name in KINDS if parse_stage(name).random} == {
        *(name for name in KINDS if name.startswith("random_")),
        *("randaugment", "autoaugment", "pba", "augmix", "mixup", "cutmix"),
    }


SIZED = ("decode", "convert", "resize")


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("sed000", "allowed: seed000, plain, basic, one of these with stages added to it"),
        ("sed000", "did you mean seed000?"),
        ("decode", "allowed: seed000"),
        (["decode", "resiz"], "did you mean resize?"),
        ([*SIZED, "normalize"], "did you mean normalise?"),
        (["decode", "centre_crop"], "did you mean center_crop?"),
        (["decode", "centre_crop(1)"], "did you mean center_crop?"),
        ([*SIZED, ""], "found ''"),
        ([*SIZED, "clip("], "found 'clip(', allowed: clip, or clip(…)"),
        ([*SIZED, "clip(0, 1) clip"], "found 'clip(0, 1) clip'"),
        ("basic+", "found ''"),
        ("+randaugment", "found '+randaugment'"),
        ("basics+randaugment", "did you mean basic?"),
        ("basic+randaugmnt(2)", "did you mean randaugment?"),
        ("basic+plain", "found 'plain', allowed: read, decode"),
        ([*SIZED, "randaugment"], "randaugment comes after convert: it works on levels"),
        (["decode", "randaugment", "resize", "convert"], "put one of resize, center_crop"),
        (
            "basic+mixup+cutmix",
            "cutmix comes after mixup, which mixes the images of a batch; leave",
        ),
        (["decode", "resize", "convert", "mixup", "clip"], "put mixup last"),
        ("basic+randaugment(0)", "allowed: whole numbers, 1 ≤ layers ≤ 16"),
        ("basic+randaugment(17)", "1 ≤ layers ≤ 16"),
        ("basic+randaugment(2.5)", "allowed: whole numbers"),
        ("basic+randaugment(2, 31)", "0 ≤ magnitude ≤ 30"),
        ("basic+randaugment(1, 2, 3)", "allowed: 1 to 2 (layers, magnitude) or none"),
        ("basic+pba(0)", "a whole number of epochs"),
        ("basic+augmix(3, 0)", "1 ≤ width ≤ 8"),
        ("basic+random_erasing(2)", "0 ≤ likelihood ≤ 1"),
        ("basic+mixup(0)", "0.01 ≤ alpha"),
    ],
)
def test_an_unknown_stage_is_refused(asked, reason):
    assert reason in refusal(parse_stages, asked)


@pytest.mark.parametrize(
    ("stage", "reason"),
    [
        ("clip(1)", "clip: found 1 argument(s), allowed: 2 (low, high) or none"),
        ("clip(1, 2, 3)", "clip: found 3 argument(s)"),
        ("clip(a, b)", "clip: low: found 'a', allowed: a number"),
        ("clip(0, )", "clip: high: found '', allowed: a number"),
        ("clip(0, nan)", "clip: high: found 'nan', allowed: a number"),
        ("clip(0, inf)", "clip: high: found 'inf', allowed: a number"),
        ("clip(0, 1e7)", "at most ±1000000"),
        ("clip(0, 1/0)", "clip: high: found '1/0'"),
        ("clip(low=0, high=1)", "clip: low: found 'low=0'"),
        ("clip(1, 0)", "clip: found 1, 0, allowed: low < high"),
        ("clip(1, 1)", "allowed: low < high"),
        ("random_brightness(0)", "random_brightness: found 0, allowed: 0 < delta ≤ 1"),
        ("random_brightness(32)", "allowed: 0 < delta ≤ 1"),
        ("random_contrast(1.2, 0.8)", "random_contrast: found 1.2, 0.8, allowed: 0 ≤ lower ≤ u"),
        ("random_contrast(-1, 1)", "allowed: 0 ≤ lower ≤ upper"),
        ("random_resized_crop(0.5)", "allowed: 4 (min area, max area, min ratio, max ratio)"),
        ("random_resized_crop(0, 1, 1, 1)", "allowed: 0 < min area ≤ max area ≤ 1"),
        ("random_resized_crop(0.5, 1.5, 1, 1)", "allowed: 0 < min area ≤ max area ≤ 1"),
        ("random_resized_crop(0.5, 0.4, 1, 1)", "allowed: 0 < min area ≤ max area ≤ 1"),
        ("random_resized_crop(0.1, 1, 0, 1)", "0 < min ratio ≤ max ratio"),
        ("random_resized_crop(0.1, 1, 2, 1)", "0 < min ratio ≤ max ratio"),
        ("normalise(0.5)", "normalise: found 1 argument(s), allowed: 6 (mean r, mean g, mean b"),
        ("normalise(0, 0, 0, 1, 0, 1)", "allowed: std ≥"),
        ("normalise(0, 0, 0, 1, -1, 1)", "allowed: std ≥"),
        ("standardise(1)", "standardise: found 1 argument(s), allowed: none"),
        ("random_flip(0.5)", "random_flip: found 1 argument(s), allowed: none"),
        ("random_crop(24)", "random_crop: found 1 argument(s), allowed: none"),
        ("resize(bilinaer)", "did you mean bilinear?"),
        ("resize(lanczos)", "resize: found 'lanczos', allowed: one of bilinear, nearest, bicubic"),
        ("resize(area, area)", "resize: found 'area, area'"),
        ("resize(64, 64)", "resize: found '64, 64'"),
        ("resize(7)", "resize: found the size 7, allowed: a whole number from 8 to 4096"),
        ("resize(5000)", "allowed: a whole number from 8 to 4096"),
        ("resize(64.5)", "found the size 64.5"),
    ],
)
def test_a_wrong_argument_is_refused(stage, reason):
    assert reason in refusal(parse_stages, [*SIZED, stage, "center_crop"])


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ([], "decode is missing: put it first"),
        (["read"], "decode is missing: put it first"),
        (
            ["random_crop", "decode", "convert"],
            "random_crop comes before decode: it takes an image but is given bytes; "
            "put decode before it",
        ),
        (
            ["convert", "decode", "resize"],
            "convert comes before decode: it takes uint8 but is given bytes; put decode before it",
        ),
        (
            ["clip"],
            "decode is missing: clip takes float but is given bytes; "
            "put decode and convert before it",
        ),
        (
            ["decode", "resize", "random_brightness", "convert"],
            "random_brightness comes before convert: it takes float but is given uint8; "
            "put convert before it",
        ),
        (
            ["decode", "resize", "normalise"],
            "convert is missing: normalise takes float but is given uint8; put convert before it",
        ),
        (
            ["decode", "decode", "convert", "resize"],
            "decode comes twice: it takes bytes but is given uint8; leave one out",
        ),
        (
            [*SIZED, "convert"],
            "convert comes twice: it takes uint8 but is given float; leave one out",
        ),
        (["decode", "read", "convert", "resize"], "read is not first"),
        (["read", "read", "decode", "convert", "resize"], "read is not first"),
        (["decode", "resize"], "convert is missing: the stages end in uint8 but the network takes"),
        (["decode", "convert"], "no stage gives all images one size"),
        (["decode", "convert", "random_flip"], "add one of resize, center_crop, random_crop"),
        (
            ["decode", "convert", "center_crop", "resize(256)"],
            "resize(256, bilinear) is the last stage that sets the size",
        ),
    ],
)
def test_a_wrong_order_is_refused_with_the_reason(asked, reason):
    assert reason in refusal(parse_stages, asked)


def refusal(function, *arguments):
    with pytest.raises(ExperimentError) as raised:
        function(*arguments)
    message = str(raised.value)
    assert message.startswith("pipeline.stages: ")
    assert "\n" not in message
    return message


def test_an_image_of_another_size_may_be_cropped_to_the_networks():
    stages = parse_stages(["decode", "convert", "resize(256)", "random_crop"])
    sizes = [size_after(stages[:length], 200) for length in range(5)]
    assert sizes == [None, None, None, 256, 200]


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ("seed000", ["decode", "convert", "resize(bilinear)", "clip(0, 1)"]),
        (
            "basic",
            ["decode", "resize(bilinear)", "convert", str(parse_stage("normalise")), "standardise"],
        ),
        (
            ["decode", "convert", "resize(256)", "random_crop", "random_contrast"],
            ["decode", "convert", "resize(256, bilinear)", "center_crop"],
        ),
    ],
)
def test_validation_draws_nothing_and_keeps_the_size(asked, kept):
    assert texts(for_validation(parse_stages(asked))) == kept


@given(legal_lists())
def test_what_validation_is_fed_is_a_legal_list(asked):
    kept = for_validation(parse_stages(asked))
    assert not any(stage.random for stage in kept)
    assert parse_stages(texts(kept)) == kept


def test_the_deterministic_prefix_ends_before_the_first_random_stage():
    assert deterministic_prefix(parse_stages("seed000")) == parse_stages("plain")
    assert deterministic_prefix(parse_stages("plain")) == parse_stages("plain")
    assert texts(deterministic_prefix(parse_stages("basic"))) == ["decode"]


@pytest.mark.parametrize(
    ("asked", "run"),
    [
        (["decode", "convert", "resize"], ["decode", "resize", "convert"]),
        (["decode", "resize", "convert"], ["decode", "resize", "convert"]),
        (
            ["decode", "convert", "random_resized_crop", "random_flip", "clip"],
            ["decode", "random_resized_crop", "random_flip", "convert", "clip"],
        ),
        (
            ["decode", "convert", "clip", "resize"],
            ["decode", "convert", "clip", "resize"],
        ),
        (  # not beyond what can be stored
            ["decode", "convert", "resize(256)", "random_crop", "clip"],
            ["decode", "resize", "convert", "random_crop", "clip"],
        ),
        (
            ["decode", "resize(256)", "random_flip", "resize", "convert"],
            ["decode", "resize", "convert", "random_flip", "resize"],
        ),
        (["convert", "random_flip", "clip"], ["random_flip", "convert", "clip"]),
        (  # levels are needed until the last that works on them
            ["decode", "resize", "randaugment", "random_flip", "convert", "clip"],
            ["decode", "resize", "randaugment", "convert", "random_flip", "clip"],
        ),
        (
            ["decode", "random_resized_crop", "augmix", "random_flip", "convert", "mixup"],
            ["decode", "random_resized_crop", "augmix", "random_flip", "convert", "mixup"],
        ),
        (["random_flip", "clip"], ["random_flip", "clip"]),
    ],
)
def test_convert_runs_where_it_costs_least(asked, run):
    stages = tuple(map(parse_stage, asked))
    assert [stage.name for stage in in_running_order(stages)] == run


@given(legal_lists())
def test_the_running_order_is_legal_and_final(asked):
    stages = parse_stages(asked)
    run = in_running_order(stages)
    assert parse_stages(texts(run)) == run
    assert in_running_order(run) == run
    for length in range(len(run) + 1):
        assert in_running_order(run[:length]) == run[:length]
    assert [s for s in run if s.name != "convert"] == [s for s in stages if s.name != "convert"]


@given(legal_lists())
def test_stored_and_online_stages_together_run_as_all_of_them(asked):
    stages = parse_stages(asked)
    try:
        stored, online = split_for_store(stages, "float32")
    except ExperimentError:
        assert size_after(deterministic_prefix(stages), 200) is None
        return
    assert not any(stage.random for stage in stored)
    assert size_after(stored, 200) is not None
    assert in_running_order(stored) + online == in_running_order(stages)


@given(legal_lists())
def test_uint8_stores_a_part_of_what_float32_stores(asked):
    stages = parse_stages(asked)
    try:
        stored, online = split_for_store(stages, "uint8")
    except ExperimentError:
        return
    whole, rest = split_for_store(stages, "float32")
    assert stored == whole[: len(stored)]
    assert stored + online == whole + rest
    assert "convert" in texts(stored)
    assert size_after(stored, 200) is not None


@pytest.mark.parametrize(
    ("stages", "kept_as_uint8"),
    [
        (["decode", "convert", "resize"], 3),
        (["decode", "convert", "resize", "clip"], 4),
        (["decode", "convert", "resize", "clip(-1, 2)"], 4),
        (["decode", "convert", "resize", "clip(0, 2)", "clip(2, 3)"], 4),
        (["decode", "convert", "resize", "normalise"], 3),
        (["decode", "convert", "resize", "standardise"], 3),
        (["decode", "convert", "resize", "standardise", "clip"], 5),
        (["decode", "convert", "resize", "standardise", "clip(-1, 1)"], 3),
        (["decode", "convert", "resize", "normalise(0, 0, 0, 1, 2, 3)"], 4),
        (["decode", "convert", "resize", "normalise(0.1, 0, 0, 1, 1, 1)"], 3),
        (["decode", "convert", "resize(bicubic)", "clip"], 4),
        (["decode", "resize(area)", "convert", "center_crop"], 4),
    ],
)
def test_uint8_stores_what_stays_within_0_and_1(stages, kept_as_uint8):
    whole = parse_stages([*stages, "random_flip"])
    assert split_for_store(whole, "uint8") == (whole[:kept_as_uint8], whole[kept_as_uint8:])
    assert split_for_store(whole, "float32") == (whole[:-1], whole[-1:])


def test_all_is_stored_where_nothing_is_random():
    stages = parse_stages("plain")
    assert split_for_store(stages, "uint8") == (stages, ())


def test_a_later_convert_is_stored_too():
    stages = parse_stages(["decode", "resize", "random_flip", "convert", "normalise"])
    stored, online = split_for_store(stages, "uint8")
    assert texts(stored) == ["decode", "resize(bilinear)", "convert"]
    assert [stage.name for stage in online] == ["random_flip", "normalise"]


@pytest.mark.parametrize("stored", ["uint8", "float32"])
def test_nothing_is_stored_before_images_have_one_size(stored):
    message = refusal(split_for_store, parse_stages("basic"), stored)
    assert "random_resized_crop is random and comes before any stage that gives all" in message
    assert "put resize before it" in message


@pytest.mark.parametrize(
    ("stages", "reason"),
    [
        (["decode", "convert", "resize(bicubic)"], "resize(bicubic) may leave [0, 1]"),
        (["decode", "convert", "resize(bicubic)"], "put clip behind it"),
        (["decode", "resize(bicubic)", "convert", "clip(-1, 1)"], "put clip behind it"),
        (["decode", "convert", "clip", "standardise", "resize"], "standardise may leave [0, 1]"),
        (["decode", "convert", "normalise", "resize"], "put resize before it"),
    ],
)
def test_what_uint8_cannot_hold_is_refused_and_float32_can(stages, reason):
    stages = parse_stages(stages)
    message = refusal(split_for_store, stages, "uint8")
    assert reason in message
    assert 'pipeline.stored = "float32"' in message
    assert split_for_store(stages, "float32") == (stages, ())


def test_what_works_on_levels_stays_online_and_needs_stored_levels():
    stages = parse_stages("seed000+randaugment(2)+mixup")
    stored, online = split_for_store(stages, "uint8")
    assert texts(stored) == ["decode", "resize(bilinear)", "convert"]
    assert [stage.name for stage in online] == ["randaugment", "random_brightness", "clip", "mixup"]
    assert 'set pipeline.stored = "uint8"' in refusal(split_for_store, stages, "float32")


def test_validation_is_neither_augmented_nor_mixed():
    stages = for_validation(parse_stages("basic+randaugment(2)+random_erasing+cutmix"))
    assert texts(stages) == texts(for_validation(parse_stages("basic")))


@pytest.mark.parametrize(
    "asked",
    [
        ["decode", "convert", "resize", "random_flip", "clip"],
        ["decode", "resize", "convert", "random_flip"],
        ["decode", "resize", "random_flip", "convert", "normalise"],
        "plain+randaugment(2)",
    ],
)
def test_lists_that_store_the_same_share_a_store(asked):
    stored, _ = split_for_store(parse_stages(asked), "uint8")
    assert store_key(stored) == ("decode", "convert", "resize(bilinear)")


@given(legal_lists())
def test_what_names_a_store_runs_as_what_is_stored(asked):
    try:
        stored, _ = split_for_store(parse_stages(asked), "float32")
    except ExperimentError:
        return
    named = tuple(map(parse_stage, store_key(stored)))
    assert in_running_order(named) == in_running_order(stored)
    assert store_key(named) == store_key(stored)


def test_a_schedule_is_measured_from_its_middle():
    assert typical_epoch(parse_stages("basic+randaugment(2)")) == 0
    assert typical_epoch(parse_stages("basic+pba")) == 100
    assert typical_epoch(parse_stages("basic+pba(3)")) == 1
