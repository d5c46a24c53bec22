"""What measuring the input pipeline costs: its counters, which are always on, and a traced window.

The raw pipeline alone, in rounds that alternate: bare, counted, traced. The counters cost less
than such rounds can tell apart, so their time is also summed directly.

    python benchmarks/pipeline_cost.py [--images DIR] [--rounds 10]
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from _rounds import alternate, print_table, pull, ratio
from _training import images as make_images
from timesink.engines.tensorflow import profiler
from timesink.engines.tensorflow.counters import Counters
from timesink.engines.tensorflow.input_alone import SAMPLE_EVERY
from timesink.experiment import load
from timesink.loaders.tfdata import training_batches
from timesink.pipelines.order import training_stream
from timesink.pipelines.source import open_images
from timesink.pipelines.stages import parse_stages

BATCH_SIZE, BATCHES, WARM_UP_BATCHES = 32, 40, 12
MOST_COUNTERS, MOST_TRACED = 0.005, 0.05


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=Path, help="a folder of JPEGs; left out, some are made")
    parser.add_argument("--rounds", type=int, default=10)
    asked = parser.parse_args()
    shares: list[float] = []
    with tempfile.TemporaryDirectory() as place:
        folder = asked.images or make_images(Path(place))

        def bare() -> float:
            return pull(started(folder), BATCHES, BATCH_SIZE)

        def counted() -> float:
            batches = started(folder)
            counters, looked_s, begin = Counters(batches), 0.0, time.perf_counter()
            for number in range(1, BATCHES + 1):
                next(batches)
                if number % SAMPLE_EVERY == 0:
                    before = time.perf_counter()
                    counters.sample()
                    looked_s += time.perf_counter() - before
            took_s = time.perf_counter() - begin
            shares.append(looked_s / took_s)
            return BATCHES * BATCH_SIZE / took_s

        def traced() -> float:
            batches = started(folder)
            trace = profiler.Trace(Path(place), f"trace-{time.monotonic_ns()}")
            rate = pull(batches, BATCHES, BATCH_SIZE)
            trace.stop()
            return rate

        rates = alternate({"bare": bare, "counted": counted, "traced": traced}, asked.rounds)
    print_table(rates, "bare", "the raw pipeline alone")
    share = statistics.median(shares)
    print(f"counters: {100 * share:.3f} % of the time, at most {100 * MOST_COUNTERS:g} % allowed")
    slower, interval = ratio(rates, "bare", "traced")
    print(f"a traced batch takes {slower:.3f} {interval} of a bare one, 1.05 allowed")
    sys.stdout.flush()
    os._exit(share > MOST_COUNTERS or slower > 1 + MOST_TRACED)


def started(folder: Path) -> Iterator[Any]:
    """Give our batches, after the first of them."""
    asked = load(None, [f"dataset.path={folder}"])
    images = open_images(asked).train
    stream = training_stream(images, seed=0, batch_size=BATCH_SIZE, shuffle=True)
    batches = training_batches(
        images,
        parse_stages(asked.pipeline.stages),
        asked.pipeline,
        stream,
        first_position=0,
        last_epoch=10**6,
    )
    for _ in range(WARM_UP_BATCHES):
        next(batches)
    return batches


if __name__ == "__main__":
    main()
