"""Which streams and columns an own job's code names, read without running it: what is misspelt is told before a start.

Only what is sure is told. Streams: `inputs["name"]` with a name that `@job` does not have. Columns: `col("name")`,
`["name"]`, and names given to `select`, `groupBy` and `withWatermark`, on a frame that is an input itself, or one on
which rows were only chosen or columns added since. Beyond a method that changes the columns Spark must tell.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamgauge.errors import Problem

_KEEPS = frozenset({"where", "filter", "withWatermark", "distinct", "coalesce", "repartition", "cache", "withColumn"})
"""Methods after which a frame has the columns it had, and what `withColumn` adds."""
_READS = _KEEPS | {"select", "groupBy", "groupby"}
"""Methods whose arguments speak of the frame's own columns."""
_TAKES_NAMES = frozenset({"select", "groupBy", "groupby", "withWatermark"})
_DEPTH = 50
"""So many calls and names lead back to an input, at most."""


@dataclass(frozen=True)
class _Frame:
    """An input's frame, perhaps with columns added."""

    stream: str
    columns: tuple[str, ...]


def problems(function: Callable[..., Any], columns: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """What `function` (spark, inputs) names and is not there; `columns` are those of each stream."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError):
        return
    definition = tree.body[0]
    if isinstance(definition, ast.FunctionDef) and len(definition.args.args) > 1 and not definition.args.posonlyargs:
        yield from _Names(definition, columns, first - 1).problems()


class _Names:
    """The names in one function's code."""

    def __init__(self, definition: ast.FunctionDef, columns: Mapping[str, Sequence[str]], before: int) -> None:
        self._columns, self._before = columns, before
        self._inputs = definition.args.args[1].arg
        self._nodes = list(ast.walk(definition))
        self._arguments = [node.arg for node in self._nodes if isinstance(node, ast.arg)]
        self._assigned = self._once_assigned()

    def problems(self) -> Iterator[Problem]:
        stored = any(isinstance(node, ast.Name) and node.id == self._inputs and _stored(node) for node in self._nodes)
        if stored or self._arguments.count(self._inputs) > 1:
            return
        for node in self._nodes:
            stream = self._stream(node)
            if stream is not None and stream not in self._columns:
                rule = f"must be a stream of @job ({', '.join(self._columns)})"
                yield self._problem(node, rule, stream, list(self._columns))
            elif isinstance(node, ast.Subscript) and (frame := self._frame(node.value)):
                yield from self._unknown(frame, [node.slice])
            elif isinstance(node, ast.Call) and (frame := self._frame(getattr(node.func, "value", None))):
                yield from self._unknown(frame, list(_named(node)))

    def _once_assigned(self) -> dict[str, ast.expr]:
        """Names that stand for one value throughout."""
        found: dict[str, ast.expr] = {}
        stored = [node.id for node in self._nodes if isinstance(node, ast.Name) and _stored(node)]
        for node in self._nodes:
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
            if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and stored.count(target.id) == 1:
                found[target.id] = node.value
        return {name: value for name, value in found.items() if name not in self._arguments}

    def _stream(self, node: ast.AST | None) -> str | None:
        """The stream of `inputs["stream"]`."""
        named = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == self._inputs
        return _text(node.slice) if named and isinstance(node, ast.Subscript) else None

    def _frame(self, node: ast.AST | None, depth: int = _DEPTH) -> _Frame | None:
        """The input that an expression is, as far as its columns are known."""
        if isinstance(node, ast.Name):
            return self._frame(self._assigned.get(node.id), depth - 1) if depth else None
        stream = self._stream(node)
        if stream is not None:
            return _Frame(stream, tuple(self._columns[stream])) if stream in self._columns else None
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS):
            return None
        frame = self._frame(node.func.value, depth - 1) if depth else None
        if frame is None or node.func.attr != "withColumn":
            return frame
        added = _text(node.args[0]) if node.args else None
        return _Frame(frame.stream, (*frame.columns, added)) if added else None

    def _unknown(self, frame: _Frame, names: list[ast.expr]) -> Iterator[Problem]:
        there = {name.lower() for name in frame.columns}
        for node in names:
            name = _text(node)
            if name is not None and name.isidentifier() and name.lower() not in there:
                rule = f"must be a column of {frame.stream} ({', '.join(frame.columns)})"
                yield self._problem(node, rule, name, list(frame.columns))

    def _problem(self, node: Any, rule: str, name: str, there: list[str]) -> Problem:
        near = difflib.get_close_matches(name, there, 1)
        return Problem(f"line {node.lineno + self._before}", rule, name, f'"{near[0] if near else there[0]}"')


def _named(call: ast.Call) -> Iterator[ast.expr]:
    """The column names in the arguments of a method that reads its frame's columns."""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method not in _READS:
        return
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if method in _TAKES_NAMES:
        yield from arguments[: 1 if method == "withWatermark" else None]
    for argument in arguments:
        for node in ast.walk(argument):
            if isinstance(node, ast.Call) and _called(node) in ("col", "column") and node.args:
                yield node.args[0]


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _text(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
