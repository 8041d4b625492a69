"""The JSON Schema of experiment files, and how one is made of a model that reads a file.

Editors complete keys and check values by it. It refuses unknown keys, wrong types and wrong choices. Rules between
settings, and which command takes which setting, are left to the reader of the file.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from streamgauge.config.experiment import SETTINGS, TABLES_OF_USER, Experiment
from streamgauge.config.file_terms import text_in_file_terms
from streamgauge.config.matrix import FIXED
from streamgauge.config.setting_info import COMMANDS, TABLES, SettingInfo

Schema = dict[str, Any]
_TOP, _PARTS = "#/properties", "#/$defs"
_OF_COMMAND_LINE = {each.name for each in fields(SettingInfo)}
"""What a setting's field says for the command line."""
_BOUNDS = {"gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
"""Bounds that pydantic leaves under its own names behind a parser of ours."""


class _FileSchema(GenerateJsonSchema):
    """What a file can hold: no null, which TOML lacks, and only defaults that a line can state."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def nullable_schema(self, schema: Any) -> Schema:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> Schema:
        default = schema.get("default")
        if isinstance(default, str | float | int) and default != "":
            return super().default_schema(schema)
        return self.generate_inner(schema["schema"])


def schema_of(type_: Any) -> Schema:
    """The JSON Schema (draft 2020-12) of what a model or a dataclass reads from a file."""
    schema = TypeAdapter(type_).json_schema(schema_generator=_FileSchema)
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema}


def experiment_schema() -> Schema:
    """The JSON Schema of an experiment file."""
    schema = schema_of(Experiment)
    top, parts = schema["properties"], schema["$defs"]
    sections = {name: parts[_part_of(value)]["properties"] for name, value in top.items() if "$ref" in value}
    for name, info in SETTINGS.items():
        section, _, key = name.rpartition(".")
        table = sections[section] if section else top
        table[key] = _setting(table[key], info)
    for name, keys in TABLES.items():
        others = {key: {"$ref": f"{_TOP}/{meant}"} for key, meant in keys.items() if meant != name}
        top[name] = {"anyOf": [top[name], closed({"name": top[name], **others})]}
    varied = [name for name in top if name not in (*FIXED, "matrix", "paper", "quick")]
    parts["Cell"] = _of_settings({name: {"$ref": f"{_TOP}/{name}"} for name in varied})
    for entries in ("include", "exclude"):
        sections["matrix"][entries]["items"] = {"$ref": f"{_PARTS}/Cell"}
    parts["Matrix"] |= _of_settings({name: _varied(name, top[name], sections) for name in varied} | sections["matrix"])
    top["kind"] = {"const": "experiment", "description": "what the file is, beside files of programs"}
    return {**schema, "title": "Experiment file of streamgauge"}


def closed(properties: Schema) -> Schema:
    """A table that has no other keys."""
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _of_settings(properties: Schema) -> Schema:
    """A table of settings that also takes quoted names with dots, such as `"load.rate"`."""
    return {**closed(properties), "patternProperties": {r"\.": {}}}


def _part_of(reference: Schema) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _setting(value: Schema, info: SettingInfo) -> Schema:
    """A setting's value with its help, its defaults and its commands in words."""
    commands = ", ".join(command for command in COMMANDS if command in info.commands)
    text = f"{info.help.removesuffix('; repeatable')}. Default: {info.stated_defaults()}. Commands: {commands}."
    shown = {_BOUNDS.get(key, key): each for key, each in value.items() if key not in _OF_COMMAND_LINE}
    shown["description"] = text_in_file_terms(text)
    depends = info.default_text or any("default" in changes for changes in info.per_command.values())
    if info.default is not None and not depends:
        shown["default"] = int(info.default) if value.get("type") == "integer" else info.default
    return shown


def _varied(name: str, value: Schema, sections: Mapping[str, Schema]) -> Schema:
    """A setting in a matrix: a list of its values. A section or a table has such lists."""
    if name in sections:
        return closed({key: _list_of(f"{_PARTS}/{_part_of(value)}/properties/{key}") for key in sections[name]})
    if name in TABLES:
        table = closed({key: _varied_setting(meant) for key, meant in TABLES[name].items()})
        return {"anyOf": [_list_of(f"{_TOP}/{name}"), table]}
    return _varied_setting(name)


def _varied_setting(name: str) -> Schema:
    """The same for a setting outside of sections; a table of the user's names may vary as a whole, or by entry."""
    return {"type": ["array", "object"]} if name in TABLES_OF_USER else _list_of(f"{_TOP}/{name}")


def _list_of(pointer: str) -> Schema:
    return {"type": "array", "minItems": 1, "items": {"$ref": pointer}}
