"""An experiment's mistakes and what is allowed instead, in words, from its JSON schema."""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]


def schema_of(whole: Schema, path: Sequence[str | int]) -> Schema | None:
    """Find the JSON schema of a key, or None where there is no such key."""
    node = whole
    for part in path:
        reference = node.get("$ref")
        if reference is not None:
            node = whole["$defs"][str(reference).rsplit("/", 1)[1]]
        found = node.get("properties", {}).get(part) or node.get("additionalProperties")
        if not isinstance(found, dict):
            return None
        node = found
    return node


def mistake(detail: Any, whole: Schema, where: str, origin: Mapping[str, str]) -> str:
    """Say one mistake in one line: where, key, what was found, what is allowed."""
    location = [str(part) for part in detail["loc"]]
    if detail["type"] == "extra_forbidden":
        siblings = _keys_beside(whole, location)
        key = ".".join(location)
        return (
            f"{origin.get(key, where)}: {key}: unknown key"
            f"{did_you_mean(location[-1], siblings)}; allowed here: {', '.join(siblings)}"
        )
    if detail["type"] == "value_error":
        return f"{where}: {detail['ctx']['error']}"
    # A union adds a branch's name to the location: the longest known prefix is the key.
    while location and schema_of(whole, location) is None:
        location.pop()
    key = ".".join(location)
    schema = schema_of(whole, location) or {}
    found = detail["input"]
    allowed = allowed_words(schema)
    hint = did_you_mean(found, schema.get("enum", ())) if isinstance(found, str) else ""
    return f"{origin.get(key, where)}: {key}: found {_show(found)}, allowed: {allowed}{hint}"


def _keys_beside(whole: Schema, location: Sequence[str]) -> list[str]:
    parent = schema_of(whole, location[:-1]) if len(location) > 1 else whole
    assert parent is not None
    if "$ref" in parent:
        name = str(parent["$ref"]).rsplit("/", 1)[1]
        parent = whole["$defs"][name]
    return list(parent["properties"])


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """Suggest the nearest of what there is, if one is near."""
    close = difflib.get_close_matches(found, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _show(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


_TYPES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "array": "a list of texts",
    "object": "a table",
    "null": "nothing",
}


def allowed_words(schema: Schema) -> str:
    """Put the JSON schema of one value into words."""
    if "anyOf" in schema:
        words = [
            allowed_words(branch) for branch in schema["anyOf"] if branch.get("type") != "null"
        ]
        return " or ".join(words)
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    text = _TYPES.get(str(schema.get("type", "object")), "something else")
    named = schema.get("additionalProperties")
    if isinstance(named, Mapping):
        text += f": name = {allowed_words(named)}"
    bounds = [
        f"{sign} {schema[key]}"
        for key, sign in (
            ("minimum", "≥"),
            ("exclusiveMinimum", ">"),
            ("maximum", "≤"),
            ("exclusiveMaximum", "<"),
        )
        if key in schema
    ]
    if bounds:
        text += " " + " and ".join(bounds)
    if "pattern" in schema:
        text += " of letters, digits, '.', '_' and '-'"
    return text
