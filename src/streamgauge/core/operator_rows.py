"""Rows that left each operator, as an engine counts them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class OperatorRows:
    """How many rows left an operator in a batch of a query, as the engine counts them."""

    query: str
    batch: int
    operator: str
    rows: int


@dataclass(frozen=True)
class OperatorCounts:
    """What an engine counted since it was last asked; `ended` says why it counts no more, where it does not."""

    rows: list[OperatorRows] = field(default_factory=list)
    ended: str = ""
