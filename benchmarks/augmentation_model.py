"""How well throughput is predicted from input alone and compute alone, and seed 002's findings.

Runs `timesink study augmentation` three times, as a user would:

1. MobileNetV2 and ResNet-50 on this machine's own device: seven categories on every number of cores
   that the study takes, 28 cells or more.
2. A light network (`_networks.py`), whose images take about as long to make as to train on: where
   plain `min` is most wrong.
3. Two networks on an emulated device that takes nothing of the cores, at 224 pixels: what seed 002
   had, a GPU beside few cores.

The model's constant was chosen on other cells (docs/augmentation.md); none of these was fitted to.
Prints every cell with its prediction, the median and the worst error, plain `min` beside them, and
what becomes of the study's three findings.

    python benchmarks/augmentation_model.py [--out DIR] [--image-size 96] [--batch-size 48]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _training import images as make_images

LAYERS = ("basic", *(f"basic+randaugment({n})" for n in (2, 4, 8)))
SEVEN = ("basic", "basic+randaugment(1)", *LAYERS[1:], "basic+autoaugment", "basic+augmix")
MOST_MEDIAN, MOST_WORST, FEWEST_CELLS = 0.10, 0.25, 24


def study(directory: Path, name: str, *words: str) -> dict[str, Any]:
    """Run one study, shown as it goes; gives its study.json."""
    out = directory / name
    command = ["study", "augmentation", "--data", str(directory / "images"), "--out", str(out)]
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "timesink", *command, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        check=False,
    )
    if done.returncode:
        sys.exit(f"the study ended with {done.returncode}")
    facts: dict[str, Any] = json.loads((out / "study.json").read_text())
    return facts


def judge(title: str, cells: list[dict[str, Any]]) -> bool:
    """Print the errors over some cells; tells whether they are as small as asked."""
    errors = [abs(cell["prediction_error"]) for cell in cells]
    plain = [
        min(cell["input_images_per_s"], cell["compute_images_per_s"]) / cell["both_images_per_s"]
        - 1
        for cell in cells
    ]
    median, worst = statistics.median(errors), max(errors)
    yes = median <= MOST_MEDIAN and worst <= MOST_WORST
    print(
        f"{title}, {len(cells)} cells: error of the model, median {median:.1%}, worst {worst:.1%}; "
        f"of plain min, median {statistics.median(plain):.1%}, worst {max(plain):.1%}"
        f"\n  to reach {MOST_MEDIAN:.0%} and {MOST_WORST:.0%}: {'yes' if yes else 'NO'}"
    )
    return yes


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, help="kept there, and gone on with if it was cut")
    parser.add_argument("--image-size", type=int, default=96)
    parser.add_argument("--batch-size", type=int, default=48)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as temporary:
        directory = asked.out or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        if not (directory / "images").exists():
            make_images(directory, each_class=64)
        own = study(
            directory,
            "own",
            *("--categories", "; ".join(SEVEN)),
            *("--batch-sizes", str(asked.batch_size)),
            *("--set", f"pipeline.image_size={asked.image_size}"),
        )
        light = study(
            directory,
            "light",
            *("--networks", "_networks:light"),
            *("--categories", "; ".join(LAYERS)),
            *("--batch-sizes", str(asked.batch_size)),
            *("--set", "pipeline.image_size=160"),
        )
        emulated = study(
            directory,
            "emulated",
            *("--networks", "_networks:small,_networks:large"),
            *("--categories", "; ".join(LAYERS)),
            *("--batch-sizes", "32"),
        )
    print("\n" + "=" * 80)
    studies = {"own device": own, "light network": light, "emulated device": emulated}
    everything = [cell for facts in studies.values() for cell in facts["cells"]]
    done = [
        *(judge(title, facts["cells"]) for title, facts in studies.items()),
        judge("all", everything),
        len(own["cells"]) >= FEWEST_CELLS,
    ]
    for title, facts in studies.items():
        print(f"\n{title}:")
        for finding in facts["findings"]:
            print(f"  {finding['text']}")
    sys.exit(not all(done))


if __name__ == "__main__":
    main()
