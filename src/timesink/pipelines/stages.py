"""The ordered stages of an input pipeline: parsed from the experiment, checked, random or not."""

import math
import re
from collections.abc import Sequence
from typing import Literal

from timesink.errors import ExperimentError
from timesink.pipelines.kinds import KINDS, did_you_mean, parse_stage
from timesink.pipelines.kinds import Stage as Stage  # what others know this value by

PRESETS: dict[str, tuple[str, ...]] = {
    # What seed 000 trained ResNet-50 on; it resized to 200 × 200.
    "seed000": ("decode", "convert", "resize", "random_brightness", "clip"),
    "plain": ("decode", "convert", "resize"),
    # What seed 002 calls basic: "random crop and flip, and normalization and standardization".
    "basic": (
        "decode",
        "random_resized_crop",
        "random_flip",
        "convert",
        "normalise",
        "standardise",
    ),
}


_PLUS = re.compile(r"\+(?![^()]*\))")
"""Between a preset and what is added to it; within brackets it is a sign."""


def parse_stages(asked: str | Sequence[str]) -> tuple[Stage, ...]:
    """Turn a preset's name or a list such as `["decode", …, "clip(0, 1)"]` into stages.

    Stages may be added to a preset: `basic+randaugment(2, 9)`. `read` is implied: it is left out
    of what is given, so that it makes no difference.
    """
    if isinstance(asked, str):
        stages = _with_additions(asked)
    else:
        stages = tuple(parse_stage(text) for text in asked)
    if stages and stages[0].name == "read":
        stages = stages[1:]
    _check_order(stages)
    return stages


def _with_additions(asked: str) -> tuple[Stage, ...]:
    """Put what is added to a preset where it belongs: on levels before `convert`, else last."""
    preset, *texts = (part.strip() for part in _PLUS.split(asked))
    if preset not in PRESETS:
        raise ExperimentError(
            f"pipeline.stages: found {asked!r}, allowed: {', '.join(PRESETS)}, one of these with "
            f"stages added to it, such as basic+randaugment(2, 9), "
            f"or a list of {', '.join(KINDS)}{did_you_mean(preset, PRESETS)}"
        )
    stages = tuple(parse_stage(text) for text in PRESETS[preset])
    if not texts:
        return stages
    added = [parse_stage(text) for text in texts]
    ordered = in_running_order(stages)
    place = next(n for n, stage in enumerate(ordered) if stage.name == "convert")
    early = [stage for stage in added if stage.moves_pixels or stage.needs_levels]
    late = [stage for stage in added if stage not in early]
    late.sort(key=lambda stage: stage.mixes)
    return (*ordered[:place], *early, *ordered[place:], *late)


def operations_of(stage: Stage) -> tuple[str, ...]:
    """Name the operations that a stage draws from; none where it does one thing."""
    return KINDS[stage.name].operations


def row_of(stage: str, operation: str) -> str:
    """Name what an operation does for a stage, in traces and tables."""
    return f"{stage}.{operation}"


def parts_of_row(name: str) -> tuple[str, str | None]:
    """Give the stage of a row, and its operation where the row is one's."""
    stage, _, operation = name.partition(".")
    known = stage in KINDS and operation in KINDS[stage].operations
    return (stage, operation) if known else (name, None)


def typical_epoch(stages: Sequence[Stage]) -> int:
    """Give the epoch to measure a pipeline alone from: the middle of a schedule that has some.

    PBA's begins with epochs in which it does nothing.
    """
    epochs = [int(stage.arguments[0]) for stage in stages if stage.name == "pba"]
    return max(epochs, default=0) // 2


