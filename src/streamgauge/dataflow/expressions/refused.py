"""The exception that every rule of an expression raises. It stands alone, so that it does not load sqlglot."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp


class Refused(Exception):
    """An expression that is not allowed: the rule it breaks, the way out, and the node, if known."""

    def __init__(self, rule: str, way_out: str, node: exp.Expression | None = None) -> None:
        super().__init__(rule)
        self.rule, self.way_out, self.node = rule, way_out, node
