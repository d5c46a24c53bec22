"""The reference of the experiment file: each key with what it may be, its default, its meaning."""

import json
from pathlib import Path

from pydantic import BaseModel

from timesink.experiment import Experiment
from timesink.experiment_words import allowed_words, schema_of

PAGE = Path(__file__).parents[1] / "docs" / "experiment.md"
HEAD = "| key | may be | left out | meaning |\n|---|---|---|---|\n"


def keys(model, path=()):
    """List the keys of a table with their defaults and meanings, the tables in it opened."""
    for name, field in model.model_fields.items():
        if isinstance(field.default, BaseModel):
            yield from keys(type(field.default), (*path, name))
        else:
            yield (*path, name), field.default, field.description


def reference():
    """Write the table."""
    schema = Experiment.model_json_schema()
    rows = []
    for place, default, meaning in keys(Experiment):
        allowed = allowed_words(schema_of(schema, place))
        shown = "" if default is None else f"`{json.dumps(default)}`"
        cells = (f"`{'.'.join(place)}`", allowed, shown, meaning or "")
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return HEAD + "\n".join(rows) + "\n"


def test_the_page_has_every_key_as_the_program_has_it():
    assert reference() in PAGE.read_text(), f"docs/experiment.md should hold:\n{reference()}"
