"""The process that makes a store for a study: a request on stdin, one JSON object on stdout.

`python -m timesink.studies.one_store PARENT`; what goes wrong is an answer too.
"""

import json
import os
import sys
from pathlib import Path
from typing import NoReturn

from timesink.datasets.converting import convert
from timesink.datasets.stores.plan import make_plan
from timesink.errors import TimesinkError
from timesink.experiment import parse
from timesink.loaders.storing import rendering
from timesink.pipelines.stages import parse_stages
from timesink.runs.worker import end_with_parent, leave


def main(parent: int) -> NoReturn:
    """Make what the request asks for."""
    end_with_parent(parent)
    request = json.load(sys.stdin)
    out = os.dup(1)
    os.dup2(2, 1)
    asked = parse(request["experiment"], "the request")
    pipeline, path = asked.pipeline, Path(str(asked.dataset.path)).expanduser()
    answer: dict[str, str] = {}
    try:
        rendered, render = None, None
        if pipeline.source == "materialized":
            stages = parse_stages(pipeline.stages)
            rendered, render = rendering(stages, pipeline.image_size, pipeline.stored)
        kind = "tfrecord" if rendered is None else "materialized"
        plan = make_plan(path, kind, rendered, out=Path(request["out"]), per_file=None)  # type: ignore[arg-type]
        convert(plan, render=render, max_bad=asked.dataset.max_bad)
    except TimesinkError as error:
        answer = {"error": str(error)}
    with os.fdopen(out, "w") as file:
        json.dump(answer, file)
    leave(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
