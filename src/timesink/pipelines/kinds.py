"""One stage: its kinds, with what each takes, gives and allows; its text, read and written."""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from timesink.errors import ExperimentError
from timesink.pipelines import augmentations

METHODS = ("bilinear", "nearest", "bicubic", "area")
SMALLEST_SIZE, LARGEST_SIZE = 8, 4096
LARGEST_NUMBER = 1e6  # far below where float32 loses the pixel
MOST_LAYERS = 16


@dataclass(frozen=True)
class Kind:
    """What a stage of this name takes, gives and needs."""

    takes: tuple[str, ...]
    """What may flow in: bytes, uint8 (levels 0 to 255) or float."""
    gives: str | None = None
    """None: an image of what it was given."""
    random: bool = False
    sizes: bool = False
    """After it all images are squares of one size."""
    in_validation: str | None = None
    """Of a random stage: what stands in its place where nothing is random."""
    operations: tuple[str, ...] = ()
    """Of a stage that draws what it does to an image: what it draws from."""
    mixes: bool = False
    """Whether it mixes the images of a batch with each other, and their labels."""
    parameters: tuple[tuple[str, float], ...] = ()
    """Name and default of each number."""
    fewest: int | None = None
    """Numbers that must be given if any is; the others keep their defaults. None: all."""
    allowed: str = ""
    """Of the numbers, in words."""
    permits: Callable[..., bool] = lambda *numbers: True


def _whole(number: float, least: float, most: float) -> bool:
    return number == int(number) and least <= number <= most


IMAGE = ("uint8", "float")
_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))

KINDS: dict[str, Kind] = {
    "read": Kind(("path",), "bytes"),
    "decode": Kind(("bytes",), "uint8"),
    "convert": Kind(("uint8",), "float"),
    "resize": Kind(IMAGE, sizes=True),
    "center_crop": Kind(IMAGE, sizes=True),
    "random_crop": Kind(IMAGE, random=True, sizes=True, in_validation="center_crop"),
    "random_resized_crop": Kind(
        IMAGE,
        random=True,
        sizes=True,
        in_validation="resize",
        parameters=(
            ("min area", 0.08),
            ("max area", 1.0),
            ("min ratio", 3 / 4),
            ("max ratio", 4 / 3),
        ),
        allowed="0 < min area ≤ max area ≤ 1 and 0 < min ratio ≤ max ratio",
        permits=lambda a, b, c, d: 0 < a <= b <= 1 and 0 < c <= d,
    ),
    "random_flip": Kind(IMAGE, random=True),
    "random_brightness": Kind(
        ("float",),
        random=True,
        parameters=(("delta", 32 / 255),),
        allowed="0 < delta ≤ 1",
        permits=lambda delta: 0 < delta <= 1,
    ),
    "random_contrast": Kind(
        ("float",),
        random=True,
        parameters=(("lower", 0.8), ("upper", 1.2)),
        allowed="0 ≤ lower ≤ upper",
        permits=lambda lower, upper: 0 <= lower <= upper,
    ),
    "clip": Kind(
        ("float",),
        parameters=(("low", 0.0), ("high", 1.0)),
        allowed="low < high",
        permits=lambda low, high: low < high,
    ),
    "normalise": Kind(
        ("float",),
        parameters=tuple(
            (f"{name} {colour}", value)
            for name, values in zip(("mean", "std"), _IMAGENET, strict=True)
            for colour, value in zip("rgb", values, strict=True)
        ),
        allowed="std ≥ 0.000001",
        permits=lambda *numbers: min(numbers[3:]) >= 1e-6,
    ),
    "standardise": Kind(("float",)),
    "randaugment": Kind(
        ("uint8",),
        random=True,
        operations=augmentations.RANDAUGMENT,
        parameters=(("layers", 2), ("magnitude", 9)),
        fewest=1,
        allowed=f"whole numbers, 1 ≤ layers ≤ {MOST_LAYERS} and "
        f"0 ≤ magnitude ≤ {augmentations.LARGEST_MAGNITUDE}",
        permits=lambda layers, magnitude: (
            _whole(layers, 1, MOST_LAYERS) and _whole(magnitude, 0, augmentations.LARGEST_MAGNITUDE)
        ),
    ),
    "autoaugment": Kind(
        ("uint8",),
        random=True,
        operations=tuple(
            dict.fromkeys(
                name for parts in augmentations.AUTOAUGMENT_IMAGENET for name, _, _ in parts
            )
        ),
    ),
    "pba": Kind(
        ("uint8",),
        random=True,
        operations=augmentations.PBA,
        parameters=(("epochs", 200),),
        allowed="a whole number of epochs ≥ 1",
        permits=lambda epochs: _whole(epochs, 1, LARGEST_NUMBER),
    ),
    "augmix": Kind(
        ("uint8",),
        random=True,
        operations=augmentations.AUGMIX,
        parameters=(("severity", 3), ("width", 3), ("depth", 3)),
        fewest=1,
        allowed="0.1 ≤ severity ≤ 10, and whole numbers, 1 ≤ width ≤ 8 and 1 ≤ depth ≤ 8",
        permits=lambda severity, width, depth: (
            0.1 <= severity <= 10 and _whole(width, 1, 8) and _whole(depth, 1, 8)
        ),
    ),
    "random_erasing": Kind(
        ("float",),
        random=True,
        parameters=(
            ("likelihood", 0.5),
            ("min area", 0.02),
            ("max area", 0.33),
            ("min ratio", 0.3),
            ("max ratio", 3.3),
        ),
        fewest=1,
        allowed="0 ≤ likelihood ≤ 1, 0 < min area ≤ max area < 1 and 0 < min ratio ≤ max ratio",
        permits=lambda p, a, b, c, d: 0 <= p <= 1 and 0 < a <= b < 1 and 0 < c <= d,
    ),
    "mixup": Kind(
        ("float",),
        random=True,
        mixes=True,
        parameters=(("alpha", 0.2),),
        allowed="0.01 ≤ alpha ≤ 100",
        permits=lambda alpha: 0.01 <= alpha <= 100,
    ),
    "cutmix": Kind(
        ("float",),
        random=True,
        mixes=True,
        parameters=(("alpha", 1.0),),
        allowed="0.01 ≤ alpha ≤ 100",
        permits=lambda alpha: 0.01 <= alpha <= 100,
    ),
}


