"""What a materialized store holds, and what makes it: a list of stages in, a way to render out."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Literal

from timesink.datasets.stores.array_shards import Render
from timesink.datasets.stores.plan import Rendered
from timesink.errors import MissingExtraError
from timesink.pipelines.stages import Stage, size_after, split_for_store, store_key


def rendering(
    stages: Sequence[Stage],
    image_size: int,
    stored: Literal["uint8", "float32"],
    *,
    workers: int | None = None,
) -> tuple[Rendered, Render]:
    """Give what is to be stored of some stages, and what makes it; TensorFlow is loaded by that."""
    prefix, _ = split_for_store(list(stages), stored)
    side = size_after(prefix, image_size)
    assert side is not None
    if find_spec("tensorflow") is None:
        raise MissingExtraError("rendering images", "cpu")

    def render(paths: Any) -> Any:
        from timesink.loaders.prefix import render as run

        return run(paths, prefix, image_size, stored, workers=workers)

    return Rendered(store_key(prefix), image_size, side, stored), render
