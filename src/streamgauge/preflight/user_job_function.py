"""Mistakes in a user job's function that are certain before Spark starts, which takes most of a minute.

Only code that surely runs is judged: no branch, loop, `try` or `with` block, and nothing after one that may return. The
functions of the file that this code names, such as row functions, are judged too.
"""

from __future__ import annotations

import ast
import builtins
import dis
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from streamgauge.core.errors import Problem, near, nearest
from streamgauge.system.user_code import NO_QUERY, WITHOUT_SINK

_READING = ("get", "items", "keys", "values")
"""Methods of `inputs` that change nothing in it."""
_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.Match)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_Definition = ast.FunctionDef | ast.AsyncFunctionDef


def problems(path: Path, function: FunctionType, inputs: Sequence[str]) -> list[Problem]:
    """The certain mistakes of a job's function, and of the functions of its file that it names."""
    tree = ast.parse(path.read_bytes())
    definitions = {_first_line(node): node for node in ast.walk(tree) if isinstance(node, _Definition)}
    definition = definitions.get(function.__code__.co_firstlineno)
    if definition is None or definition.name != function.__code__.co_name:
        return []  # a decorator's wrapper: its code is elsewhere
    check = _Check(path, function, definitions, _declared_globals(tree))
    found = [*check.of_function(function, definition)]
    found += check.inputs(definition, inputs)
    if not check.starts_query:
        found += check.result(definition)
    return found


class _Check:
    """The checks of one file. Each function of it is judged once."""

    def __init__(
        self, path: Path, job: FunctionType, definitions: Mapping[int, _Definition], declared: frozenset[str]
    ) -> None:
        self._path, self._job, self._definitions, self._declared = path, job, definitions, declared
        self._judged: set[CodeType] = set()
        self.starts_query = False

    def of_function(self, function: FunctionType, definition: _Definition) -> Iterator[Problem]:
        """Names, attributes of modules and imports that do not exist, and queries that the function starts."""
        self._judged.add(function.__code__)
        names = _global_names(function.__code__)
        known = {*function.__globals__, *dir(builtins), *self._declared}
        for node in _certain(definition.body):
            if isinstance(node, ast.Name) and names.get(_place(node)) == node.id:
                if node.id not in known:
                    hint = near(node.id, function.__globals__)
                    yield self._problem(node, f"name {node.id!r} is not defined", hint or f"define or import {node.id}")
                else:
                    yield from self._of_named(function.__globals__.get(node.id))
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if names.get(_place(node.value)) == node.value.id:
                    yield from self._of_module(node, function.__globals__.get(node.value.id), node.attr, node.value.id)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                yield from self._of_import(node)
            elif isinstance(node, ast.Call) and function is self._job and _starts_query(node):
                self.starts_query = True
                yield self._problem(node, ast.unparse(node), WITHOUT_SINK, NO_QUERY)

    def inputs(self, definition: _Definition, declared: Sequence[str]) -> Iterator[Problem]:
        """Inputs that `@job` does not declare, if the function only reads the mapping of them."""
        arguments = [*definition.args.posonlyargs, *definition.args.args]
        if len(arguments) < 2:
            return
        inputs = arguments[1].arg
        uses = [node for node in ast.walk(definition) if isinstance(node, ast.Name) and node.id == inputs]
        reads = {id(read) for node in ast.walk(definition) if (read := _only_read(node)) is not None}
        if any(id(use) not in reads for use in uses):
            return
        for node in _certain(definition.body):
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == inputs:
                name = node.slice.value if isinstance(node.slice, ast.Constant) else declared[0]
                if name not in declared:
                    rule = f"must read inputs that @job declares: {', '.join(declared)}"
                    yield self._problem(node, f"no input {name!r}", f'{inputs}["{nearest(name, declared)}"]', rule)

    def result(self, definition: _Definition) -> Iterator[Problem]:
        """A function that returns nothing and raises nothing itself."""
        own = list(_own_nodes(definition.body))
        if any(isinstance(node, ast.Yield | ast.YieldFrom | ast.Raise) for node in own):
            return
        if not any(isinstance(node, ast.Return) and node.value is not None for node in own):
            way_out = f"end {definition.name}() with return"
            yield self._problem(definition.body[-1], "NoneType (it has no return)", way_out, "must return a DataFrame")

    def _of_named(self, value: Any) -> Iterator[Problem]:
        """The problems of a function of the same file, also of one that a decorator wraps as `func` (a UDF)."""
        function = inspect.unwrap(getattr(value, "func", value)) if callable(value) else None
        if not isinstance(function, FunctionType) or function.__code__ in self._judged:
            return
        definition = self._definitions.get(function.__code__.co_firstlineno)
        if function.__code__.co_filename != self._job.__code__.co_filename or definition is None:
            return
        if definition.name == function.__code__.co_name:
            yield from self.of_function(function, definition)

    def _of_module(self, node: ast.AST, module: Any, attribute: str, name: str) -> Iterator[Problem]:
        if not isinstance(module, ModuleType) or hasattr(module, attribute):
            return
        if hasattr(module, "__path__") and _exists(f"{module.__name__}.{attribute}"):
            return
        hint = near(attribute, dir(module))
        got = f"module {module.__name__} has no attribute {attribute!r}"
        yield self._problem(node, got, f"{name}.{hint}" if hint else "correct the name")

    def _of_import(self, node: ast.Import | ast.ImportFrom) -> Iterator[Problem]:
        if isinstance(node, ast.ImportFrom) and node.level:
            return
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        for name in names:
            root = name.partition(".")[0]
            if not _exists(root):
                yield self._problem(node, f"No module named {root!r}", f"install {root}, or correct the name")
            elif isinstance(node, ast.ImportFrom) and name in sys.modules:
                for alias in node.names:
                    if alias.name != "*":
                        yield from self._of_module(node, sys.modules[name], alias.name, name)

    def _problem(self, node: ast.AST, got: str, way_out: str, rule: str = "") -> Problem:
        line = getattr(node, "lineno", self._job.__code__.co_firstlineno)
        around = [one for one in self._definitions.values() if one.lineno <= line <= (one.end_lineno or 0)]
        within = max(around, key=lambda one: one.lineno).name if around else self._job.__name__
        frame = traceback.FrameSummary(str(self._path.resolve()), line, within)
        shown = "".join(traceback.format_list([frame])).rstrip()
        rule = rule or f"{self._job.__name__}() must run without an error"
        return Problem(str(self._path), rule, got, f"{way_out}:\n{shown}")