@dataclass(frozen=True)
class Stage:
    """One operation of the pipeline; its text, parsed, gives it back."""

    name: str
    arguments: tuple[float | str, ...]
    random: bool

    def __str__(self) -> str:
        words = ", ".join(_shown(argument) for argument in self.arguments)
        return f"{self.name}({words})" if words else self.name

    @property
    def moves_pixels(self) -> bool:
        """Tell whether it leaves colours alone, so that `convert` may come before or after it."""
        return KINDS[self.name].takes == IMAGE

    @property
    def needs_levels(self) -> bool:
        """Tell whether it works on levels from 0 to 255, so that `convert` must come after it."""
        return KINDS[self.name].takes == ("uint8",) and self.name != "convert"

    @property
    def mixes(self) -> bool:
        """Tell whether it is done to a batch, not to an image."""
        return KINDS[self.name].mixes


def parse_stage(text: str) -> Stage:
    """Turn the text of one stage, such as `clip(0, 1)`, into it; its place is not looked at."""
    match = re.fullmatch(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*", text)
    name = match[1] if match else text
    if match is None or name not in KINDS:
        bare = name.partition("(")[0].strip()
        known = f"{bare}, or {bare}(…) with its arguments" if bare in KINDS else ", ".join(KINDS)
        hint = "" if bare in KINDS else did_you_mean(bare, KINDS)
        raise ExperimentError(f"pipeline.stages: found {text!r}, allowed: {known}{hint}")
    words = [word.strip() for word in match[2].split(",")] if (match[2] or "").strip() else []
    arguments = _resize_arguments(words) if name == "resize" else _numbers(name, words)
    return Stage(name, arguments, KINDS[name].random)


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """Give a hint where a word is nearly one of those known."""
    close = difflib.get_close_matches(found, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _resize_arguments(words: Sequence[str]) -> tuple[float | str, ...]:
    """Read a size, a method, both in any order, or none."""
    allowed = f"one of {', '.join(METHODS)}, and a size in pixels; both may be left out"
    size, method = None, None
    for word in words:
        number = _number(word)
        if number is not None and size is None:
            if number != int(number) or not SMALLEST_SIZE <= number <= LARGEST_SIZE:
                raise ExperimentError(
                    f"pipeline.stages: resize: found the size {word}, "
                    f"allowed: a whole number from {SMALLEST_SIZE} to {LARGEST_SIZE}"
                )
            size = number
        elif word in METHODS and method is None:
            method = word
        else:
            raise ExperimentError(
                f"pipeline.stages: resize: found {', '.join(words)!r}, allowed: {allowed}"
                f"{did_you_mean(word, METHODS) if word not in METHODS else ''}"
            )
    method = method or METHODS[0]
    return (method,) if size is None else (size, method)


def _numbers(name: str, words: Sequence[str]) -> tuple[float, ...]:
    """Read all numbers that a stage takes; none at all stands for the defaults."""
    kind = KINDS[name]
    if not words:
        return tuple(default for _, default in kind.parameters)
    most = len(kind.parameters)
    fewest = most if kind.fewest is None else kind.fewest
    if not fewest <= len(words) <= most:
        names = ", ".join(parameter for parameter, _ in kind.parameters)
        count = f"{fewest} to {most}" if fewest < most else f"{most}"
        takes = f"{count} ({names}) or none" if names else "none"
        raise ExperimentError(
            f"pipeline.stages: {name}: found {len(words)} argument(s), allowed: {takes}"
        )
    numbers = []
    for word, (parameter, _) in zip(words, kind.parameters, strict=False):
        number = _number(word)
        if number is None:
            raise ExperimentError(
                f"pipeline.stages: {name}: {parameter}: found {word!r}, allowed: a number such as "
                f"0.5 or 32/255, at most ±{LARGEST_NUMBER:.0f}"
            )
        numbers.append(number)
    numbers += [default for _, default in kind.parameters[len(numbers) :]]
    if not kind.permits(*numbers):
        raise ExperimentError(
            f"pipeline.stages: {name}: found {', '.join(words)}, allowed: {kind.allowed}"
        )
    return tuple(numbers)


def _number(word: str) -> float | None:
    above, slash, below = word.partition("/")
    try:
        value = float(above) / float(below) if slash else float(above)
    except (ValueError, ZeroDivisionError):
        return None
    return value if abs(value) <= LARGEST_NUMBER else None


def _shown(argument: float | str) -> str:
    if isinstance(argument, str):
        return argument
    if argument == int(argument):
        return str(int(argument))
    exact = repr(float(argument))
    fraction = Fraction(argument).limit_denominator(255)  # 32/255 reads better than its decimals
    return str(fraction) if len(exact) > 8 and float(fraction) == argument else exact
