"""Columns by name: Spark takes a text for an expression, in which a dot or a blank is no part of a name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamgauge.core.units import backquote

Value = TypeVar("Value")


def column(name: str) -> Column:
    """The column of that name, whatever is in it."""
    return F.col(backquote(name))


def columns(names: Iterable[str]) -> list[Column]:
    return [column(name) for name in names]


def by_reference(columns_: Mapping[str, Value]) -> dict[str, Value]:
    """What columns are, by the expressions that are one of them and nothing more."""
    plain = {name: value for name, value in columns_.items() if name.isidentifier()}
    return plain | {backquote(name): value for name, value in columns_.items()}


def ddl(kinds: Mapping[str, str]) -> str:
    """A schema as Spark reads it: column name to type."""
    return ", ".join(f"{backquote(name)} {kind}" for name, kind in kinds.items())
