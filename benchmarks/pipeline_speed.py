"""How quick the input pipeline is: against tf.data by hand, other loaders, and its own sources.

1. Our `raw` pipeline against the best tf.data pipeline that an expert writes for the same output
   (`_experts.py`): 200×200 float32 in [0, 1] with random brightness, shuffled, batches of 32.
   All experts run a few rounds; the three quickest and ours run the rest, and the best counts.
2. On the same files and cores, where installed: PyTorch's DataLoader with Pillow, OpenCV in
   threads, DALI on the CPU, each in a process of its own (`_peers.py`). Pillow smooths when it
   resizes to smaller, and OpenCV rounds to levels: neither output is exactly ours.
3. `materialized` and `tfrecord` against `raw`, warm; `tfrecord` against `raw`, cold: before each
   measurement the files are dropped from the page cache, and one epoch is timed.
4. Converting to `materialized` against the pipeline's own reading, decoding and resizing.

    python benchmarks/pipeline_speed.py [--images DIR] [--rounds 8] [--peer-python PATH]
        [--part others|sources]

Peers need not be installed beside TensorFlow: --peer-python names the Python that has them.

    python -m venv peers
    peers/bin/pip install torch pillow opencv-python-headless nvidia-dali-cuda120
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

from _experts import EXPERTS
from _peers import PEERS, Peer
from _rounds import Rates, alternate, best, print_table, pull, ratio
from _training import images as make_images
from timesink import machine, page_cache
from timesink.datasets import converting
from timesink.datasets.converting import Converted
from timesink.datasets.images import ImageSet
from timesink.datasets.stores.plan import Kind, Rendered, make_plan
from timesink.errors import RunError
from timesink.experiment import Experiment, load
from timesink.loaders.prefix import render
from timesink.loaders.tfdata import training_batches
from timesink.pipelines.order import training_stream
from timesink.pipelines.source import open_images
from timesink.pipelines.stages import parse_stages, size_after, split_for_store

BATCH_SIZE = 32
LEAST_OF_EXPERT = 0.98
LEAST_MATERIALIZED = 4.0
LEAST_TFRECORD = 1.0
LEAST_CONVERSION = 0.9
FINALISTS = 3
OURS = "timesink"
ENDLESS = 10**6
COPIES = 3
WARM_UP_BATCHES = 12


def ours(asked: Experiment) -> Iterator[Any]:
    """Give our batches, endlessly."""
    images = open_images(asked).train
    stages = parse_stages(asked.pipeline.stages)
    stream = training_stream(images, seed=0, batch_size=BATCH_SIZE, shuffle=asked.pipeline.shuffle)
    return training_batches(
        images, stages, asked.pipeline, stream, first_position=0, last_epoch=ENDLESS
    )


def measured(make: Callable[[], Iterator[Any]], count: int) -> float:
    """Measure a pipeline that is made for it: an idle one fills its queues, gigabytes in all."""
    batches = make()
    for _ in range(WARM_UP_BATCHES):
        next(batches)
    return pull(batches, count, BATCH_SIZE)


def check(name: str, shape: Any, dtype: str, least: float, most: float, mean: float) -> None:
    """Make sure that a candidate does the work: all outputs are alike."""
    size = load(None).pipeline.image_size
    good = sorted(shape) == sorted((BATCH_SIZE, size, size, 3)) and dtype == "float32"
    if not good or not 0 <= least < most <= 1 or not 0.2 < mean < 0.8:
        sys.exit(f"{name} gives {shape} {dtype} in [{least}, {most}], mean {mean}")


def check_batches(name: str, batches: Iterator[Any]) -> None:
    """Look at some batches of a candidate in this process."""
    values = np.stack([next(batches)[0] for _ in range(4)])
    extremes = float(values.min()), float(values.max()), float(values.mean())
    check(name, values.shape[1:], str(values.dtype), *extremes)


def against_experts(asked: Experiment, rounds: int, peer_python: str) -> bool:
    """Print parts 1 and 2; tells whether we are as quick as the best expert."""
    images = open_images(asked).train
    size, cores = asked.pipeline.image_size, machine.cores()
    count = len(images) // BATCH_SIZE
    written = {
        name: expert.dataset(images.paths, images.labels, size, BATCH_SIZE, cores)
        for name, expert in EXPERTS.items()
    }
    makers: dict[str, Callable[[], Iterator[Any]]] = {
        OURS: lambda: ours(asked),
        **{name: lambda dataset=dataset: iter(dataset) for name, dataset in written.items()},
    }
    for name, make in makers.items():
        check_batches(name, make())
    candidates = {name: lambda make=make: measured(make, count) for name, make in makers.items()}
    first = alternate({name: candidates[name] for name in EXPERTS}, max(2, rounds // 4))
    print_table(first, best(first, iter(EXPERTS)), "1. experts")
    finalists = sorted(EXPERTS, key=lambda name: -np.median(first[name]))[:FINALISTS]
    files = {
        "paths": images.paths,
        "labels": images.labels,
        "size": size,
        "batch_size": BATCH_SIZE,
        "workers": cores,
    }
    peers = {name: Peer(name, peer_python, files) for name in PEERS}
    for name, peer in list(peers.items()):
        if "missing" in peer.about:
            print(f"not installed: {name}: {peer.about['missing']}")
            del peers[name]
            continue
        about = peer.about
        check(name, about["shape"], about["dtype"], about["least"], about["most"], about["mean"])
        print(f"{name}: {about['version']}")
    rates = alternate(
        {
            **{name: candidates[name] for name in (OURS, *finalists)},
            **{name: lambda peer=peer: peer.round(count) for name, peer in peers.items()},
        },
        rounds,
    )
    for peer in peers.values():
        peer.end()
    winner = best(rates, iter(finalists))
    print_table(rates, winner, "2. over the best expert")
    return reached("raw over the best expert", rates, OURS, winner, LEAST_OF_EXPERT)


def against_raw(asked: dict[str, Experiment], rounds: int) -> list[bool]:
    """Print part 3; tells which of the sources are as quick as they should be."""
    count = len(open_images(asked["raw"]).train) // BATCH_SIZE
    counts = dict.fromkeys(asked, count) | {"materialized": 4 * count}
    warm = alternate(
        {
            source: lambda source=source: measured(lambda: ours(asked[source]), counts[source])
            for source in asked
        },
        rounds,
    )
    print_table(warm, "raw", "3. sources, warm, over raw")
    done = [
        reached("materialized over raw, warm", warm, "materialized", "raw", LEAST_MATERIALIZED),
        reached("tfrecord over raw, warm", warm, "tfrecord", "raw", LEAST_TFRECORD),
    ]
    from_disk: dict[str, list[float]] = {"raw": [], "tfrecord": []}

    def epoch_from_disk(source: str) -> float:
        files = page_cache.files_of(open_images(asked[source]).train)
        some = ours(asked[source])
        dropped = page_cache.drop(files)
        before = page_cache.disk_read_bytes() or 0
        rate = pull(some, count, BATCH_SIZE)
        read_bytes = (page_cache.disk_read_bytes() or 0) - before
        from_disk[source].append(read_bytes / dropped.total_bytes)
        return rate

    try:
        cold = alternate(
            {source: lambda source=source: epoch_from_disk(source) for source in from_disk}, rounds
        )
    except RunError as error:
        print(f"cold: not measured: {error}")
        return done
    print_table(cold, "raw", "3. sources, cold, over raw")
    for source, shares in from_disk.items():
        print(f"{source}: read from the disk, of its files' bytes: {np.median(shares):.2f}")
    return [*done, reached("tfrecord over raw, cold", cold, "tfrecord", "raw", LEAST_TFRECORD)]


def conversion(images: ImageSet, directory: Path, rounds: int) -> bool:
    """Print part 4; tells whether converting is as quick as it should be.

    Both are timed from nothing to the last image, the building of their graphs included; on
    several links to each image, so that beginning and end weigh little.
    """
    links = directory / "links"
    for number, folder in enumerate(sorted({Path(path).parent for path in images.paths})):
        for copy in range(COPIES):
            link = links / "train" / f"{copy}-{number}"
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(folder)
    asked = load(None, [f"dataset.path={links}", "dataset.validation_fraction=0"])
    plain = load(
        None,
        [f"dataset.path={links}", "dataset.validation_fraction=0", "pipeline.stages=plain"],
    )
    count = len(open_images(plain).train) // BATCH_SIZE

    def decode_and_resize() -> float:
        begin = time.perf_counter()
        pull(ours(plain), count, BATCH_SIZE)
        return count * BATCH_SIZE / (time.perf_counter() - begin)

    def convert() -> float:
        begin = time.perf_counter()
        made = converted(asked, "materialized", directory / "again")
        took_s = time.perf_counter() - begin
        shutil.rmtree(directory / "again")
        return (made.manifest.train_images + made.manifest.validation_images) / took_s

    rates = alternate({"decode, resize": decode_and_resize, "convert": convert}, rounds)
    print_table(rates, "decode, resize", "4. conversion to materialized")
    what = "conversion over decode and resize"
    return reached(what, rates, "convert", "decode, resize", LEAST_CONVERSION)


def converted(asked: Experiment, kind: Kind, out: Path | None = None) -> Converted:
    """Make a store of the images."""
    pipeline = asked.pipeline
    prefix, _ = split_for_store(parse_stages(pipeline.stages), pipeline.stored)
    rendered = Rendered(
        stages=tuple(map(str, prefix)),
        image_size=pipeline.image_size,
        side=size_after(prefix, pipeline.image_size) or pipeline.image_size,
        dtype=pipeline.stored,
    )
    plan = make_plan(
        Path(str(asked.dataset.path)),
        kind,
        rendered if kind == "materialized" else None,
        out=out,
        per_file=None,
    )
    return converting.convert(
        plan, render=lambda paths: render(paths, prefix, pipeline.image_size, pipeline.stored)
    )


def reached(what: str, rates: Rates, name: str, over: str, least: float) -> bool:
    """Print one figure beside what it should be."""
    found, interval = ratio(rates, name, over)
    yes = found >= least
    print(f"{what}: {found:.3f} {interval}, to reach {least:g}: {'yes' if yes else 'NO'}")
    return yes


def images_in(directory: Path, given: Path | None) -> Path:
    """Make images, or give those of a folder another place, so that nothing is written there."""
    place = directory / "images"
    if given is None:
        return make_images(directory, each_class=128)
    place.mkdir()
    for found in given.resolve().iterdir():
        if not found.name.startswith("."):
            (place / found.name).symlink_to(found)
    return place


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=Path, help="a folder of JPEGs; left out, 1,280 are made")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--peer-python", default=sys.executable, help="the Python with the peers")
    parser.add_argument("--part", choices=("others", "sources"), help="only 1, 2 or only 3, 4")
    asked = parser.parse_args()
    done: list[bool] = []
    # On a disk: /tmp may be memory.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as temporary:
        directory = Path(temporary)
        place = images_in(directory, asked.images)
        sources = {
            source: load(None, [f"dataset.path={place}", f"pipeline.source={source}"])
            for source in ("raw", "tfrecord", "materialized")
        }
        raw = sources["raw"]
        page_cache.warm(page_cache.files_of(open_images(raw).train))
        if asked.part != "sources":
            done.append(against_experts(raw, asked.rounds, asked.peer_python))
        if asked.part != "others":
            for kind in ("tfrecord", "materialized"):
                converted(raw, kind)
            done += against_raw(sources, asked.rounds)
            done.append(conversion(open_images(raw).train, directory, asked.rounds))
    sys.stdout.flush()
    os._exit(not all(done))  # taking iterators apart would wait for autotune's sleeping threads


if __name__ == "__main__":
    main()
