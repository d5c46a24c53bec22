"""`timesink dataset convert`: image files as TFRecords, or as arrays with the first stages done."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from timesink.cli import _options

if TYPE_CHECKING:
    from timesink.datasets.converting import Converted
    from timesink.datasets.stores.array_shards import Render
    from timesink.datasets.stores.plan import Plan, Rendered

NAMES_SHOWN = 10


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "kind",
    type=click.Choice(["tfrecord", "materialized"]),
    required=True,
    help="Encoded images in few files, or arrays.",
)
@click.option(
    "--size",
    type=click.IntRange(8, 4096),
    metavar="N",
    default=200,
    show_default=True,
    help="pipeline.image_size: side of the square the network is fed.",
)
@click.option(
    "--stages",
    metavar="STAGES",
    default="seed000",
    show_default=True,
    help="Of materialized: a preset, or stages with commas between; "
    "those before the first random one are done.",
)
@click.option(
    "--stored",
    type=click.Choice(["uint8", "float32"]),
    default="uint8",
    show_default=True,
    help="Of materialized: within one level of the image files, or exact and 4 × as large.",
)
@click.option(
    "--per-file",
    type=click.IntRange(1),
    metavar="N",
    help="Images a file; by size when left out: 8 MiB of TFRecords, 64 MiB of arrays.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to write; PATH/.timesink when left out.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="How many work at once; as many as there are cores when left out.",
)
@click.option(
    "--max-bad",
    type=click.FloatRange(0, 1),
    metavar="F",
    default=0.01,
    show_default=True,
    help="Share of broken images, which are left out, after which it stops.",
)
@_options.force
@_options.as_json
@click.pass_context
def convert(
    context: click.Context,
    path: Path,
    kind: Literal["tfrecord", "materialized"],
    size: int,
    stages: str,
    stored: Literal["uint8", "float32"],
    per_file: int | None,
    out: Path | None,
    workers: int | None,
    max_bad: float,
    force: bool,
    as_json: bool,
) -> None:
    """Store images in another form, for pipeline.source.

    tfrecord: the image files as they are, many to a file. TensorFlow reads them too: each
    record is a tf.train.Example with image/encoded and image/class/label, from 0.

    materialized: decoded and resized once, with every stage before the first random one
    done; what is random stays online. NumPy opens the files.

    All images of PATH are taken, in a mixed order; which of them an experiment uses is
    its own choice. Stopped at any moment, the same command goes on. --force makes a
    store again that is whole.

    \b
    Examples:
      timesink dataset convert photos --to tfrecord
      timesink dataset convert photos --to tfrecord --per-file 32
      timesink dataset convert photos --to materialized --size 224 --stored float32
    """
    import time

    from timesink.cli._console import err, print_json
    from timesink.cli._progress import progress
    from timesink.datasets.converting import convert as carry_out
    from timesink.datasets.stores.plan import make_plan

    rendered, render = None, None
    if kind == "materialized":
        rendered, render = _rendering(stages, size, stored, workers)
    else:
        _refuse_without_effect(context)
    plan = make_plan(path, kind, rendered, out=out, per_file=per_file)
    started = time.monotonic()
    with progress(err, "converting", len(plan.names), "images") as advance:
        converted = carry_out(
            plan, render=render, force=force, workers=workers, max_bad=max_bad, advance=advance
        )
    elapsed_s = time.monotonic() - started
    facts = _facts(plan, converted, size, elapsed_s)
    if as_json:
        print_json(facts)
        return
    _print(plan, converted, facts)
    _next(path, out, plan, stages)


def _refuse_without_effect(context: click.Context) -> None:
    from click.core import ParameterSource

    from timesink.errors import UsageError

    for name in ("stages", "stored"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"--{name} is of --to materialized: TFRecords hold the image files")


def _rendering(
    stages: str, size: int, stored: Literal["uint8", "float32"], workers: int | None
) -> "tuple[Rendered, Render]":
    """Give what is to be stored, and what makes it without a word of TensorFlow's."""
    from timesink.loaders.storing import rendering

    rendered, run = rendering(_parsed(stages), size, stored, workers=workers)

    def render(paths: Any) -> Any:
        with _quiet():
            import timesink.loaders.prefix  # noqa: F401
        return run(paths)

    return rendered, render


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what TensorFlow says of itself while it is loaded off the screen."""
    import os

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    screen, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(screen, 2)
        os.close(screen)
        os.close(nowhere)


def _parsed(stages: str) -> Any:
    from timesink.errors import ExperimentError
    from timesink.pipelines.stages import parse_stages

    words = split_words(stages)
    if len(words) == 1:
        return parse_stages(words[0])
    try:
        return parse_stages(words)
    except ExperimentError:
        # What is stored may be larger than what the network is fed: a crop stays online.
        try:
            return parse_stages([*words, "random_crop"])
        except ExperimentError:
            pass
        raise


def split_words(stages: str) -> list[str]:
    """Split at the commas that are not between parentheses."""
    words, depth = [""], 0
    for letter in stages:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth <= 0:
            words.append("")
        else:
            words[-1] += letter
    return [word.strip() for word in words]


def _facts(plan: "Plan", converted: "Converted", size: int, elapsed_s: float) -> dict[str, Any]:
    from timesink.cli.dataset._text import printable

    manifest = converted.manifest
    images = sum(shard.records for shard in manifest.shards)
    side = plan.rendered.side if plan.rendered else size
    return {
        "schema_version": 1,
        "path": printable(converted.root),
        "kind": manifest.kind,
        "images": {
            "train": manifest.train_images,
            "validation": manifest.validation_images,
            "left_out": manifest.left_out_images,
        },
        "shards": len(manifest.shards),
        "kept_shards": converted.kept_shards,
        "raw_bytes": manifest.raw_bytes,
        "store_bytes": manifest.store_bytes,
        "ratio": manifest.store_bytes / max(1, manifest.raw_bytes),
        "raw_bytes_per_image": manifest.raw_bytes / max(1, len(plan.names)),
        "store_bytes_per_image": manifest.store_bytes / max(1, images),
        "memory_bytes_per_image": side * side * 3 * 4,
        "image_size": side,
        "stages": list(manifest.stages),
        "dtype": manifest.dtype,
        "elapsed_s": round(elapsed_s, 3),
        "left_out": [
            {"path": printable(name), "fault": fault} for name, fault in converted.left_out
        ],
        "notes": [printable(note) for note in _notes(plan)],
    }


def _notes(plan: "Plan") -> list[str]:
    """Give the notes about the images; nothing is held out here, and that is no news."""
    return [note for note in plan.dataset.notes if "held out" not in note]


def _print(plan: "Plan", converted: "Converted", facts: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from timesink.cli._console import err, out
    from timesink.cli.dataset._text import byte_size, printable

    for note in _notes(plan):
        err.print(f"[yellow]note:[/yellow] {escape(printable(note))}", soft_wrap=True)
    if converted.left_out:
        err.print(f"[yellow]broken images left out: {len(converted.left_out):,}[/yellow]")
        for name, fault in converted.left_out[:NAMES_SHOWN]:
            err.print(f"  {fault}: {escape(printable(name))}", soft_wrap=True)
        if len(converted.left_out) > NAMES_SHOWN:
            err.print(f"  … and {len(converted.left_out) - NAMES_SHOWN:,} more; --json lists all")
    images = sum(shard.records for shard in converted.manifest.shards)
    kept = facts["kept_shards"]
    done = f"{facts['elapsed_s']:.1f} s"
    if kept:
        done = "it was there already" if kept == facts["shards"] else f"{done}, {kept:,} kept"
    out.print(f"\n[bold]{escape(printable(converted.root))}[/bold]", soft_wrap=True)
    files = "file" if facts["shards"] == 1 else "files"
    out.print(f"{images:,} images in {facts['shards']:,} {files}; {done}\n")
    side, dtype = facts["image_size"], facts["dtype"]
    what = "TFRecords" if dtype is None else f"{side}×{side}, {dtype}"
    ratio = facts["memory_bytes_per_image"] / max(1, facts["raw_bytes_per_image"])
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("")
    table.add_column("all", justify="right")
    table.add_column("an image", justify="right")
    table.add_column("")
    for name, total, each, words in (
        ("image files", facts["raw_bytes"], facts["raw_bytes_per_image"], ""),
        (
            what,
            facts["store_bytes"],
            facts["store_bytes_per_image"],
            f"{facts['ratio']:.4g} × the size of the image files",
        ),
        (
            "in memory",
            facts["memory_bytes_per_image"] * images,
            facts["memory_bytes_per_image"],
            f"{ratio:.3g} ×, as {side}×{side} float32",
        ),
    ):
        table.add_row(name, byte_size(total), byte_size(each), words)
    out.print(table)


def _next(path: Path, out: Path | None, plan: "Plan", stages: str) -> None:
    import json
    import shlex

    from rich.markup import escape

    from timesink.cli._console import next_command
    from timesink.cli.dataset._text import printable

    settings = [f"dataset.path={printable(out or path)}", f"pipeline.source={plan.kind}"]
    rendered = plan.rendered
    if rendered is not None:
        words = split_words(stages)
        if rendered.image_size != 200:
            settings.append(f"pipeline.image_size={rendered.image_size}")
        if rendered.dtype != "uint8":
            settings.append(f"pipeline.stored={rendered.dtype}")
        if words != ["seed000"]:
            value = words[0] if len(words) == 1 else json.dumps(words)
            settings.append(f"pipeline.stages={value}")
    words = [word for setting in settings for word in ("--set", setting)]
    next_command(f"timesink run {escape(shlex.join(words))}")
