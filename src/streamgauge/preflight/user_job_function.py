"""Two mistakes in a user job's function that its text shows before Spark starts: a query of its own, and no return.

Everything else is left to Python and Spark, whose messages name the line.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FunctionType

from streamgauge.core.errors import Problem
from streamgauge.system.user_code import NO_QUERY, WITHOUT_SINK

_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.Match)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
NO_RETURN = "must return a DataFrame"


def problems(path: Path, function: FunctionType) -> list[Problem]:
    """The queries that a job's function certainly starts; without these, that it never returns a value."""
    source, first_line = inspect.getsourcelines(function)
    definition = ast.parse(textwrap.dedent("".join(source))).body[0]
    if not isinstance(definition, ast.FunctionDef):
        return []

    def problem(node: ast.AST, rule: str, got: str, way_out: str) -> Problem:
        line = first_line + getattr(node, "lineno", 1) - 1
        frame = traceback.FrameSummary(inspect.getsourcefile(function) or str(path), line, function.__name__)
        return Problem(str(path), rule, got, f"{way_out}:\n{''.join(traceback.format_list([frame])).rstrip()}")

    queries = [node for node in _certain(definition.body) if _starts_query(node)]
    if queries:
        return [problem(node, NO_QUERY, ast.unparse(node), WITHOUT_SINK) for node in queries]
    if _returns_or_raises(definition.body):
        return []
    way_out = f"end {definition.name}() with return"
    return [problem(definition.body[-1], NO_RETURN, "NoneType (it has no return)", way_out)]


def _certain(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes outside of nested functions that surely run: in no branch, and after none that may end the function."""
    for statement in body:
        if isinstance(statement, _BRANCHES):
            if _returns_or_raises([statement]):
                return
            continue
        yield from _own_nodes([statement])
        if isinstance(statement, ast.Return | ast.Raise):
            return


def _returns_or_raises(body: Iterable[ast.AST]) -> bool:
    """Whether a value is returned or yielded, or an error raised, anywhere but in nested functions."""
    return any(
        isinstance(node, ast.Raise | ast.Yield | ast.YieldFrom)
        or (isinstance(node, ast.Return) and node.value is not None)
        for node in _own_nodes(body)
    )


def _own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes outside of nested functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, _SCOPES):
            yield from _own_nodes(ast.iter_child_nodes(node))


def _starts_query(node: ast.AST) -> bool:
    """`...writeStream....start()`, or a wait for the end of any query."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "awaitAnyTermination":
        return True
    chain = (each.attr for each in ast.walk(node.func) if isinstance(each, ast.Attribute))
    return node.func.attr in ("start", "toTable") and "writeStream" in chain