def for_validation(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Give the stages that validation is fed by: nothing random, still one size."""
    kept = []
    for stage in stages:
        if not stage.random:
            kept.append(stage)
        elif (instead := KINDS[stage.name].in_validation) is not None:
            kept.append(parse_stage(instead))
    return tuple(kept)


def deterministic_prefix(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Give the stages before the first random one: the same result in every epoch."""
    first = next((i for i, stage in enumerate(stages) if stage.random), len(stages))
    return tuple(stages[:first])


def size_after(stages: Sequence[Stage], image_size: int) -> int | None:
    """Tell the side of the square images that the stages give; None while they differ in size."""
    side = None
    for stage in stages:
        if KINDS[stage.name].sizes:
            asked = stage.arguments[0] if stage.name == "resize" and stage.arguments else None
            side = image_size if asked is None or isinstance(asked, str) else int(asked)
    return side


def in_running_order(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Put `convert` where it costs least: behind the stages that move pixels or work on levels.

    Fewer and smaller pixels are then converted, and the image is equal up to the rounding of
    floats. It never crosses the end of what can be stored (`split_for_store`), so that a stored
    image goes through the very same operations as one that is read as a file.
    """
    others = [stage for stage in stages if stage.name != "convert"]
    if len(others) == len(stages):
        return tuple(stages)
    levels = max((n + 1 for n, stage in enumerate(others) if stage.needs_levels), default=0)
    end = levels
    while end < len(others) and (
        others[end].name in ("read", "decode") or others[end].moves_pixels
    ):
        end += 1
    stored = deterministic_prefix(others)
    if any(KINDS[stage.name].sizes for stage in stored):
        end = max(min(end, len(stored)), levels)
    return (*others[:end], parse_stage("convert"), *others[end:])


def split_for_store(
    stages: Sequence[Stage], stored: Literal["uint8", "float32"]
) -> tuple[tuple[Stage, ...], tuple[Stage, ...]]:
    """Part the stages into what is done once and stored, and what stays online.

    The first part gives a float image of fixed size; for uint8, one within [0, 1].
    """
    prefix = deterministic_prefix(stages)
    rest = tuple(stages[len(prefix) :])
    if not any(KINDS[stage.name].sizes for stage in prefix):
        raise ExperimentError(
            f"pipeline.stages: {rest[0].name} is random and comes before any stage that gives all "
            "images one size, so nothing can be stored; put resize before it, or use source raw "
            "or tfrecord"
        )
    if all(stage.name != "convert" for stage in prefix):
        prefix = (*prefix, parse_stage("convert"))
        rest = tuple(stage for stage in rest if stage.name != "convert")
    if stored == "float32":
        for stage in rest:
            if stage.needs_levels:
                raise ExperimentError(
                    f"pipeline.stages: {stage.name} works on levels from 0 to 255, and images "
                    'stored as float32 have none; set pipeline.stored = "uint8"'
                )
        return prefix, rest
    within = [_within_0_1(prefix[:length]) for length in range(len(prefix) + 1)]
    for length in range(len(prefix), 0, -1):
        done = {stage.name for stage in prefix[:length]}
        if within[length] and "convert" in done and any(KINDS[name].sizes for name in done):
            return prefix[:length], (*prefix[length:], *rest)
    culprit = prefix[max(i for i in range(len(prefix)) if within[i] and not within[i + 1])]
    way_out = "put clip behind it" if culprit.name == "resize" else "put resize before it"
    raise ExperimentError(
        f"pipeline.stages: {culprit} may leave [0, 1] before images can be stored, and uint8 "
        f'holds nothing else; {way_out}, or set pipeline.stored = "float32"'
    )


def store_key(prefix: Sequence[Stage]) -> tuple[str, ...]:
    """Tell what is stored; `convert` is written first where it may, since it changes nothing."""
    decode, *others = in_running_order(prefix)
    others.sort(key=lambda stage: stage.name != "convert")
    return tuple(map(str, (decode, *others)))


def _within_0_1(stages: Sequence[Stage]) -> bool:
    """Tell whether all values behind these stages lie in [0, 1]; levels count as 1/255 each."""
    low, high = 0.0, 1.0
    for stage in stages:
        numbers = [float(argument) for argument in stage.arguments if not isinstance(argument, str)]
        match stage.name:
            case "resize" if "bicubic" in stage.arguments:
                low, high = -math.inf, math.inf  # it overshoots at edges
            case "standardise":
                low, high = -math.inf, math.inf
            case "normalise":
                means, stds = numbers[:3], numbers[3:]
                low = min((low - mean) / std for mean, std in zip(means, stds, strict=True))
                high = max((high - mean) / std for mean, std in zip(means, stds, strict=True))
            case "clip":
                low, high = (min(max(value, numbers[0]), numbers[1]) for value in (low, high))
    return low >= 0 and high <= 1


def _check_order(stages: Sequence[Stage]) -> None:
    flowing = "bytes"
    mixing, sized = None, False
    for stage in stages:
        kind = KINDS[stage.name]
        if mixing is not None:
            way_out = "leave one out" if kind.mixes else f"put {mixing} last"
            raise ExperimentError(
                f"pipeline.stages: {stage.name} comes after {mixing}, which mixes the images of a "
                f"batch; {way_out}"
            )
        mixing = stage.name if kind.mixes else None
        if flowing not in kind.takes:
            raise ExperimentError(f"pipeline.stages: {_misplaced(stage, flowing, stages)}")
        if stage.needs_levels and not sized:
            raise ExperimentError(
                f"pipeline.stages: {stage.name} comes before any stage that gives all images one "
                f"size, and how far it may move them depends on it; put {_sizing()} before it"
            )
        sized = sized or kind.sizes
        flowing = kind.gives or flowing
    if flowing == "bytes":
        raise ExperimentError("pipeline.stages: decode is missing: put it first")
    if flowing == "uint8":
        raise ExperimentError(
            "pipeline.stages: convert is missing: the stages end in uint8 but the network takes "
            "float; add convert"
        )
    sizing = [stage for stage in stages if KINDS[stage.name].sizes]
    if not sizing:
        raise ExperimentError(
            "pipeline.stages: no stage gives all images one size, which a batch needs; "
            f"add {_sizing()}"
        )
    if sizing[-1].name == "resize" and len(sizing[-1].arguments) > 1:
        raise ExperimentError(
            f"pipeline.stages: {sizing[-1]} is the last stage that sets the size, and the network "
            "is fed pipeline.image_size; leave the size out, or put a crop behind it"
        )


def _sizing() -> str:
    return f"one of {', '.join(name for name, kind in KINDS.items() if kind.sizes)}"


def _misplaced(stage: Stage, flowing: str, stages: Sequence[Stage]) -> str:
    """Say why a stage cannot stand where it stands, and what to do."""
    if stage.name == "read":
        return "read is not first: files are read before all else; put it first or leave it out"
    takes = "an image" if stage.moves_pixels else KINDS[stage.name].takes[0]
    if flowing == "float" and stage.needs_levels:
        return f"{stage.name} comes after convert: it works on levels from 0 to 255; put it before"
    if flowing == "float" or stage.name == "decode":
        return f"{stage.name} comes twice: it takes {takes} but is given {flowing}; leave one out"
    missing = ["decode"] if flowing == "bytes" else []
    if takes == "float":
        missing.append("convert")
    if any(other.name == missing[0] for other in stages):
        problem = f"{stage.name} comes before {missing[0]}: it takes"
    else:
        problem = f"{missing[0]} is missing: {stage.name} takes"
    return f"{problem} {takes} but is given {flowing}; put {' and '.join(missing)} before it"
