"""The seeds' figures against ours, as the tables of docs/studies.md: studies in, Markdown out.

Give it the directories of studies that have ended, such as those of

    timesink study layers --quick --out studies/layers
    python benchmarks/seed_figures.py studies/pipeline studies/layers studies/augmentation
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Print a table a study."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="+", type=Path)
    for place in parser.parse_args().studies:
        try:
            facts = json.loads((place / "study.json").read_text())
        except OSError as error:
            sys.exit(f"{place}: not a study that has ended: {error.strerror}")
        print(f"\n### Seed {facts['seed']}: {facts['title'].lower()}\n")
        print("| figure | | what the seed found | this machine | |\n|---|---|---|---|---|")
        for figure in facts["figures"]:
            print(row_of(figure))


def row_of(figure: dict[str, Any]) -> str:
    """Write a figure as a row."""
    keys = ("number", "title", "found", "here", "agreement")
    return "| " + " | ".join(figure[key].replace("|", "\\|") for key in keys) + " |"


if __name__ == "__main__":
    main()
