"""How quick augmentation is: ours against Keras' in tf.data and Pillow in PyTorch's DataLoader.

The same files, cores and output: seed 002's `basic` (random resized crop, flip, normalise,
standardise), and it with two layers of RandAugment of magnitude 9, to 224×224 float32 in batches of
64. Every candidate is a process of its own and is asked for rounds that alternate. That of tf.data
is written three ways (`_augmenting_peers.py`), and the quickest of all peers counts.

Keras' layer leaves out identity and draws once for a batch where it is put on batches, so it does
less than RandAugment; Pillow smooths when it resizes to smaller, so it does a little more.

    python benchmarks/augmentation_speed.py [--images DIR] [--rounds 6] [--peer-python PATH]

    python -m venv peers
    peers/bin/pip install torch pillow
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from _augmenting_peers import OURS, PEERS
from _peers import Peer
from _rounds import alternate, best, print_table, ratio
from _training import images as make_images
from timesink import machine
from timesink.experiment import load
from timesink.pipelines.source import open_images

BATCH_SIZE, SIZE = 64, 224
LEAST = 1.0
WARM_UP_S = 2.0
"""While it rests, a candidate fills its queues: AUTOTUNE's hold more than a round takes."""
CATEGORIES = {0: "basic", 2: "basic+randaugment(2, 9)"}
ELSEWHERE = "PyTorch DataLoader, Pillow"
SCRIPT = str(Path(__file__).with_name("_augmenting_peers.py"))


def compare(layers: int, root: Path, rounds: int, peer_python: str) -> bool:
    """Print one category's table; tells whether we are as quick as the best."""
    images = open_images(load(None, [f"dataset.path={root}"])).train
    files = {
        "root": str(root),
        "paths": images.paths,
        "labels": images.labels,
        "size": SIZE,
        "batch_size": BATCH_SIZE,
        "workers": machine.cores(),
        "layers": layers,
    }
    batches = 10 if layers else 40
    peers = {}
    for name in PEERS:
        python = peer_python if name == ELSEWHERE else sys.executable
        peer = Peer(name, python, files, script=SCRIPT)
        if "missing" in peer.about:
            print(f"not installed: {name}: {peer.about['missing']}")
            continue
        check(name, peer.about)
        print(f"{name}: {peer.about['version']}")
        peers[name] = peer
    rates = alternate(
        {
            name: lambda peer=peer: peer.round(batches, warm_up_s=WARM_UP_S)
            for name, peer in peers.items()
        },
        rounds,
    )
    for peer in peers.values():
        peer.end()
    winner = best(rates, (name for name in rates if name != OURS))
    print_table(rates, winner, f"{CATEGORIES[layers]}")
    found, interval = ratio(rates, OURS, winner)
    yes = found >= LEAST
    print(
        f"over the best, {winner}: {found:.3f} {interval}, to reach {LEAST:g}: "
        f"{'yes' if yes else 'NO'}\n",
        flush=True,
    )
    return yes


def check(name: str, about: dict[str, Any]) -> None:
    """Make sure that a candidate does the work: all outputs are alike."""
    good = sorted(about["shape"]) == sorted((BATCH_SIZE, SIZE, SIZE, 3))
    if not good or about["dtype"] != "float32" or not -20 < about["least"] < 0 < about["most"] < 20:
        sys.exit(f"{name} gives {about}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--images", type=Path, help="a folder of JPEGs; left out, 1,280 are made")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--peer-python", default=sys.executable, help="the Python with PyTorch")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as temporary:
        place = asked.images or make_images(Path(temporary), each_class=128)
        done = [compare(n, place, asked.rounds, asked.peer_python) for n in CATEGORIES]
    sys.stdout.flush()
    os._exit(not all(done))


if __name__ == "__main__":
    main()
