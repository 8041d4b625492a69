"""What rules of a user's file need beside those of `core.errors`: an order, and the name of the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from streamgauge.core.errors import Rule


def first(rules: Iterable[Rule]) -> list[Rule]:
    """The first broken rule, for rules that presume those before them."""
    return list(islice((rule for rule in rules if not rule.holds), 1))


def in_file(file: str, rules: Iterable[Rule]) -> Iterator[Rule]:
    """Rules whose settings stand in a file of this name."""
    return (rule._replace(setting=f"{file}: {rule.setting}") for rule in rules)
