"""The engine's row counts per operator."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class OperatorRows:
    """The number of rows that left an operator in a batch of a query."""

    query: str
    batch: int
    operator: str
    rows: int


@dataclass(frozen=True)
class OperatorCounts:
    """The counts since the last request; `ended` is the reason if counting has stopped."""

    rows: list[OperatorRows] = field(default_factory=list)
    ended: str = ""
