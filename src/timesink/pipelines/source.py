"""The images that an experiment asks for, from the source that its pipeline reads."""

from timesink.datasets.images import ImageDataset
from timesink.datasets.sources import open_source
from timesink.errors import ExperimentError
from timesink.experiment import Experiment
from timesink.pipelines.stages import parse_stages, split_for_store, store_key


def open_images(asked: Experiment) -> ImageDataset:
    """Find them; a store that was made by other stages, or is not there, is an error."""
    pipeline = asked.pipeline
    stored: tuple[str, ...] = ()
    if pipeline.source == "materialized":
        prefix, _ = split_for_store(parse_stages(pipeline.stages), pipeline.stored)
        stored = store_key(prefix)
    return open_source(
        asked.dataset,
        pipeline.source,
        stages=stored,
        image_size=pipeline.image_size,
        stored=pipeline.stored,
    )


def check_batch(dataset: ImageDataset, batch_size: int) -> None:
    """Refuse batches that the images do not fill."""
    images = len(dataset.train)
    if images < batch_size:
        raise ExperimentError(
            f"training.batch_size: found {batch_size}, "
            f"allowed: at most the {images} training images of {dataset.root}"
        )
