"""`timesink.pipeline`: somebody's own tf.data.Dataset measured from Python."""

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from timesink.runs.pipeline import Asked, measure_own, own_facts


@dataclass(frozen=True)
class PipelineReport:
    """What was measured; `facts` is what `timesink pipeline --json` prints."""

    facts: dict[str, Any]

    @property
    def images_per_s(self) -> float | None:
        """How fast batches came."""
        rate: float | None = self.facts["images_per_s"]
        return rate

    @property
    def stages(self) -> list[dict[str, Any]]:
        """A row for each stage."""
        rows: list[dict[str, Any]] = self.facts["stages"]
        return rows

    def show(self) -> None:
        """Print it as `timesink pipeline` does."""
        from timesink.cli._pipeline import print_pipeline

        print_pipeline(self.facts)


def pipeline(target: Any, *, seconds: float = 5.0) -> PipelineReport:
    """Measure an input pipeline alone, and the work of each of its stages.

    `target` is a tf.data.Dataset, a function that returns one, or the text
    "package.module:function", which is measured in a process of its own. Ops are put into stages
    by the name scope they stand in, else by their type; what fits nowhere is listed as unplaced.
    """
    asked = Asked(seconds=seconds)
    if isinstance(target, str):
        return PipelineReport(measure_own(target, asked, lambda _: None))
    from timesink.engines.tensorflow.input_alone import Length, measure
    from timesink.engines.tensorflow.own_pipeline import own_batches

    with tempfile.TemporaryDirectory(prefix="timesink-") as place:
        measured = measure(own_batches(target), Length(seconds=seconds), Path(place))
        name = getattr(target, "__name__", type(target).__name__)
        return PipelineReport(own_facts(name, asdict(measured)))
