"""What is asked for: the experiment's models, read from TOML (or XML) with `--set` on top."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from timesink.errors import ExperimentError
from timesink.experiment_words import did_you_mean, mistake, schema_of

NETWORKS = ("alexnet", "vgg11", "vgg16", "googlenet", "resnet50", "mobilenetv2")
"""The networks that come with Timesink; `package.module:function` is one's own."""


UNSET = object()
"""The value of `--set key=`: as if the file did not have the key."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class DatasetSection(_Section):
    """The images."""

    path: str | None = Field(
        None,
        min_length=1,
        description="folder of images, or what `dataset make|import` wrote; "
        "left out, a small set is generated in datasets/generated",
    )
    classes: list[str] = Field([], description="only these classes; all when empty")
    images_per_class: int | None = Field(
        None, ge=1, description="at most so many training images a class; all when left out"
    )
    validation_fraction: float = Field(
        0.2,
        ge=0,
        lt=1,
        description="held out of a folder that has no val/ of its own",
    )
    max_bad: float = Field(
        0.01, ge=0, le=1, description="share of broken images after which the run stops"
    )
    remote: str | None = Field(
        None,
        min_length=1,
        description="sftp://user@host/path, http(s)://, s3:// or file://; "
        "brought to `path` before training",
    )
    remote_key: str | None = Field(
        None, min_length=1, description="private key file for sftp; the agent's keys when left out"
    )

    @model_validator(mode="after")
    def _a_remote_needs_a_place(self) -> Self:
        if self.remote is not None and self.path is None:
            raise ValueError("dataset.remote needs dataset.path, the local place to bring it to")
        return self


class PipelineSection(_Section):
    """From files to batches."""

    source: Literal["raw", "tfrecord", "materialized", "synthetic"] = Field(
        "raw",
        description="what is read: image files, TFRecords, what `dataset convert` stored, "
        "or nothing at all",
    )
    stages: str | list[str] = Field(
        "seed000",
        min_length=1,
        description="a preset (seed000, plain, basic), one with stages added to it such as "
        'basic+randaugment(2, 9), or a list such as ["decode", "convert", "resize"]',
    )
    image_size: int = Field(
        200, ge=8, le=4096, description="side of the square the network is fed, in pixels"
    )
    stored: Literal["uint8", "float32"] = Field(
        "uint8", description="of source materialized: how the images were stored"
    )
    mode: Literal["pipelined", "by_batch", "whole_dataset"] = Field(
        "pipelined",
        description="batches are made while the step computes, each only when asked for, "
        "or all of an epoch before its first step",
    )
    workers: Annotated[int, Field(ge=1, le=16)] | Literal["auto"] = Field(
        "auto", description="parallel calls of the pipeline: 1 to 16, or auto"
    )
    prefetch: Annotated[int, Field(ge=0, le=1024)] | Literal["auto"] = Field(
        "auto", description="batches made ahead, or auto"
    )
    shuffle: bool | Annotated[int, Field(ge=2)] = Field(
        True,
        description="a new order of the images each epoch; a number: within a buffer of so many",
    )
    deterministic: bool = Field(
        True, description="the same order whatever the number of workers; false may be quicker"
    )
    cache: Literal["any", "warm", "cold"] = Field(
        "any",
        description="the files in the page cache: as they are, read before a measurement, "
        "or dropped before it",
    )


class TrainingSection(_Section):
    """The network and how it is trained."""

    network: str = Field(
        "mobilenetv2",
        min_length=1,
        description=f"{', '.join(NETWORKS)}, or your own: package.module:function",
    )
    batch_size: int = Field(32, ge=1, description="images a step, over all replicas together")
    epochs: int = Field(3, ge=1, description="times through the training images")
    iterations: int | None = Field(
        None, ge=1, description="steps; given, it decides and epochs does not"
    )
    optimizer: Literal["sgd", "adam", "adamw", "rmsprop"] = Field("sgd")
    learning_rate: float = Field(0.01, gt=0)
    momentum: float = Field(0.9, ge=0, lt=1, description="of sgd and rmsprop")
    schedule: Literal["constant", "step", "cosine", "exponential"] = Field(
        "constant", description="how the learning rate changes"
    )
    decay_epochs: float = Field(
        30.0, gt=0, description="step and exponential: epochs for one factor of decay"
    )
    decay_factor: float = Field(0.1, gt=0, le=1, description="step and exponential: the factor")
    weight_decay: float = Field(
        0.0, ge=0, description="on kernels, not on biases and norms; decoupled for adamw, L2 else"
    )
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    dropout: float | None = Field(
        None, ge=0, lt=1, description="rate of the network's dropout layers; its own when left out"
    )
    topn: int = Field(5, ge=1, description="n of the top-n accuracy")
    replicas: int = Field(
        1, ge=1, le=64, description="GPUs, or logical CPU devices where there are none"
    )
    synchronized_batch_norm: bool = Field(
        False, description="batch normalisation over all replicas' images"
    )
    precision: Literal["float32", "mixed_float16", "mixed_bfloat16"] = Field("float32")
    xla: bool = Field(False, description="compile the step with XLA")
    deterministic: bool = Field(
        False, description="two runs equal loss for loss, whatever the number of workers"
    )
    checkpoint_every: int = Field(
        0, ge=0, description="iterations between checkpoints; 0 is only at the end"
    )
    checkpoint_keep: int = Field(
        3, ge=0, description="how many of the last checkpoints are kept; 0: none is written"
    )
    validation: bool = Field(True, description="validate after training")
    validate_every: int = Field(0, ge=0, description="also every so many epochs; 0 is never")

    @model_validator(mode="after")
    def _network_is_known(self) -> Self:
        if self.network not in NETWORKS and ":" not in self.network:
            raise ValueError(
                f"training.network: found {self.network!r}, allowed: {', '.join(NETWORKS)}, "
                f"or package.module:function{did_you_mean(self.network, NETWORKS)}"
            )
        return self

    @model_validator(mode="after")
    def _replicas_share_the_batch(self) -> Self:
        if self.batch_size % self.replicas:
            raise ValueError(
                f"training.batch_size: found {self.batch_size}, "
                f"allowed: a multiple of training.replicas ({self.replicas})"
            )
        if self.xla and self.replicas > 1:
            raise ValueError(
                "training.xla: found true, allowed: false with several training.replicas: "
                "XLA cannot compile the sum over replicas"
            )
        return self


class ProfileSection(_Section):
    """What is measured besides the steps."""

    mode: Literal["off", "window", "every"] = Field(
        "window", description="off, some windows of steps, or every step after the first"
    )
    windows: int = Field(1, ge=1, description="how many windows, with as long a stretch between")
    start: int | None = Field(
        None, ge=0, description="steps before the first window; left out: 20, fewer in a short run"
    )
    steps: int = Field(20, ge=1, description="steps of a window; of `every`, steps of a file")
    groups: dict[str, list[str]] = Field(
        {}, description="layers shown as one: name = [patterns of layer names]"
    )
    sample_ms: float = Field(
        5.0, ge=0, description="how often a window looks where Python is; 0 is never"
    )
    verdict: bool = Field(
        True,
        description="after training, measure input alone and compute alone in processes of "
        "their own, and say what holds the run back",
    )


class MachineSection(_Section):
    """What it runs on."""

    cores: int | None = Field(
        None,
        ge=1,
        description="training and measurements are kept to so many cores; "
        "left out: all that there are",
    )


class Experiment(_Section):
    """One experiment, complete: every key has a value or a documented absence."""

    name: str = Field(
        "experiment",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description="runs go to runs/<name>/<timestamp>",
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="of weights, shuffling and augmentation")
    repetitions: int = Field(1, ge=1, le=1000, description="runs, each a process of its own")
    dataset: DatasetSection = DatasetSection()  # type: ignore[call-arg]  # all have defaults
    pipeline: PipelineSection = PipelineSection()  # type: ignore[call-arg]
    training: TrainingSection = TrainingSection()  # type: ignore[call-arg]
    profile: ProfileSection = ProfileSection()  # type: ignore[call-arg]
    machine: MachineSection = MachineSection()  # type: ignore[call-arg]

    @model_validator(mode="after")
    def _a_deterministic_run_needs_a_deterministic_order(self) -> Self:
        if self.training.deterministic and not self.pipeline.deterministic:
            raise ValueError(
                "pipeline.deterministic: found false, allowed: true with training.deterministic"
            )
        return self


def load(path: Path | None, settings: Sequence[str] = ()) -> Experiment:
    """Read an experiment (TOML, or XML by its suffix; none is all defaults) with `--set` on top."""
    if path is None:
        return parse({}, "--set", settings)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be read: {error.strerror}") from None
    if path.suffix.lower() == ".xml":
        from timesink.experiment_xml import parse_xml

        return parse(parse_xml(text, str(path)), str(path), settings)
    try:
        values = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: not TOML: {error}") from None
    if "grid" in values:
        raise ExperimentError(f"{path}: grid: this is many experiments: timesink sweep {path}")
    return parse(values, str(path), settings)


def parse(values: Mapping[str, Any], where: str, settings: Sequence[str] = ()) -> Experiment:
    """Check plain values into an Experiment; each mistake becomes one line of the error."""
    merged = _copy(values)
    origin: dict[str, str] = {}
    for setting in settings:
        key, value = _parse_setting(setting)
        target = merged
        *tables, last = key.split(".")
        for table in tables:
            target = target.setdefault(table, {})
            if not isinstance(target, dict):
                raise ExperimentError(f"--set {setting}: {table} is not a table")
        if value is UNSET:
            target.pop(last, None)
        else:
            target[last] = value
        origin[key] = "--set"
    try:
        return Experiment.model_validate(merged)
    except ValidationError as error:
        found = (mistake(detail, _schema(), where, origin) for detail in error.errors())
        lines = dict.fromkeys(found)
        raise ExperimentError("\ntimesink: ".join(lines)) from None


def _copy(values: Mapping[str, Any]) -> dict[str, Any]:
    """Copy tables, however deep, so that a setting changes none of the caller's."""
    return {
        key: _copy(value) if isinstance(value, Mapping) else value for key, value in values.items()
    }


def _parse_setting(setting: str) -> tuple[str, Any]:
    key, equals, raw = setting.partition("=")
    key = key.strip()
    if not equals or not key:
        raise ExperimentError(
            f"--set {setting}: write it as key=value, e.g. training.batch_size=64"
        )
    schema = schema_of(_schema(), key.split("."))
    if not raw.strip() and schema is not None:
        return key, UNSET
    if schema is not None and schema.get("type") == "string":
        return key, raw.strip().strip("\"'")
    try:
        return key, tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        return key, raw.strip()


@cache
def _schema() -> dict[str, Any]:
    return Experiment.model_json_schema()