def _first_line(node: _Definition) -> int:
    """As a code object counts it: from the first decorator."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _declared_globals(tree: ast.AST) -> frozenset[str]:
    """Names that some function may define in the module later."""
    return frozenset(name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names)


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _global_names(code: CodeType) -> dict[tuple[int, int], str]:
    """The names that a function and its nested functions look up in the module or in builtins, by their place."""
    names = {
        (at.positions.lineno, at.positions.col_offset): at.argval
        for at in dis.get_instructions(code)
        if at.opname == "LOAD_GLOBAL"
        and at.positions is not None
        and at.positions.lineno is not None
        and at.positions.col_offset is not None
    }
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names


def _certain(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes that are evaluated whenever the body runs; those of nested functions too."""
    for statement in body:
        if isinstance(statement, _BRANCHES):
            if any(isinstance(node, ast.Return | ast.Raise) for node in _own_nodes([statement])):
                return
            continue
        yield from _certain_in(statement)
        if isinstance(statement, ast.Return | ast.Raise):
            return


def _certain_in(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    if isinstance(node, ast.IfExp):
        yield from _certain_in(node.test)
    elif isinstance(node, ast.BoolOp):
        yield from _certain_in(node.values[0])
    elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        yield from _certain_in(node.generators[0].iter)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        for decorator in node.decorator_list:
            yield from _certain_in(decorator)
        yield from _certain(node.body)
    elif isinstance(node, ast.AnnAssign):
        yield from _certain_in(node.value) if node.value is not None else ()
    elif not isinstance(node, ast.Compare):
        for child in ast.iter_child_nodes(node):
            yield from _certain_in(child)
    else:
        yield from _certain_in(node.left)
        yield from _certain_in(node.comparators[0])


def _own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes outside of nested functions and classes."""
    for node in body:
        yield node
        if not isinstance(node, _SCOPES):
            yield from _own_nodes(ast.iter_child_nodes(node))


def _only_read(node: ast.AST) -> ast.expr | None:
    """What a node reads by `[...]`, or by a method that changes nothing; else None."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return node.value
    return node.value if isinstance(node, ast.Attribute) and node.attr in _READING else None


def _starts_query(call: ast.Call) -> bool:
    """`...writeStream....start()`, or a wait for the end of any query."""
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "awaitAnyTermination":
        return True
    chain = (node.attr for node in ast.walk(call.func) if isinstance(node, ast.Attribute))
    return call.func.attr in ("start", "toTable") and "writeStream" in chain


def _exists(module: str) -> bool:
    """Whether a module can be imported; True if that cannot be known."""
    if module in sys.modules:
        return True
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
    except Exception:
        return True
