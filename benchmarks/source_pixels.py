"""Do all sources give the same pixels: the deterministic stages, every image, against the files.

    python benchmarks/source_pixels.py [--images DIR]

`tfrecord`, and `materialized` as float32, must be equal bit for bit; as uint8 within one level.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

from _training import images as make_images
from pipeline_speed import converted
from timesink.experiment import Experiment, load
from timesink.loaders.tfdata import validation_batches
from timesink.pipelines.order import validation_stream
from timesink.pipelines.source import open_images
from timesink.pipelines.stages import parse_stages

SOURCES = {
    "tfrecord": (["pipeline.source=tfrecord"], 0.0),
    "materialized, float32": (["pipeline.source=materialized", "pipeline.stored=float32"], 0.0),
    "materialized, uint8": (["pipeline.source=materialized"], 1 / 255),
}


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=Path, help="a folder of images; left out, some are made")
    asked = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        place = asked.images or make_images(Path(temporary))
        settings = [f"dataset.path={place}", "pipeline.stages=plain"]
        raw = dict(pictures(load(None, settings)))
        print(f"{'source':<24} {'images':>6} {'values':>13} {'equal':>8} {'furthest, levels':>17}")
        for number, (name, (more, most)) in enumerate(SOURCES.items()):
            experiment = load(None, [*settings, *more])
            out = Path(temporary) / f"store-{number}"
            converted(experiment, experiment.pipeline.source, out)
            stored = load(None, [f"dataset.path={out}", "pipeline.stages=plain", *more])
            equal = values = 0
            furthest = 0.0
            for image, pixels in pictures(stored):
                equal += int((pixels == raw[image]).sum())
                values += pixels.size
                furthest = max(furthest, float(np.abs(pixels - raw[image]).max()))
            good &= furthest <= most
            print(
                f"{name:<24} {len(raw):>6} {values:>13,} {equal / values:>8.2%} "
                f"{255 * furthest:>17.3f}"
            )
    sys.stdout.flush()
    os._exit(not good)


def pictures(experiment: Experiment) -> Iterator[tuple[str, np.ndarray]]:
    """Give every training image with its name."""
    images = open_images(experiment).train
    order = validation_stream(images)
    stages = parse_stages(experiment.pipeline.stages)
    for tensors, _, positions in validation_batches(
        images, stages, experiment.pipeline, batch_size=32
    ):
        for pixels, position in zip(tensors.numpy(), positions.numpy().tolist(), strict=True):
            path = Path(images.paths[order.image_at(position)])
            yield f"{path.parent.name}/{path.name}", pixels


if __name__ == "__main__":
    main()
