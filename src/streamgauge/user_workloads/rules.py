"""Rules of a user's file as data: what is wrong stands in a row beside its words, and one loop reports every row."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from streamgauge.core.errors import InputError, Problem


class Rule(NamedTuple):
    """A rule, and whether the value `got` of `setting` breaks it. `way_out`: what to do then."""

    setting: str
    broken: object
    text: str
    got: object
    way_out: str


def first(rules: Iterable[Rule]) -> list[Rule]:
    """The first broken rule, for rules that presume those before them."""
    return list(islice((rule for rule in rules if rule.broken), 1))


def problems_of(rules: Iterable[Rule], file: str = "") -> list[Problem]:
    """The problem of each broken rule. `file`: the name of the file that has the settings."""
    place = f"{file}: " if file else ""
    return [Problem(place + rule.setting, rule.text, rule.got, rule.way_out) for rule in rules if rule.broken]


def require(rules: Iterable[Rule], file: str = "") -> None:
    """Raises InputError with every broken rule."""
    if problems := problems_of(rules, file):
        raise InputError(problems)
