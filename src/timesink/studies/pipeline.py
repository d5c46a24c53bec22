"""The study of the input pipeline: seed 000, figure by figure."""

from timesink.studies.figures.accuracy import accuracy
from timesink.studies.figures.batches import sources, workers
from timesink.studies.figures.overlap import overlap
from timesink.studies.figures.seed_figure import SeedFigure
from timesink.studies.figures.stages import stages
from timesink.studies.measured import Measured
from timesink.studies.study import Study


def figures(measured: Measured) -> list[SeedFigure]:
    """Make all of them."""
    by_source = measured.of("sources").done
    return [
        overlap(measured.of("overlap").done),
        accuracy(measured.of("accuracy")),
        workers(measured.of("workers").done),
        stages(measured.of("stages").done),
        sources(
            by_source,
            "tfrecord",
            "Fig. 21",
            "Raw image files against TFRecords",
            "A batch comes quicker from TFRecords than from raw files.",
            "The seed had a TFRecord file for each batch; here each has some 8 MB of images. ",
        ),
        sources(
            by_source,
            "materialized",
            "Fig. 22",
            "Raw image files against preprocessed images",
            "A batch of images that were preprocessed before comes quicker: the hypothesis of "
            "offloading holds.",
            "Decoded and resized before; random brightness, which the seed did before too, is "
            "drawn anew for each epoch here. ",
        ),
    ]


PIPELINE = Study("pipeline", "000", "What the input pipeline takes", figures)
