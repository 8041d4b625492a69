"""The file of a program of the user's own: its tables, read and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from streamgauge.core.errors import InputError, JobError, Problem, choices_of, nearest, rule_of
from streamgauge.core.units import parse_duration
from streamgauge.jobs import DEFAULT_REACH, UNBOUNDED
from streamgauge.loadgen.fields import Decimal, FieldSpec, Integer, Key, Payload, Text
from streamgauge.loadgen.fitted import Choice
from streamgauge.preflight.user_job import SINK
from streamgauge.transports.kafka.program_topics import AVRO, Kind, MessageFormat, RecordTimestamp

KINDS: dict[str, type[FieldSpec]] = {
    "key": Key, "integer": Integer, "decimal": Decimal, "text": Text, "payload": Payload, "choice": Choice,
}  # fmt: skip
UNITS = {"s": 1_000_000, "ms": 1000, "us": 1}
"""Microseconds by the name of a unit."""
Unit = Literal["s", "ms", "us"]
Seconds = Annotated[float, BeforeValidator(lambda value: parse_duration(value, "timeout", way_out='timeout = "30s"'))]
FIELDS_EXAMPLE = '[inputs.purchases.fields], and below it user_id = { kind = "key", domain = 1000 }'
_REFERENCE = 'reference = "SELECT ... FROM purchases", the right results as DuckDB SQL over the inputs'


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _TopicTable(_Table):
    """What inputs and outputs have alike: a topic and the format of its messages."""

    topic: str = ""
    format: Kind = "json"
    delimiter: str = ","
    schema_file: str = ""
    schema_id: Annotated[int, Field(ge=0, lt=2**32)] = 1

    def message_format(self, folder: Path) -> MessageFormat:
        """The format; `read` has checked that the schema's file can be read."""
        schema = (folder / self.schema_file).read_text(encoding="utf-8") if self.format in AVRO else ""
        return MessageFormat(self.format, self.delimiter, schema, self.schema_id)


class InputTable(_TopicTable):
    """`[inputs.NAME]`: an input topic."""

    fields: dict[str, dict[str, Any]] = {}
    sample: str | None = None
    share: float | None = None
    key: str | None = None
    time: str | None = None
    time_unit: Unit = "ms"
    record_timestamp: RecordTimestamp = "planned"

    def specs(self, setting: str) -> tuple[FieldSpec, ...]:
        """The declared fields, those of nested tables with dotted names. Raises InputError with the problems of all."""
        problems: list[Problem] = []
        specs: list[FieldSpec] = []
        for name, table in _flat(self.fields):
            try:
                specs.append(_field(f"{setting}.fields.{name}", name, table))
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(problems)
        return tuple(specs)


class OutputTable(_TopicTable):
    """`[output]` or `[outputs.NAME]`: a topic of results."""

    mode: Literal["append", "update"] = "append"
    keys: tuple[str, ...] = ()
    time: str | None = None
    window_end: str | None = None
    time_unit: Unit = "ms"
    reach: str = ""
    reference: str = ""

    @property
    def reach_or_default(self) -> str:
        """How long one event can influence results."""
        return self.reach or (UNBOUNDED if self.mode == "update" else DEFAULT_REACH)


class ProgramTable(_Table):
    """The whole file."""

    kind: Literal["program"]
    title: str = ""
    command: tuple[str, ...] = ()
    attach: bool = False
    brokers: str = ""
    environment: dict[str, str] = {}
    group: str = ""
    ready: Literal["consumer", "committed", "line", "started"] = "consumer"
    ready_line: str = ""
    timeout: Seconds = 30.0
    inputs: Annotated[dict[str, InputTable], Field(min_length=1)]
    output: OutputTable | None = None
    outputs: dict[str, OutputTable] = {}
    reference: str = ""

    @property
    def by_sink(self) -> dict[str, OutputTable]:
        """Sink to its table. The only one has the reference of the file."""
        if self.output is None:
            return self.outputs
        return {SINK: self.output.model_copy(update={"reference": self.output.reference or self.reference})}

    def setting_of(self, sink: str) -> str:
        """The name of a sink's table."""
        return "output" if self.output is not None else f"outputs.{sink}"


