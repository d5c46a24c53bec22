"""How long measurements will take: planned ones in, seconds out; a guess, put right by what ended.

What an image takes was measured once for each of Timesink's networks, on CPU cores whose speed at
multiplying matrices is known. It goes with the pixels; what a step takes besides, its update above
all, does not. Half or twice as long is possible.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from timesink import machine
from timesink.errors import TimesinkError
from timesink.experiment import Experiment
from timesink.pipelines.source import open_images
from timesink.runs.start import GENERATED_CLASSES, GENERATED_IMAGES, GENERATED_VALIDATION_IMAGES
from timesink.studies.plan import Planned

RUN_S, VERDICT_S = 5.0, 18.0
"""Of a run besides its steps: start, compiling, tables; and what measures for the verdict."""
MEASURER_S = 2.5
"""Of a pipeline measured alone, besides its seconds: start, the first batches."""
SIDES_S, SIDES_WARM_UP = 8.0, 1.35
"""Of a cell of three sides: start and compiling; its seconds with those of warming up."""
CALLS_OF_A_SIDE = 5
"""The fewest in a round."""
PREFIXES, PREFIX_S = 6, 0.5
"""About how often a pipeline is measured again where CPU time is told by stage; what each takes
besides its seconds."""
IMAGE_S = 0.0011
"""What the input takes of a core for an image: mostly decoding."""
FORWARD = 1 / 3
"""Of an image's time in training: what it takes in validation."""
SIDE, CORES, GFLOPS = 224, 2, 130.0
"""Pixels, cores and their speed that the costs below were measured with."""


@dataclass(frozen=True)
class Cost:
    """What a network takes in training."""

    image_s: float
    step_s: float
    """Besides its images: whatever the batch is."""


COSTS: Mapping[str, Cost] = {
    "alexnet": Cost(0.0087, 0.046),
    "vgg11": Cost(0.103, 0.069),
    "vgg16": Cost(0.196, 0.117),
    "googlenet": Cost(0.0269, 0.035),
    "resnet50": Cost(0.0826, 0.055),
    "mobilenetv2": Cost(0.0239, 0.043),
}


@dataclass(frozen=True)
class Guess:
    """What a measurement will take."""

    seconds: float
    kind: str
    """How it is measured, of which network: those of a kind are wrong alike."""
    steps: bool = True
    """Whether its steps are among the seconds: nobody knows what another's network takes."""


def guesses(planned: Sequence[Planned], gflops: float | None) -> dict[int, Guess]:
    """Guess what each measurement takes, by its number.

    `gflops` is how quick a core is here, None where the cores do not do the work.
    """
    count = _Counter()
    return {each.number: _guess(each, gflops, count) for each in planned}


def left_s(guessed: Mapping[int, Guess], took_s: Mapping[int, float], left: Sequence[int]) -> float:
    """Guess what those that are left take together; `took_s` is what those took that ended well.

    What ended tells how wrong a guess is: of its own kind, or else of all.
    """

    def ratio(kind: str | None) -> float | None:
        like = [number for number in took_s if kind in (None, guessed[number].kind)]
        at_first_s = sum(guessed[number].seconds for number in like)
        return sum(took_s[number] for number in like) / at_first_s if like else None

    overall = ratio(None) or 1.0
    by_kind = {kind: ratio(kind) or overall for kind in {each.kind for each in guessed.values()}}
    return sum(guessed[number].seconds * by_kind[guessed[number].kind] for number in left)


def speed_of_a_core(clock: Callable[[], float] = time.perf_counter) -> float | None:
    """Measure how quick this machine multiplies matrices, in GFLOP/s a core.

    It takes a tenth of a second. None where there is a GPU.
    """
    if machine.gpus():
        return None
    side, best_s = 768, float("inf")
    matrix = np.ones((side, side), np.float32)
    for _ in range(6):
        from_s = clock()
        matrix @ matrix
        best_s = min(best_s, clock() - from_s)
    return 2 * side**3 / best_s / 1e9 / machine.cores()


def _guess(each: Planned, gflops: float | None, count: "_Counter") -> Guess:
    how, asked = each.measure.how, each.experiment
    if how == "pipeline":
        once_s = each.measure.seconds
        again_s = each.measure.stages * PREFIXES * (once_s + PREFIX_S)
        return Guess(MEASURER_S + once_s + again_s, how)
    network = asked.training.network
    cost = COSTS.get(network) if gflops else None
    image_s = batch_s = 0.0
    if cost and gflops:
        slower = GFLOPS / gflops * CORES / (asked.machine.cores or machine.cores())
        image_s = cost.image_s * (asked.pipeline.image_size / SIDE) ** 2 * slower
        batch_s = asked.training.batch_size * image_s + cost.step_s * slower
    guess = _sides_s if how == "sides" else _run_s
    return Guess(guess(each, image_s, batch_s, count), f"{how} {network}", steps=cost is not None)


def _sides_s(each: Planned, _image_s: float, batch_s: float, _count: "_Counter") -> float:
    asked = each.measure
    input_s = asked.seconds * SIDES_WARM_UP
    side_s = max(input_s, CALLS_OF_A_SIDE * batch_s)
    return SIDES_S + asked.rounds * (input_s + 2 * side_s)


def _run_s(each: Planned, image_s: float, batch_s: float, count: "_Counter") -> float:
    asked = each.experiment
    overhead_s = RUN_S + VERDICT_S * (asked.profile.verdict and asked.profile.mode != "off")
    images = count(asked)
    if not batch_s or images is None:
        return overhead_s
    training = asked.training
    of_a_core_s = IMAGE_S / (asked.machine.cores or machine.cores())
    per_epoch = max(images.train // training.batch_size, 1)
    steps = training.iterations or training.epochs * per_epoch
    every = training.validate_every
    validations = training.validation * (1 + (steps // per_epoch // every if every else 0))
    return (
        overhead_s
        + steps * (batch_s + training.batch_size * of_a_core_s)
        + validations * images.validation * (image_s * FORWARD + of_a_core_s)
    )


@dataclass(frozen=True)
class _Images:
    """How many a run has."""

    train: int
    validation: int


class _Counter:
    """How many images experiments have; each set is looked at once."""

    def __init__(self) -> None:
        self._found: dict[str, _Images | None] = {}

    def __call__(self, asked: Experiment) -> _Images | None:
        """Count them; None where nobody can know yet."""
        key = f"{asked.pipeline.source} {asked.dataset.model_dump_json()}"
        if key not in self._found:
            self._found[key] = _images(asked)
        return self._found[key]


def _images(asked: Experiment) -> _Images | None:
    if asked.dataset.path is None and asked.pipeline.source != "synthetic":
        per_class = min(asked.dataset.images_per_class or GENERATED_IMAGES, GENERATED_IMAGES)
        return _Images(
            GENERATED_CLASSES * per_class, GENERATED_CLASSES * GENERATED_VALIDATION_IMAGES
        )
    for source in dict.fromkeys((asked.pipeline.source, "raw")):  # a store may still be to be made
        try:
            pipeline = asked.pipeline.model_copy(update={"source": source})
            dataset = open_images(asked.model_copy(update={"pipeline": pipeline}))
        except TimesinkError:
            continue
        return _Images(len(dataset.train), len(dataset.validation))
    return None
