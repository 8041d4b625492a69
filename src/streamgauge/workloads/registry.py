"""The workload interface, and the registry: every module below this package that defines `WORKLOAD`."""

import importlib
import pkgutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from streamgauge.core.errors import Fault, InputError, Problem, faults_of, near, problems_of, require
from streamgauge.core.units import parse_duration
from streamgauge.dataflow.builder import Names, Stream, tumble
from streamgauge.dataflow.describe import describe
from streamgauge.dataflow.expressions.check import checked
from streamgauge.dataflow.nodes import Flow
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.transports.topic_names import ProgramTopics

Seconds = Annotated[float, BeforeValidator(lambda value: parse_duration(value, "set"))]
"""A duration in seconds, parsed from text such as `8s` or `500ms`."""


@dataclass(frozen=True)
class _OfUser:
    """Marks a parameter that names a file."""


File = Annotated[str, _OfUser()]
"""A user file that determines the workload; empty means none."""

RATE_PER_S = 100_000.0
"""The rate at which workloads are described."""
NO_RULES: Mapping[str, str] = MappingProxyType({})


def any_rate(parameters: Any) -> float | None:
    """None: the parameters of most workloads neither fix nor limit the rate."""
    return None


def double(number: float) -> str:
    """A number as an exact double literal for an expression; 0.03 alone would be a decimal."""
    text = repr(float(number))
    return text if "e" in text else f"{text}e0"


FINITE_MAX = double(sys.float_info.max)
"""The largest finite double as an expression. Infinity and NaN are greater in SQL."""


TIE = 1e-9
"""Doubles within this relative difference are equal, as in verification. The average of fifteen times 22.1 is not
exactly 22.1, and no result may depend on rounding."""


