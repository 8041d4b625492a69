"""Python objects in a flow as JSON: the class of a process and its parameters."""

from __future__ import annotations

import importlib
import math
import operator
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from streamgauge.core.errors import InputError, Problem
from streamgauge.dataflow.operators.api import Processor

CLASS, FIELDS = "class", "fields"
"""The members of an object that stands for an instance of a frozen dataclass."""


def path_of(class_: type) -> str:
    """`module:Class`. Raises InputError unless the class can be imported by it."""
    path = f"{class_.__module__}:{class_.__qualname__}"
    if class_.__module__ != "__main__" and _imported(path) is class_:
        return path
    rule = "cannot be imported by its name, so a flow's JSON form cannot name it"
    raise InputError(Problem("class", rule, path, "define it at the top level of a module that is no script"))


def operator_at(path: str, place: str) -> type[Processor]:
    """The class of a process. Imports its module."""
    class_ = _imported(path)
    if isinstance(class_, type) and issubclass(class_, Processor):
        return class_
    rule = "must be a subclass of Processor that can be imported"
    raise InputError(Problem(place, rule, path, "module:Class, and its package on the Python path"))


def _imported(path: str) -> Any:
    """The object at `module:name`; None if nothing is there."""
    module, _, name = path.partition(":")
    try:
        return operator.attrgetter(name)(importlib.import_module(module))
    except (ImportError, AttributeError, ValueError, TypeError):
        return None


def to_json(value: Any, setting: str) -> Any:
    """A parameter of a process as JSON. Raises InputError if it is no plain value."""
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    if type(value) is tuple:
        return [to_json(item, setting) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: to_json(getattr(value, field.name), setting) for field in fields(value) if field.init}
        return {CLASS: path_of(type(value)), FIELDS: parts}
    rule = "has no JSON form"
    raise InputError(Problem(setting, rule, value, "a finite number, a text, a tuple or a frozen dataclass of these"))


def from_json(value: Any, place: str) -> Any:
    """The inverse of `to_json`."""
    if isinstance(value, list):
        return tuple(from_json(item, f"{place}[{number}]") for number, item in enumerate(value))
    if not isinstance(value, Mapping):
        return value
    class_ = _imported(str(value.get(CLASS)))
    parts: Any = value.get(FIELDS)
    if set(value) != {CLASS, FIELDS} or not (isinstance(class_, type) and _is_frozen(class_)):
        rule = f"must have only the members {CLASS}, a frozen dataclass that can be imported, and {FIELDS}"
        raise InputError(Problem(place, rule, value, f'{{"{CLASS}": "module:Class", "{FIELDS}": {{}}}}'))
    try:
        return class_(**{name: from_json(part, f"{place}.{name}") for name, part in parts.items()})
    except (TypeError, AttributeError) as error:
        names = ", ".join(field.name for field in fields(class_) if field.init)
        raise InputError(Problem(f"{place}.{FIELDS}", f"do not fit the class ({error})", parts, names)) from None


def _is_frozen(class_: type) -> bool:
    return is_dataclass(class_) and bool(class_.__dataclass_params__.frozen)  # type: ignore[attr-defined]
