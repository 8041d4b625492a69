"""What a workload is, and how the ones there are are found: every module below this package that has a `WORKLOAD`."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from streamgauge.core.errors import InputError, Problem, choices_of, near, rule_of
from streamgauge.core.units import parse_duration
from streamgauge.dataflow.describe import describe
from streamgauge.dataflow.expressions.check import checked
from streamgauge.dataflow.nodes import Flow
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.workloads.features import MEANING, Feature

Seconds = Annotated[float, BeforeValidator(lambda value: parse_duration(value, "set"))]
"""A time in seconds, written as people write it: `8s`, `500ms`."""


@dataclass(frozen=True)
class _OfUser:
    """Marks a parameter that names a file."""


File = Annotated[str, _OfUser()]
"""A file of the user's, which decides what the workload is; empty: none."""

NO_RULES: Mapping[str, str] = MappingProxyType({})


def double(number: float) -> str:
    """A number as a double of an expression, to the last bit: 0.03 alone would be a decimal."""
    text = repr(float(number))
    return text if "e" in text else f"{text}e0"


FINITE_MAX = double(sys.float_info.max)
"""As an expression has it; what is infinite lies above it, and so does what is no number."""


TIE = 1e-9
"""Doubles that differ by no more than this share are a tie, as verification has it: of 22.1 fifteen times over the
average is no 22.1, and no answer may hang on how it was rounded."""


class Parameters(BaseModel):
    """Base of every workload's parameters: frozen, unknown names refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Job(NamedTuple):
    """A workload at given parameters and rate: what is asked, and of which input.

    `malformed` has the rule of each stream that may hold malformed records: a condition over the stream's fields, true
    of a record that counts nowhere because it is none. Of whole records that a flow leaves out it says nothing.
    """

    flow: Flow
    streams: tuple[StreamSpec, ...]
    malformed: Mapping[str, str] = NO_RULES

    def check_rules(self) -> None:
        """Raises InputError where a rule is of no stream of the job, or is no condition over its fields."""
        fields = {stream.name: stream.schema.types() for stream in self.streams}
        for name, rule in self.malformed.items():
            setting = f"malformed {name}"
            if name not in fields:
                raise InputError(Problem(setting, "must be of a stream of the job", name, ", ".join(fields)))
            found = checked(rule, fields[name], setting)
            if found.type != "boolean" or found.aggregate or not found.columns:
                raise InputError(Problem(setting, "must be a condition over the fields of a record", rule, "x IS NULL"))


def unless(sound: str) -> str:
    """The rule of malformed records where `sound` says what a whole one is; one of which that is not known is none."""
    return f"NOT coalesce({sound}, false)"


@dataclass(frozen=True)
class Workload:
    """A workload; `build` takes its parameters and the rate of all streams together (events per second).

    `prefix` is the thesis's short name of an application: its parameters may be given in the thesis's own words,
    `sd.moving_average.window` for `moving_average_window`. `files` has the SHA-256 of each file of the user's that
    decides what the workload is, by its name; none of a built-in one. `features` is what it asks of an engine as it is,
    `features_with` what it asks besides where a parameter has a value: {feature: (parameter, value)}.
    """

    besides: ClassVar[tuple[str, ...]] = ("data",)
    """Settings that a workload has besides its own parameters."""

    name: str
    title: str
    summary: str
    source: str
    parameters: type[Parameters]
    build: Callable[[Any, float], Job]
    prefix: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    features: tuple[Feature, ...] = ()
    features_with: Mapping[Feature, tuple[str, Any]] = field(default_factory=dict)

    def exercises(self) -> dict[str, Feature]:
        """Every feature by its name, with the setting that it needs behind it."""
        needing = {f"{one} (--set {name}={value})": one for one, (name, value) in self.features_with.items()}
        return {str(one): one for one in self.features} | needing

    def read(self, values: Mapping[str, Any]) -> Parameters:
        """Parameters from plain values; one InputError with every problem."""
        try:
            return self.parameters.model_validate({self._plain(name): value for name, value in values.items()})
        except ValidationError as error:
            raise InputError([self._problem(item) for item in error.errors()]) from None

    def is_file(self, name: str) -> bool:
        """Whether a parameter, however it is spelled, names a file of the user's."""
        known = self.parameters.model_fields.get(self._plain(name))
        return known is not None and any(isinstance(mark, _OfUser) for mark in known.metadata)

    def _plain(self, name: str) -> str:
        return name.removeprefix(f"{self.prefix}.").replace(".", "_") if self.prefix else name

    def _problem(self, item: Any) -> Problem:
        name = ".".join(str(part) for part in item["loc"])
        known = tuple(self.parameters.model_fields)
        if item["type"] == "extra_forbidden":
            meant = near(name, (*known, *self.besides))
            way_out = f"--set {meant}=..." if meant else f"one of {', '.join(known) or 'none: it has no parameters'}"
            return Problem(f"set {name}", f"is not a parameter of {self.name}", item["input"], way_out)
        inner = item.get("ctx", {}).get("error")
        rule = inner.problems[0].rule if isinstance(inner, InputError) else rule_of(item)
        default = default_of(self.parameters.model_fields[name]) if name in known else "..."
        right = near(item["input"], choices_of(item)) or default
        return Problem(f"set {name}", rule, item["input"], f"--set {name}={right}")


def default_of(field: FieldInfo) -> Any:
    """A parameter's default as a person writes it: times with their unit."""
    timed = any(isinstance(rule, BeforeValidator) for rule in field.metadata)
    return f"{field.default:g}s" if timed else field.default


@cache
def _all() -> dict[str, Workload]:
    package = importlib.import_module("streamgauge.workloads")
    found_modules = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    modules = (importlib.import_module(each.name) for each in found_modules)
    found = [module.WORKLOAD for module in modules if hasattr(module, "WORKLOAD")]
    return {workload.name: workload for workload in sorted(found, key=lambda workload: workload.name)}


def names() -> tuple[str, ...]:
    return tuple(_all())


def get(name: str) -> Workload:
    """A workload by name; InputError with the nearest name where there is none."""
    if name in _all():
        return _all()[name]
    meant = near(name, names())
    there = f"streamgauge workloads tells of all: {', '.join(names())}"
    rule = "must be a workload's name, or FILE.py of your own"
    raise InputError(Problem("workload", rule, name, f"{meant} ({there})" if meant else there))


def catalogue(rate_per_s: float = 100_000.0, name: str = "") -> list[dict[str, Any]]:
    """Every workload as plain data: name, title, summary, source, features, parameters, flow; or one alone (`get`)."""
    chosen = [get(name)] if name else list(_all().values())
    return [_row(workload, rate_per_s) for workload in chosen]


def _row(workload: Workload, rate_per_s: float) -> dict[str, Any]:
    job = workload.build(workload.parameters(), rate_per_s)
    fields = workload.parameters.model_fields.items()
    return {
        "name": workload.name,
        "title": workload.title,
        "summary": workload.summary,
        "source": workload.source,
        "features": [{"name": name, "meaning": MEANING[one]} for name, one in workload.exercises().items()],
        "parameters": [{"name": n, "default": default_of(f), "meaning": f.description or ""} for n, f in fields],
        "streams": [
            {"name": s.name, "share": s.share, "fields": s.schema.types(), "malformed": job.malformed.get(s.name, "")}
            for s in job.streams
        ],
        "sinks": [{"name": sink.name, "mode": sink.mode} for sink in job.flow.sinks],
        "flow": describe(job.flow),
    }
