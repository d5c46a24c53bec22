"""The ordered stages of an input pipeline: parsed from the experiment, checked, random or not."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from timesink.errors import ExperimentError

PRESETS: dict[str, tuple[str, ...]] = {
    # What seed 000 trained ResNet-50 on; it resized to 200 × 200.
    "seed000": ("decode", "convert", "resize", "random_brightness", "clip"),
    "plain": ("decode", "convert", "resize"),
}


@dataclass(frozen=True)
class Kind:
    """What a stage of this name takes, gives and needs."""

    takes: str  # what flows in: bytes, uint8 or float
    gives: str
    random: bool = False
    defaults: tuple[float, ...] = ()


KINDS: dict[str, Kind] = {
    "decode": Kind("bytes", "uint8"),
    "convert": Kind("uint8", "float"),
    "resize": Kind("float", "float"),
    "random_flip": Kind("float", "float", random=True),
    "random_brightness": Kind("float", "float", random=True, defaults=(32 / 255,)),
    "clip": Kind("float", "float", defaults=(0.0, 1.0)),
}


@dataclass(frozen=True)
class Stage:
    """One operation of the pipeline."""

    name: str
    arguments: tuple[float, ...]
    random: bool


def parse_stages(asked: str | Sequence[str]) -> tuple[Stage, ...]:
    """Turn a preset's name or a list such as `["decode", …, "clip(0, 1)"]` into stages."""
    if isinstance(asked, str):
        if asked not in PRESETS:
            raise ExperimentError(
                f"pipeline.stages: found {asked!r}, allowed: {', '.join(PRESETS)}, "
                f"or a list of {', '.join(KINDS)}"
            )
        asked = PRESETS[asked]
    stages = tuple(_parse_stage(text) for text in asked)
    _check_order(stages)
    return stages


def without_random(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """Keep the stages that give the same image every time: what validation is fed."""
    return tuple(stage for stage in stages if not stage.random)


def _parse_stage(text: str) -> Stage:
    match = re.fullmatch(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*", text)
    name = match[1] if match else text
    if match is None or name not in KINDS:
        close = difflib.get_close_matches(name, KINDS, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ExperimentError(f"pipeline.stages: found {text!r}, allowed: {', '.join(KINDS)}{hint}")
    kind = KINDS[name]
    arguments = kind.defaults
    if match[2] is not None and match[2].strip():
        try:
            arguments = tuple(float(word) for word in match[2].split(","))
        except ValueError:
            raise ExperimentError(f"pipeline.stages: {text!r}: arguments are numbers") from None
        if len(arguments) != len(kind.defaults):
            raise ExperimentError(
                f"pipeline.stages: {text!r}: {name} takes {len(kind.defaults)} argument(s)"
            )
    return Stage(name, arguments, kind.random)


def _check_order(stages: Sequence[Stage]) -> None:
    flowing = "bytes"
    for stage in stages:
        kind = KINDS[stage.name]
        if kind.takes != flowing:
            raise ExperimentError(
                f"pipeline.stages: {stage.name} takes {kind.takes} but is given {flowing}; "
                "start with decode, then convert"
            )
        flowing = kind.gives
    if "resize" not in {stage.name for stage in stages}:
        raise ExperimentError("pipeline.stages: resize is missing: a batch needs one image size")
