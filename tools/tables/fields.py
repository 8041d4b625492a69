"""Lists of the fields of result files, made from the docstring below each field of the models in `results`.

A field without such a docstring is an error, so that no field of a result is left unexplained.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import re
import typing
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic import BaseModel

from streamgauge.artifacts import series_files
from streamgauge.results.breakdown import LatencyBreakdown
from streamgauge.results.codes import StudyHead
from streamgauge.results.comparison import Comparison, ScaleComparison
from streamgauge.results.matrix import CellFigures, MatrixResult, PublishedTable, SinkFigures
from streamgauge.results.profile import OperatorProfile
from streamgauge.results.run import Result
from streamgauge.results.scalability import ScaleResult
from streamgauge.results.scorecard import Scorecard

FILES: Mapping[str, tuple[type[BaseModel], tuple[str, ...]]] = {
    "result.json": (Result, (
        "verdict", "rate", "latency, sinks", "backlog, lag, driver", "verification", "search",
        "processes, phases, input, data, operators",
    )),
    "each study": (StudyHead, ()),
    "characterization.json": (OperatorProfile, ("input, operators, ways, apply, applied, thesis, memory",)),
    "anatomy.json": (LatencyBreakdown, ("trials",)),
    "matrix.json": (MatrixResult, ("cells, published, sweep",)),
    "scale.json": (ScaleResult, ("cells", "capacities, demands, fits, published")),
    "compare --json": (Comparison, ("a, not_the_same, figures, gates",)),
    "compare of two studies --json": (ScaleComparison, ("a, not_the_same, capacities, demands",)),
    "scorecard --json": (Scorecard, ("studies, criteria, ratings, picks",)),
}  # fmt: skip
"""File to its model, and to the lists of what its top-level fields hold."""


class ResultField(NamedTuple):
    """A field of a result file: its path with `[]` for lists, its model's class, and the model that it holds."""

    path: str
    owner: type[BaseModel]
    name: str
    holds: type[BaseModel] | None


@functools.cache
def docstrings(model: type[BaseModel]) -> Mapping[str, str]:
    """The docstring below each field that the class itself declares."""
    source = ast.parse(inspect.getsource(inspect.getmodule(model)))  # type: ignore[arg-type]
    body = next(node.body for node in source.body if isinstance(node, ast.ClassDef) and node.name == model.__name__)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }  # fmt: skip


def meaning(model: type[BaseModel], name: str) -> str:
    """The docstring of a field, from the class that declares it; LookupError without one."""
    for owner in model.__mro__:
        if name in vars(owner).get("__annotations__", {}):
            if text := docstrings(owner).get(name):
                return text
            raise LookupError(f"{owner.__module__}.{owner.__name__}.{name} has no docstring below it")
    raise LookupError(f"{model.__name__} has no field {name}")


def held(annotation: object) -> tuple[type[BaseModel] | None, str]:
    """(the model that a field holds, the mark of its path: `[]` for many, `.NAME` by name)."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    for part in inner:
        model, mark = held(part)
        if model is not None:
            return model, "[]" if origin is tuple else ".*" if origin is dict else mark
    return None, ""


def result_fields(model: type[BaseModel], prefix: str = "") -> Iterator[ResultField]:
    """Every field of a file, depth first. What is held more than once is walked at each field."""
    for name, field in model.model_fields.items():
        inner, mark = held(field.annotation)
        yield ResultField(f"{prefix}{name}", model, name, inner)
        if inner is not None:
            yield from result_fields(inner, f"{prefix}{name}{mark}.")


def homes(model: type[BaseModel]) -> dict[type[BaseModel], str]:
    """Each model in a file to the path at which its fields are explained: the least deep, a list before one."""
    found: dict[type[BaseModel], str] = {}
    for field in result_fields(model):
        if field.holds is not None:
            old = found.get(field.holds)
            if old is None or _order(model, field.path) < _order(model, old):
                found[field.holds] = field.path
    return found


def _order(model: type[BaseModel], path: str) -> tuple[int, bool]:
    annotation: object = model
    for name in path.replace("[]", "").replace(".*", "").split("."):
        holder, _ = held(annotation)
        annotation = holder.model_fields[name].annotation if holder else None
    return path.count("."), held(annotation)[1] != "[]"


def mark(annotation: object) -> str:
    """`?` if a field may be null."""
    return "?" if type(None) in typing.get_args(annotation) else ""


def is_elsewhere(model: type[BaseModel], owner: type[BaseModel], name: str) -> bool:
    """Whether a field is explained elsewhere: the head of a study, or the figures of a cell of another matrix."""
    if issubclass(owner, StudyHead) and name in StudyHead.model_fields:
        return owner is not StudyHead
    if (model, owner) in ((ScaleResult, SinkFigures), (Scorecard, PublishedTable)):
        return True
    return (
        owner is CellFigures or (model is ScaleResult and issubclass(owner, CellFigures))
    ) and name in CellFigures.model_fields


def blocks() -> dict[str, list[tuple[str, str]]]:
    """Every generated list of fields or columns, by the name in its markers."""
    found: dict[str, list[tuple[str, str]]] = {}
    for file, (model, sections) in FILES.items():
        for part in ("", *sections):
            name = f"fields of {file}: {part}" if part else f"fields of {file}"
            found[name] = rows(model, *filter(None, part.split(", ")))
    for file, columns in series_files.MEANINGS.items():
        found[f"columns of {file}"] = [(f"`{name}`", text) for name, text in columns.items()]
    return found


def rows(model: type[BaseModel], *sections: str) -> list[tuple[str, str]]:
    """(path, meaning) of the fields of a file below these top-level fields; without any, the top level."""
    home, made = homes(model), []
    for field in result_fields(model):
        top = field.path.partition(".")[0].removesuffix("[]")
        nested = "." in field.path
        if (top not in sections or not nested) if sections else nested:
            continue
        around = field.path.rpartition(".")[0].removesuffix("[]").removesuffix(".*")
        if nested and not _is_home(model, around, home):
            continue
        if is_elsewhere(model, field.owner, field.name):
            continue
        text = _UNKNOWN.sub("", meaning(field.owner, field.name))
        if field.holds is not None and home[field.holds] != field.path:
            text += f" Fields as `{home[field.holds]}`."
        made.append((f"`{field.path}{mark(field.owner.model_fields[field.name].annotation)}`", text))
    return made


_UNKNOWN = re.compile(r"(?:;|\.) [nN]ull if (?:unknown|not known|not measured|not counted)(?=\.$)")
"""What the mark `?` says already."""


def _is_home(model: type[BaseModel], path: str, home: Mapping[type[BaseModel], str]) -> bool:
    """Whether the fields below a path, and below every path around it, are explained there."""
    while path:
        if path not in home.values():
            return False
        path = path.rpartition(".")[0].removesuffix("[]").removesuffix(".*")
    return True
