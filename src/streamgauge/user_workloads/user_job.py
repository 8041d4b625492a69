"""User jobs as workloads: a Python file with one function marked `@job`.

Two mistakes in the function show in its text before Spark starts: a query of its own, and no return. Everything else is
left to Python and Spark, whose messages name the line.
"""

import ast
import inspect
import textwrap
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

from streamgauge.core.errors import InputError, JobError, Problem, Rule, require, require_all
from streamgauge.dataflow.nodes import Flow, Sink, Source, UserJobNode
from streamgauge.jobs import DESCRIPTION, TIME, Description, Input
from streamgauge.loadgen.fields import SHARES_RULE, StreamSpec
from streamgauge.loadgen.replay.files import digest
from streamgauge.loadgen.replay.fit_sample import fit
from streamgauge.results.run import FITTED
from streamgauge.system.user_code import NO_QUERY, ONE_RESULT, WITHOUT_SINK, import_file
from streamgauge.user_workloads.reference import job_columns
from streamgauge.user_workloads.user_workload import SINK, NoParameters, UserWorkload, shares_of
from streamgauge.workloads.registry import Job

_BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.TryStar, ast.With, ast.AsyncWith, ast.Match)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
NO_RETURN = "must return a DataFrame"
_SEVERAL: dict[type, str] = {ast.Dict: "a dictionary", ast.Tuple: "a tuple", ast.List: "a list", ast.Set: "a set"}


@dataclass(frozen=True, kw_only=True)
class UserJob(UserWorkload):
    """A PySpark job from a file."""

    node_kind = UserJobNode

    batch_job: UserJobNode


def user_job(path: Path) -> UserJob:
    """The workload in a file. Raises JobError with the first problem."""
    try:
        return _workload(path)
    except InputError as error:
        raise JobError(error.problems) from None


def _workload(path: Path) -> UserJob:
    module = import_file(path)
    function = _function(path, module)
    description: Description = getattr(function, DESCRIPTION)
    streams, notes = _streams(path, description.inputs)
    columns = job_columns(path, description, streams) if description.reference is not None else None
    if wrong := function_problems(path, function):
        raise JobError(wrong)
    job = UserJobNode(
        tuple(Source(stream.name, stream.schema) for stream in streams), tuple(one.time for one in description.inputs),
        str(path.resolve()), function.__name__, description.keys, description.reach_us, columns,
    )  # fmt: skip
    flow, samples = Flow((Sink(job, SINK, description.mode),)), [one.sample for one in description.inputs if one.sample]
    return UserJob(
        name=path.stem,
        title=path.stem.replace("_", " "),
        summary=(inspect.getdoc(function) or inspect.getdoc(module) or "a user job").partition("\n")[0],
        source=str(path),
        parameters=NoParameters,
        build=lambda parameters, rate_per_s: Job(flow, streams),
        files={path.name: digest(path)} | {str(each): digest(path.resolve().parent / each) for each in samples},
        path=path,
        described={SINK: description},
        batch_job=job,
        notes=(*notes, *description.assumed),
    )


def _function(path: Path, module: Any) -> Any:
    functions = {name: value for name, value in vars(module).items() if inspect.isfunction(value)}
    jobs = {function.__name__: function for function in functions.values() if hasattr(function, DESCRIPTION)}
    local = sorted(name for name, function in functions.items() if function.__module__ == module.__name__)
    got = f"functions without it: {', '.join(local)}" if local else "no function"
    way_out = f"put @job(stream(...)) above {local[0]}" if local else "see examples/ and docs/reference/job-api.md"
    way_out += "; a program with its own source and sink over Kafka: a program.toml (docs/how-to/my-kafka-job.md)"
    rule, setting = "must have one function marked @job", str(path)
    require_all(
        Rule(len(jobs) <= 1, setting, rule, sorted(jobs), "move each function to its own file"),
        Rule(jobs, setting, rule, got, way_out),
    )
    return next(iter(jobs.values()))


def _streams(path: Path, inputs: tuple[Input, ...]) -> tuple[tuple[StreamSpec, ...], tuple[str, ...]]:
    """(the offered streams, notes on fitted samples)."""
    given_shares = [each.share for each in inputs]
    shares = shares_of(given_shares)
    require(shares, "@job share", f"{SHARES_RULE}, or have none at all", given_shares, "share=0.5 on each of two")
    specs, notes = [], []
    for given, share in zip(inputs, shares, strict=True):
        fields = given.fields
        if given.sample is not None:
            sample = fit(path.resolve().parent / given.sample, given.time, named=given.time != TIME)
            fields = sample.fields
            notes += [f"{given.name}{FITTED}{given.sample.name}: {text}" for text in sample.notes]
        specs.append(StreamSpec(given.name, fields, share, given.key))
    return tuple(specs), tuple(notes)


def function_problems(path: Path, function: FunctionType) -> list[Problem]:
    """What shows in a function's text: certain queries; without these, certain results of another kind, or none."""
    source, first_line = inspect.getsourcelines(function)
    definition = ast.parse(textwrap.dedent("".join(source))).body[0]
    if not isinstance(definition, ast.FunctionDef):
        return []

    def problem(node: ast.AST, rule: str, got: str, way_out: str) -> Problem:
        line = first_line + getattr(node, "lineno", 1) - 1
        frame = traceback.FrameSummary(inspect.getsourcefile(function) or str(path), line, function.__name__)
        return Problem(str(path), rule, got, f"{way_out}:\n{''.join(traceback.format_list([frame])).rstrip()}")

    nodes = list(_certain(definition.body))
    queries = [problem(node, NO_QUERY, ast.unparse(node), WITHOUT_SINK) for node in nodes if _starts_query(node)]
    several = [
        problem(node, NO_RETURN, _SEVERAL[type(node.value)], ONE_RESULT)
        for node in nodes
        if isinstance(node, ast.Return) and type(node.value) in _SEVERAL
    ]
    if queries or several or _returns_or_raises(definition.body):
        return queries or several
    way_out = f"end {definition.name}() with return"
    return [problem(definition.body[-1], NO_RETURN, "NoneType (it has no return)", way_out)]


def _certain(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes outside of nested functions that surely run: in no branch, and after none that may end the function."""
    for statement in body:
        is_branch = isinstance(statement, _BRANCHES)
        if not is_branch:
            yield from _own_nodes([statement])
        if isinstance(statement, ast.Return | ast.Raise) or (is_branch and _returns_or_raises([statement])):
            return


def _returns_or_raises(body: Iterable[ast.AST]) -> bool:
    """Whether a value is returned or yielded, or an error raised, anywhere but in nested functions."""
    return any(
        isinstance(node, ast.Raise | ast.Yield | ast.YieldFrom)
        or (isinstance(node, ast.Return) and ast.unparse(node) not in ("return", "return None"))
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
    name, chain = node.func.attr, {each.attr for each in ast.walk(node.func) if isinstance(each, ast.Attribute)}
    return name == "awaitAnyTermination" or (name in ("start", "toTable") and "writeStream" in chain)
