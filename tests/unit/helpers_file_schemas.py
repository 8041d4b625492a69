"""JSON Schemas of files: what they find in a file, and what they are made of."""

import tomllib
from collections.abc import Iterator
from typing import Any

import jsonschema

KEYWORDS = {
    "$schema", "$defs", "$ref", "title", "description", "default", "type", "properties", "patternProperties",
    "additionalProperties", "propertyNames", "minProperties", "required", "items", "minItems", "anyOf", "enum", "const",
    "pattern", "minLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
}  # fmt: skip
"""The keywords of draft 2020-12 that our schemas have."""
_BY_NAME = ("properties", "patternProperties", "$defs")


def found(schema: dict[str, Any], text: str) -> list[str]:
    """Where a file breaks the schema, as dotted names; `(file)` for the file itself."""
    errors = jsonschema.Draft202012Validator(schema).iter_errors(tomllib.loads(text))
    return [".".join(map(str, error.absolute_path)) or "(file)" for error in errors]


def inner_schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """The schema itself, and every one within it."""
    if isinstance(schema, list):
        for each in schema:
            yield from inner_schemas(each)
    elif isinstance(schema, dict):
        yield schema
        for keyword, value in schema.items():
            if keyword not in ("default", "enum", "const", "required"):
                yield from inner_schemas([*value.values()] if keyword in _BY_NAME else value)


def unexplained(schema: dict[str, Any]) -> list[str]:
    """The keys of a table without a description, which an editor would show without a word."""
    return [name for name, value in schema["properties"].items() if not {"description", "$ref"} & value.keys()]


def wrong_defaults(schema: dict[str, Any]) -> list[Any]:
    """The defaults that are not valid by the schema which states them."""
    return [
        each["default"]
        for each in inner_schemas(schema)
        if "default" in each and not jsonschema.Draft202012Validator(each).is_valid(each["default"])
    ]


def assert_well_formed(schema: dict[str, Any]) -> None:
    """Valid by the draft that it names, of its keywords only, with defaults that are valid themselves."""
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)
    assert {keyword for each in inner_schemas(schema) for keyword in each} <= KEYWORDS
    assert wrong_defaults(schema) == []