class Parameters(BaseModel):
    """Base class of workload parameters: frozen, and unknown names are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Job(NamedTuple):
    """A workload at given parameters and rate: the flow and its input streams.

    `malformed`: stream to a condition over its fields that is true for malformed records, which no result counts.
    It does not cover well-formed records that the flow filters out.
    """

    flow: Flow
    streams: tuple[StreamSpec, ...]
    malformed: Mapping[str, str] = NO_RULES

    def check_rules(self) -> None:
        """Raises InputError if a rule names an unknown stream or is not a condition over its fields."""
        fields = {stream.name: stream.schema.types() for stream in self.streams}
        for name, rule in self.malformed.items():
            setting = f"malformed {name}"
            require(name in fields, setting, "must be of a stream of the job", name, ", ".join(fields))
            condition = checked(rule, fields[name], setting)
            fits = condition.type == "boolean" and condition.columns and not condition.aggregate
            require(fits, setting, "must be a condition over the fields of a record", rule, "x IS NULL")


COUNTED_WITHIN = "count in windows of so long, so that the state has an end; 0: since the beginning, as the thesis does"
"""The description of a parameter with the window of `count_by_key`."""


def count_by_key(rows: Stream, window_s: float, *, keys: Names, column: str, name: str) -> Stream:
    """The number of rows per key, as updates; with a window, one row per key when it closes, which bounds the state."""
    if window_s:
        return rows.window(tumble(window_s), keys=keys).aggregate({column: "count(*)"}, name=name)
    return rows.running({column: "count(*)"}, keys=keys, name=name)


def unless(sound: str) -> str:
    """The rule of malformed records, if `sound` is true for well-formed ones. Null counts as malformed."""
    return f"NOT coalesce({sound}, false)"


class Feature(StrEnum):
    """What a workload requires of an engine, by its name in Bordin's overview of applications.

    `MEANING` describes each. Each workload declares its features. Tests compare them with features that can be derived
    from the flow.
    """

    FLAT_MAP = "flat-map"
    FILTER = "filter"
    COUNTER = "unbounded keyed counter"
    COUNT_WINDOW = "count-based keyed window"
    WINDOW = "event-time window"
    GLOBAL = "global operator"
    BROADCAST = "broadcast edge"
    SELF_JOIN = "join of branches"
    TWO_STREAMS = "two streams"
    LOOKUP = "lookup"
    SINKS = "several sinks"
    FEEDBACK = "feedback loop"
    PROBABILISTIC = "probabilistic structures"
    PYTHON = "keyed operator in Python"
    ROWS = "rows made into others"
    NOTHING = "transport and sink alone"


MEANING = {
    Feature.FLAT_MAP: "One row gives several, without state.",
    Feature.FILTER: "Rows are filtered.",
    Feature.COUNTER: "Counts by key are never forgotten, so the state grows with the keys.",
    Feature.COUNT_WINDOW: "The last rows of a key, by their number.",
    Feature.WINDOW: "Windows of event time, which the watermark closes.",
    Feature.GLOBAL: "All rows, or all of a window, meet in one instance.",
    Feature.BROADCAST: "One operator's results go to all instances of another. No flow here has it; keys replace it.",
    Feature.SELF_JOIN: "A row's parts take different branches, which are joined again.",
    Feature.TWO_STREAMS: "Rows of two streams meet in one operator.",
    Feature.LOOKUP: "Each row is looked up in static data: a table, places, a map, a model, a lexicon.",
    Feature.SINKS: "One flow gives results of several kinds, each measured and verified separately.",
    Feature.FEEDBACK: "Results become input. No flow here has it, because input must be planned.",
    Feature.PROBABILISTIC: "The state takes less memory than exact answers need; the truth uses the same cells.",
    Feature.PYTHON: "A class in Python sees all rows of a key in the order of time.",
    Feature.ROWS: "Stateless projection.",
    Feature.NOTHING: "No operator: the minimum that every workload pays.",
}
"""A description of each feature."""


@dataclass(frozen=True)
class Workload:
    """A workload.

    - `build`: takes its parameters and the total rate of all streams (events per second).
    - `prefix`: Bordin's short name of an application, which allows his parameter names: `sd.moving_average.window`
      for `moving_average_window`.
    - `files`: name to SHA-256 of user files that determine the workload; empty for built-in ones.
    - `features`: what it requires of an engine. `features_with`: {feature: (parameter, value)} for features that depend
      on a parameter.
    - `fixed_rate`: the total rate (events per second) that its parameters fix, or None.
    - `rate_max`: the greatest total rate (events per second) at which its parameters can be measured, or None. Then
      its selectivity changes with the rate, so commands that try several rates refuse them.
    - `notes`: what was assumed of it, for the result.
    - `answers`: the other workload whose query it answers, or "".
    - `patience_s`: how long it may read nothing at its start. `unseen_s`: for how long nothing may show that it has
      read an event.
    - `can_restart`: whether the system under test can be started anew.
    - `transport_options`: those that it decides itself. `default_transport_options`: where the user gives no other.
    - `program_topics`: the topics of a program; None if the driver has its own.

    Its class variables are questions, which a workload of the user's own answers otherwise.
    """

    extra_names: ClassVar[tuple[str, ...]] = ("data",)
    """Settings of a workload in addition to its parameters."""
    without_parameters: ClassVar[str] = "leave --set out, except --set data=FILE"
    """The way out of a parameter of a workload that has none."""
    operators_known: ClassVar[bool] = True
    """Whether its flow says what it computes; otherwise it is code of the user's own."""
    watermark_known: ClassVar[bool] = True
    """Whether an option sets its watermark; otherwise the user's code does."""
    declares_truth: ClassVar[bool] = False
    """Whether the user's file says what is right; otherwise the oracle runs the flow."""
    takes_data: ClassVar[bool] = True
    """Whether it may replay files in place of generated streams."""
    observed_from_outside: ClassVar[bool] = False
    """Whether its progress is read from the offsets that it commits; otherwise the engine reports it."""
    declares_formats: ClassVar[bool] = False
    """Whether its file names the format of its messages; otherwise an option of the transport does."""
    restarts: ClassVar[bool] = False
    """Whether each trial of a search starts the system under test anew."""

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
    fixed_rate: Callable[[Any], float | None] = any_rate
    rate_max: Callable[[Any], float | None] = any_rate
    notes: tuple[str, ...] = ()
    answers: str = ""
    patience_s: float = 0.0
    unseen_s: float = 0.0
    can_restart: bool = True
    transport_options: Mapping[str, str] = field(default_factory=dict)
    default_transport_options: Mapping[str, str] = field(default_factory=dict)
    program_topics: ProgramTopics | None = None

    @property
    def question(self) -> str:
        """The workload whose query it answers; `compare` takes those with one question as alike."""
        return self.answers or self.name

    def require(self) -> None:
        """Raises MachineError if this machine lacks what it needs beside the engine and cannot get it."""

    @classmethod
    def may_run_on(cls, nodes: Collection[str]) -> bool:
        """Whether an engine with these nodes could run it, over some transport."""
        return True

    @classmethod
    def request_problems(
        cls, command: str, name: str, topics: ProgramTopics | None, partitions: int, encoding: str
    ) -> list[Problem]:
        """What a command cannot find out of it. `topics`: None if its file is refused."""
        return []

    def exercises(self) -> dict[str, Feature]:
        """Every feature by name, followed by the setting that it needs."""
        needing = {f"{one} (--set {name}={value})": one for one, (name, value) in self.features_with.items()}
        return {str(one): one for one in self.features} | needing

    def read(self, values: Mapping[str, Any]) -> Parameters:
        """Parses parameters. Raises one InputError with every problem."""
        try:
            return self.parameters.model_validate({self._plain(name): value for name, value in values.items()})
        except ValidationError as error:
            faults = faults_of(error, self.parameters.model_fields)
            raise InputError(
                problems_of(faults, lambda fault: f"set {fault.name}", self._unknown, self._way_out)
            ) from None

    def flow_document(self, parameters: Parameters, rate_per_s: float) -> dict[str, Any]:
        """The JSON form of the flow at these parameters, which engines outside Python read."""
        from streamgauge.dataflow.json_form.document import to_json

        job = self.build(parameters, rate_per_s)
        origin = {"name": self.name, "parameters": parameters.model_dump(mode="json"), "rate_per_s": rate_per_s}
        return to_json(job.flow, {stream.name: stream.key for stream in job.streams}, origin)

    def is_file(self, name: str) -> bool:
        """Whether a parameter, in any spelling, names a user file."""
        field_info = self.parameters.model_fields.get(self._plain(name))
        return field_info is not None and any(isinstance(mark, _OfUser) for mark in field_info.metadata)

    def _plain(self, name: str) -> str:
        return name.removeprefix(f"{self.prefix}.").replace(".", "_") if self.prefix else name

    def _unknown(self, fault: Fault) -> tuple[str, str]:
        parameter_names = tuple(self.parameters.model_fields)
        meant = near(fault.name, (*parameter_names, *self.extra_names))
        if not parameter_names and not meant:
            return f"{self.name} has no parameters", self.without_parameters
        way_out = f"--set {meant}=..." if meant else f"one of {', '.join(parameter_names)}"
        return f"is not a parameter of {self.name}", way_out

    def _way_out(self, fault: Fault, _: str) -> str:
        field_info = self.parameters.model_fields.get(fault.name)
        default = default_of(field_info) if field_info is not None else "..."
        return f"--set {fault.name}={near(fault.got, fault.choices) or default}"


