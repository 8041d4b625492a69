"""Columns by name. Spark parses a string as an expression, so names with dots or spaces need quoting."""

from collections.abc import Iterable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

from streamgauge.core.units import backquote


def column(name: str) -> Column:
    """The column of that name, quoted."""
    return F.col(backquote(name))


def columns(names: Iterable[str]) -> list[Column]:
    return [column(name) for name in names]


def ddl(kinds: Mapping[str, str]) -> str:
    """A schema in Spark's DDL format, from column name to type."""
    return ", ".join(f"{backquote(name)} {kind}" for name, kind in kinds.items())
