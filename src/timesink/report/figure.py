"""A figure: one chart with its words and its rows; as a part of a page, as PNG, SVG and CSV."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt

from timesink.files import write_atomically
from timesink.report.charts import Drawn
from timesink.report.theme import CONFIG

VEGA_LITE = "_".join(alt.SCHEMA_VERSION.split(".")[:2])
"""The version that Altair writes for; vl-convert carries several."""
FILE_WIDTH = 760
PIXELS_A_POINT = 2
"""Of PNG: sharp in print."""
LINE_ENDS = str.maketrans({0x2028: " ", 0x2029: " "})
"""Two ends of lines that Vega's parser of expressions stumbles over, in any name."""


@dataclass(frozen=True)
class Figure:
    """A chart that is drawn as wide as there is room."""

    name: str
    """Of its files, and of its place on the page."""
    title: str
    note: str
    """What the reader has to know: what is counted, what is left out."""
    rows: Sequence[Mapping[str, Any]]
    chart: Drawn
    legend_on_page: bool = True
    """Otherwise the page lists the colours beside the chart; a file has its legend."""

    def spec(self) -> dict[str, Any]:
        """Give the chart as Vega-Lite for a page."""
        described = self.chart.properties(width="container", description=self.title)
        found: dict[str, Any] = _drawable(described.to_dict())
        found.pop("config", None)  # Altair's own; the page's theme instead
        for layer in found.get("layer", [found]) if not self.legend_on_page else ():
            if "color" in layer["encoding"]:
                layer["encoding"]["color"]["legend"] = None
        return found

    def csv(self) -> str:
        """Give the rows that are drawn."""
        text = io.StringIO()
        columns = list(dict.fromkeys(name for row in self.rows for name in row))
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()

    def write(self, folder: Path, *, force: bool) -> list[Path]:
        """Write the chart as PNG and SVG; gives the files."""
        import vl_convert

        drawn = _drawable(self.chart.properties(width=FILE_WIDTH, title=self.title).to_dict())
        drawn["config"] = {**CONFIG, "background": "white", "padding": 16}
        spec = json.dumps(drawn)
        png, svg = folder / f"{self.name}.png", folder / f"{self.name}.svg"
        write_atomically(
            png, vl_convert.vegalite_to_png(spec, VEGA_LITE, scale=PIXELS_A_POINT), force=force
        )
        write_atomically(svg, vl_convert.vegalite_to_svg(spec, VEGA_LITE), force=force)
        return [png, svg]


def _drawable(spec: Any) -> Any:
    """Give a chart whose names Vega can take."""
    if isinstance(spec, dict):
        return {_drawable(name): _drawable(value) for name, value in spec.items()}
    if isinstance(spec, list):
        return [_drawable(value) for value in spec]
    return spec.translate(LINE_ENDS) if isinstance(spec, str) else spec