def default_of(field: FieldInfo) -> Any:
    """A parameter's default as text; durations have a unit."""
    timed = any(isinstance(rule, BeforeValidator) for rule in field.metadata)
    return f"{field.default:g}s" if timed else field.default


@cache
def _all() -> dict[str, Workload]:
    package = importlib.import_module("streamgauge.workloads")
    found_modules = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    modules = (importlib.import_module(each.name) for each in found_modules)
    workloads = {module.WORKLOAD.name: module.WORKLOAD for module in modules if hasattr(module, "WORKLOAD")}
    return dict(sorted(workloads.items()))


def names() -> tuple[str, ...]:
    return tuple(_all())


def get(name: str) -> Workload:
    """A workload by name. Raises InputError with the most similar name if it does not exist."""
    meant, way_out = near(name, names()), f"streamgauge workloads lists all: {', '.join(names())}"
    rule = "must be a workload's name, FILE.py of a user job, or FILE.toml of a program"
    require(name in _all(), "workload", rule, name, f"{meant} ({way_out})" if meant else way_out)
    return _all()[name]


@contextmanager
def added(workload: Workload) -> Iterator[None]:
    """Gives this process one more workload, until the end of the block."""
    _all()[workload.name] = workload
    try:
        yield
    finally:
        del _all()[workload.name]


def catalogue(name: str = "") -> list[dict[str, Any]]:
    """Workloads as plain data: name, title, summary, source, features, parameters, flow. `name` selects one."""
    return [_row(workload) for workload in ([get(name)] if name else _all().values())]


def _row(workload: Workload) -> dict[str, Any]:
    job = workload.build(workload.parameters(), RATE_PER_S)
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
