"""An experiment written as TOML: complete, with a comment a key where asked."""

import tomlkit
from pydantic import BaseModel
from tomlkit.items import Table

from timesink.experiment import Experiment
from timesink.experiment_words import allowed_words


def to_toml(experiment: Experiment, *, comments: bool) -> str:
    """Write an experiment completely; a key that is left out stands as a comment."""
    document = tomlkit.document()
    _write_section(document, experiment, comments=comments)
    return tomlkit.dumps(document)


def _write_section(
    target: tomlkit.TOMLDocument | Table, section: BaseModel, comments: bool
) -> None:
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            table = tomlkit.table()
            _write_section(table, value, comments)
            if comments and type(value).__doc__:
                target.add(tomlkit.nl())
                target.add(tomlkit.comment(str(type(value).__doc__)))
            target.add(name, table)
            continue
        schema = _words_of(type(section), name)
        note = f"{field.description or schema}"
        if value is None:
            if comments:
                target.add(tomlkit.comment(f"{name} =   # {note}"))
            continue
        item = tomlkit.inline_table() if isinstance(value, dict) else tomlkit.item(value)
        if isinstance(value, dict):
            item.update(value)
        if comments:
            item.comment(note)
        target.add(name, item)


def _words_of(section: type[BaseModel], name: str) -> str:
    return allowed_words(section.model_json_schema()["properties"][name])
