"""What a process is refused for, and the types of what it carries."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.lineage_columns import EVENT_TIME
from streamgauge.core.schema import TYPES
from streamgauge.dataflow.nodes import Process
from streamgauge.dataflow.operators import reference_sql
from streamgauge.dataflow.operators.api import ORDINAL, Processor

Types = dict[str, str]


def check(node: Process, columns: Sequence[Types], setting: str) -> None:
    """Raises InputError with every problem of the node; `columns` is what each input gives."""
    problems = [
        *_class_problems(node, setting), *_reading_problems(node, columns, setting), *_giving_problems(node, setting),
    ]  # fmt: skip
    if problems:
        raise InputError(problems)
    if node.truth is not None:
        reference_sql.check(node, columns, setting)


def lineage_types(node: Process, available: Types) -> tuple[tuple[str, str], ...]:
    """The lineage columns of the results; `available` is what an input gives."""
    return tuple((name, "bigint" if column == ORDINAL else available[column]) for name, column in node.lineage)


def _class_problems(node: Process, setting: str) -> Iterator[Problem]:
    made = node.operator
    if not (isinstance(made, type) and issubclass(made, Processor)):
        yield Problem(setting, "takes a class made from Processor", made, "class Mine(Processor): ...")
        return
    for name in sorted(made.__abstractmethods__):
        yield Problem(setting, f"needs a class that has {name}()", made.__name__, f"def {name}(self, ...)")
    missing = [name for name in ("snapshot", "restore") if getattr(made, name) is getattr(Processor, name)]
    if node.keys and missing:
        way_out = " and ".join(f"def {name}(self, ...)" for name in missing)
        yield Problem(setting, "keeps state by key, and its class cannot save it", made.__name__, way_out)
    try:
        inspect.signature(made).bind(**dict(node.parameters))
    except TypeError as error:
        way_out = f"the parameters of {made.__name__}{inspect.signature(made)}"
        yield Problem(setting, f"cannot make {made.__name__} ({error})", dict(node.parameters), way_out)


def _reading_problems(node: Process, columns: Sequence[Types], setting: str) -> Iterator[Problem]:
    known = dict.fromkeys(name for available in columns for name in available)
    for name in node.reads:
        found = {available[name] for available in columns if name in available}
        if not found:
            yield Problem(setting, f"column {name!r} must be one of its input", name, f"one of {', '.join(known)}")
        elif len(found) > 1:
            rule = f"column {name!r} must have one type in all inputs"
            yield Problem(setting, rule, ", ".join(sorted(found)), "select one of them under another name before")
        elif name in node.keys and any(name not in available for available in _by_key(node, columns)):
            yield Problem(setting, f"key {name!r} must be in every input", name, "select it before")


def _by_key(node: Process, columns: Sequence[Types]) -> Sequence[Types]:
    """Of the inputs whose rows go to the instance of their key."""
    return columns[:-1] if node.broadcast else columns


def _giving_problems(node: Process, setting: str) -> Iterator[Problem]:
    if not node.gives:
        yield Problem(setting, "must give at least one column", "none", "gives=Schema.of(name='type')")
    for name, type_ in node.gives:
        if type_ not in TYPES:
            yield Problem(setting, f"column {name} has no type of a flow", type_, f"one of {', '.join(TYPES)}")
    known = [name for name, _ in node.gives]
    for name in node.identity:
        if name not in (*known, EVENT_TIME):
            yield Problem(setting, f"identity {name!r} must be a column it gives", name, f"one of {', '.join(known)}")
    if node.identity and not node.keys:
        rule = "states times itself, so it keeps state, and has no keys"
        yield Problem(setting, rule, "no keys", "keys='...', or no identity")
    if node.broadcast and (node.identity or not node.keys):
        rule = "sends an input to every instance, so it has keys, and its results come from rows of the other inputs"
        yield Problem(setting, rule, "an identity" if node.identity else "no keys", "keys='...' and no identity")
    if node.identity and node.several:
        yield Problem(setting, "has an identity, so results do not come from rows", "several", "no several")
