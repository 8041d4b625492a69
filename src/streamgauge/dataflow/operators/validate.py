"""Validation of process nodes, and the types of their lineage columns."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.schema import EVENT_TIME, TYPES
from streamgauge.dataflow.nodes import Process
from streamgauge.dataflow.operators import reference_sql
from streamgauge.dataflow.operators.api import ORDINAL, Processor

Types = dict[str, str]


def check(node: Process, columns: Sequence[Types], setting: str) -> None:
    """Raises InputError with every problem of the node. `columns` are the columns of each input."""
    problems = [
        *_class_problems(node, setting), *_reading_problems(node, columns, setting), *_giving_problems(node, setting),
    ]  # fmt: skip
    if problems:
        raise InputError(problems)
    if node.truth is not None:
        reference_sql.check(node, columns, setting)


def lineage_types(node: Process, available: Types) -> tuple[tuple[str, str], ...]:
    """The lineage columns of the results and their types. `available` are the columns of an input."""
    return tuple((name, "bigint" if column == ORDINAL else available[column]) for name, column in node.lineage)


def _class_problems(node: Process, setting: str) -> Iterator[Problem]:
    class_ = node.operator
    if not (isinstance(class_, type) and issubclass(class_, Processor)):
        yield Problem(setting, "takes a subclass of Processor", class_, "class Mine(Processor): ...")
        return
    for name in sorted(class_.__abstractmethods__):
        yield Problem(setting, f"needs a class that has {name}()", class_.__name__, f"def {name}(self, ...)")
    missing = [name for name in ("snapshot", "restore") if getattr(class_, name) is getattr(Processor, name)]
    if node.keys and missing:
        way_out = " and ".join(f"def {name}(self, ...)" for name in missing)
        yield Problem(setting, "keeps state by key, and its class cannot save it", class_.__name__, way_out)
    try:
        inspect.signature(class_).bind(**dict(node.parameters))
    except TypeError as error:
        way_out = f"the parameters of {class_.__name__}{inspect.signature(class_)}"
        yield Problem(setting, f"cannot make {class_.__name__} ({error})", dict(node.parameters), way_out)


def _reading_problems(node: Process, columns: Sequence[Types], setting: str) -> Iterator[Problem]:
    available_names = dict.fromkeys(name for available in columns for name in available)
    for name in node.reads:
        types = {available[name] for available in columns if name in available}
        if not types:
            yield Problem(
                setting, f"column {name!r} must be one of its input", name, f"one of {', '.join(available_names)}"
            )
        elif len(types) > 1:
            rule = f"column {name!r} must have one type in all inputs"
            way_out = "rename one of them with select before the process"
            yield Problem(setting, rule, ", ".join(sorted(types)), way_out)
        elif name in node.keys and any(name not in available for available in _by_key(node, columns)):
            yield Problem(setting, f"key {name!r} must be in every input", name, "select it before")


def _by_key(node: Process, columns: Sequence[Types]) -> Sequence[Types]:
    """The columns of the inputs that are partitioned by key."""
    return columns[:-1] if node.broadcast else columns


def _giving_problems(node: Process, setting: str) -> Iterator[Problem]:
    if not node.gives:
        yield Problem(setting, "must give at least one column", "none", "gives=Schema.from_types(name='type')")
    for name, type_ in node.gives:
        if type_ not in TYPES:
            yield Problem(setting, f"column {name} has no type of a flow", type_, f"one of {', '.join(TYPES)}")
    output_names = [name for name, _ in node.gives]
    for name in node.identity:
        if name not in (*output_names, EVENT_TIME):
            yield Problem(
                setting, f"identity {name!r} must be a column it gives", name, f"one of {', '.join(output_names)}"
            )
    if node.identity and not node.keys:
        rule = "has an identity, so it must have keys"
        yield Problem(setting, rule, "no keys", "keys='...', or no identity")
    if node.broadcast and (node.identity or not node.keys):
        rule = "broadcasts an input, so it must have keys and no identity"
        yield Problem(setting, rule, "an identity" if node.identity else "no keys", "keys='...' and no identity")
    if node.identity and node.several:
        yield Problem(setting, "has an identity, so several does not apply", "several", "remove several")