def read(path: Path) -> ProgramTable:
    """The tables of a file, each valid by itself. Raises JobError with every problem."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        rule = f"must be a file that can be read ({error.strerror})"
        raise JobError(Problem(str(path), rule, str(path), "check the path")) from None
    except ValueError as error:  # of the text or its encoding
        raise JobError(Problem(str(path), f"must be TOML ({error})", path.name, "correct that line")) from None
    if values.get("kind") != "program":
        rule = 'must have kind = "program", to be measured like a workload'
        way_out = f'kind = "program" in its first line; an experiment file: streamgauge experiment {path}'
        raise JobError(Problem(f"{path.name}: kind", rule, values.get("kind"), way_out))
    try:
        return ProgramTable.model_validate(values)
    except ValidationError as error:
        raise JobError([_problem(path, item) for item in error.errors()]) from None


def _problem(path: Path, item: Any) -> Problem:
    parts = [str(part) for part in item["loc"]]
    setting, name = f"{path.name}: {'.'.join(parts)}", parts[-1] if parts else ""
    inner = item.get("ctx", {}).get("error")
    if isinstance(inner, InputError):
        first = inner.problems[0]
        return Problem(setting, first.rule, first.got, first.way_out)
    if item["type"] == "extra_forbidden":
        known = _settings_beside(parts)
        return Problem(setting, f"is not a setting; these are: {', '.join(known)}", item["input"], nearest(name, known))
    if item["type"] == "missing":
        return Problem(setting, "must be given", None, EXAMPLES.get(parts[0], f"{name} = ..."))
    choices = choices_of(item)
    way_out = f'{name} = "{nearest(item["input"], choices)}"' if choices else EXAMPLES.get(name, f"correct {name}")
    return Problem(setting, rule_of(item), item["input"], way_out)


EXAMPLES = {
    "command": 'command = ["{python}", "consumer.py"]',
    "inputs": FIELDS_EXAMPLE,
    "output": '[output], and below it keys = ["user_id"] and time = "ts"',
    "reference": _REFERENCE,
    "keys": 'keys = ["user_id"]',
}


def _settings_beside(parts: list[str]) -> list[str]:
    model: type[BaseModel] = ProgramTable
    if parts[0] == "inputs" and len(parts) > 2:
        model = InputTable
    elif (parts[0] == "output" and len(parts) > 1) or (parts[0] == "outputs" and len(parts) > 2):
        model = OutputTable
    return list(model.model_fields)


def _flat(fields: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(dotted name, table) of each field. A table of tables is a level of nesting."""
    for name, table in fields.items():
        if table and all(isinstance(value, dict) for value in table.values()):
            yield from _flat(table, f"{prefix}{name}.")
        else:
            yield prefix + name, table


def _field(setting: str, name: str, table: Mapping[str, Any]) -> FieldSpec:
    """A field from its table: `kind`, and the arguments of that kind."""
    kind, given = table.get("kind"), {key: value for key, value in table.items() if key != "kind"}
    if kind not in KINDS:
        way_out = f'kind = "{nearest(kind, list(KINDS))}"'
        raise InputError(Problem(f"{setting}.kind", f"must be one of {', '.join(KINDS)}", kind, way_out))
    arguments = {one.name: one for one in fields(KINDS[kind]) if one.init and one.name != "name"}
    for key, value in given.items():
        if key not in arguments:
            way_out = nearest(key, list(arguments))
            raise InputError(Problem(f"{setting}.{key}", f"is not a setting of a {kind}", value, way_out))
    for key, argument in arguments.items():
        if key not in given and argument.default is MISSING:
            raise InputError(Problem(f"{setting}.{key}", f"must be given for a {kind}", None, f"{key} = ..."))
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    try:
        return KINDS[kind](name, **values)
    except InputError as error:
        raise InputError([replace(problem, setting=setting) for problem in error.problems]) from None
