"""The file of a program of the user's own: its tables, read and checked, and the fields of its inputs.

A field is a table such as `price = { kind = "integer", low = 1, high = 100 }`. Messages about it name the types of
TOML, since the classes of fields name those of Python.
"""

from __future__ import annotations

import base64
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError

from streamgauge.core.engine_reports import Delivery
from streamgauge.core.errors import Fault, InputError, JobError, Problem, faults_of, near, nearest
from streamgauge.core.units import parse_duration
from streamgauge.jobs import DEFAULT_REACH, UNBOUNDED
from streamgauge.loadgen.fields import Decimal, FieldSpec, Integer, Key, Payload, Text
from streamgauge.loadgen.fitted import Choice
from streamgauge.transports.topics import PROTOBUF, WITH_SCHEMA, Kind, MessageFormat, ProgressSource, RecordTimestamp
from streamgauge.user_workloads.program_node import Ready
from streamgauge.user_workloads.user_workload import SINK

Name = Annotated[str | None, AfterValidator(lambda value: value or None)]
"""A name that may be left out, or be empty."""
Unit = Literal["s", "ms", "us"]
Seconds = Annotated[float, BeforeValidator(lambda value: parse_duration(value, "timeout", way_out='timeout = "30s"'))]


def _is_reach(value: str) -> str:
    if value not in ("", UNBOUNDED):
        parse_duration(value, "reach", way_out=f'reach = "5s", or "{UNBOUNDED}" if results never close')
    return value


FIELDS_EXAMPLE = '[inputs.purchases.fields], and below it user_id = { kind = "key", domain = 1000 }'
_REFERENCE = 'reference = "SELECT ... FROM purchases", the right results as DuckDB SQL over the inputs'


_CHECKPOINT = 'progress = { spark_checkpoint = ["{scratch}/checkpoint"] }'


def _progress(value: object) -> ProgressSource:
    """From `"group"`, `"results"` or `{ spark_checkpoint = [...] }`."""
    if value == "" or value == "group" or value == "results":  # each by itself, for its type
        return ProgressSource(value)
    folders = value.get("spark_checkpoint") if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(folders, list) or not folders or not all(isinstance(each, str) and each for each in folders):
        rule = 'must be "group", "results" or the folders of checkpoints: { spark_checkpoint = [...] }'
        raise InputError(Problem("progress", rule, value, _CHECKPOINT))
    return ProgressSource("spark_checkpoint", tuple(folders))


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _TopicTable(_Table):
    """What inputs and outputs have alike: a topic and the format of its messages."""

    topic: str = ""
    format: Kind = "json"
    delimiter: str = ","
    schema_file: str = ""
    schema_id: Annotated[int, Field(ge=0, lt=2**32)] = 1
    message: str = ""

    def message_format(self, folder: Path) -> MessageFormat:
        """The format; `read` has checked that the schema's file can be read."""
        schema = (folder / self.schema_file).read_bytes() if self.format in WITH_SCHEMA else b""
        text = base64.b64encode(schema).decode() if self.format in PROTOBUF else schema.decode()
        return MessageFormat(self.format, self.delimiter, text, self.schema_id, self.message)


class InputTable(_TopicTable):
    """`[inputs.NAME]`: an input topic."""

    fields: dict[str, dict[str, Any]] = {}
    sample: Name = None
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    key: Name = None
    time: Name = None
    time_unit: Unit = "ms"
    record_timestamp: RecordTimestamp = "planned"

    def specs(self, setting: str) -> tuple[FieldSpec, ...]:
        """The declared fields, those of nested tables with dotted names. Raises InputError with the problems of all."""
        return specs_of(f"{setting}.fields", self.fields)


class OutputTable(_TopicTable):
    """`[output]` or `[outputs.NAME]`: a topic of results."""

    mode: Literal["append", "update"] = "append"
    delivery: Delivery = "exactly_once"
    loss_max: Annotated[float, Field(gt=0, lt=1)] | None = None
    keys: tuple[str, ...] = ()
    time: Name = None
    window_end: Name = None
    latency_key: tuple[str, ...] = ()
    time_unit: Unit = "ms"
    reach: Annotated[str, AfterValidator(_is_reach)] = ""
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
    ready: Ready = "consumer"
    ready_line: str = ""
    timeout: Seconds = 30.0
    progress: Annotated[ProgressSource, PlainValidator(_progress)] = ProgressSource()
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

    def reference_setting_of(self, sink: str) -> str:
        """The name of the setting with a sink's reference."""
        at_top = self.output is not None and not self.output.reference
        return "reference" if at_top else f"{self.setting_of(sink)}.reference"


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
    if problems := list(_topics_without_names(path, values)):
        raise JobError(problems)
    try:
        return ProgramTable.model_validate(values)
    except ValidationError as error:
        faults = faults_of(error)
        named_otherwise = {
            near(fault.name, _TABLES) for fault in faults if fault.is_unknown and len(fault.location) == 1
        }
        missing = [fault for fault in faults if fault.kind == "missing" and fault.location[0] in named_otherwise]
        raise JobError([_problem(path, fault) for fault in faults if fault not in missing]) from None


def _topics_without_names(path: Path, values: dict[str, Any]) -> Iterator[Problem]:
    """Settings that stand in `[inputs]` or `[outputs]` itself."""
    for part, way_out in (("inputs", "[inputs.purchases]"), ("outputs", "[output]; several outputs: [outputs.NAME]")):
        table = values.get(part)
        if isinstance(table, dict) and (settings := [name for name in table if not isinstance(table[name], dict)]):
            rule = f"must be a table for each topic: [{part}.NAME]"
            yield Problem(f"{path.name}: {part}", rule, f"settings {', '.join(settings)}", way_out)


def _problem(path: Path, fault: Fault) -> Problem:
    parts = list(map(str, fault.location))
    setting, name = f"{path.name}: {fault.name}", parts[-1] if parts else ""
    if fault.inner:
        return Problem(setting, fault.inner[0].rule, fault.inner[0].got, fault.inner[0].way_out)
    if fault.is_unknown:
        known = _settings_beside(parts)
        rule, got = f"is not a setting; these are: {', '.join(known)}", fault.got
        if isinstance(got, dict):
            return Problem(setting, rule, f"a table of {', '.join(got)}", _table_for(parts, got, known))
        return Problem(setting, rule, got, _place_for(name, known))
    if fault.kind == "missing":
        return Problem(setting, "must be given", None, EXAMPLES.get(parts[0], f"{name} = ..."))
    if name != parts[0] and (example := _EXAMPLES_BELOW.get(parts[0] if len(parts) == 2 else parts[-2])):
        return Problem(setting, fault.rule, fault.got, f"{name} = {example.format(fault.got)}")
    word = str(fault.got).lower()
    meant = next((unit for start, unit in _UNITS_MEANT.items() if name == "time_unit" and word.startswith(start)), None)
    way_out = (
        f'{name} = "{meant or nearest(fault.got, fault.choices)}"'
        if fault.choices
        else EXAMPLES.get(name, f"correct {name}")
    )
    return Problem(setting, fault.rule, fault.got, way_out)


EXAMPLES = {
    "environment": 'environment = { CORES = "{parallelism}" }',
    "command": 'command = ["{python}", "consumer.py"]',
    "inputs": FIELDS_EXAMPLE,
    "output": '[output], and below it keys = ["user_id"] and time = "ts"',
    "reference": _REFERENCE,
    "keys": 'keys = ["user_id"]',
    "reach": 'reach = "5s"',
    "share": "share = 0.5",
    "topic": 'topic = "orders"',
    "time": 'time = "ts"',
    "schema_id": "schema_id = 1",
    "latency_key": 'latency_key = ["id"]',
    "loss_max": "loss_max = 0.001",
}
_EXAMPLES_BELOW = {"environment": '"{}"', "fields": '{{ kind = "integer", low = 1, high = 100 }}'}
"""Table to a value for a name of the user's own in it."""
_UNITS_MEANT = {"milli": "ms", "msec": "ms", "micro": "us", "usec": "us"}
"""Beginnings of other names of units, to units."""
_TABLES = ("inputs", "output", "outputs", "environment", "fields")


def _settings_beside(parts: list[str]) -> list[str]:
    model: type[BaseModel] = ProgramTable
    if parts[0] == "inputs" and len(parts) > 2:
        model = InputTable
    elif (parts[0] == "output" and len(parts) > 1) or (parts[0] == "outputs" and len(parts) > 2):
        model = OutputTable
    return list(model.model_fields)


def _table_for(parts: list[str], value: dict[str, Any], known: list[str]) -> str:
    """The table that is meant by an unknown one."""
    *above, name = parts
    if above and above[0] != "inputs":
        return f"[outputs.{name}], and each other output as a table [outputs.NAME]"
    tables = [each for each in known if each in _TABLES]
    meant = near(name, tables)
    if meant in ("inputs", "outputs"):
        return f"[{meant}.{next((each for each in value if isinstance(value[each], dict)), 'NAME')}]"
    if meant:
        return f"[{'.'.join([*above, meant])}]"
    places = [f"[{'.'.join([*above, each])}]" for each in tables]
    return f"one of {', '.join(places)}, or leave it out"


def _place_for(name: str, known: list[str]) -> str:
    """The setting that is meant by an unknown one, or the table in which it belongs."""
    if name == "spark_checkpoint":
        return f"{_CHECKPOINT} at the top of the file, before its first table"
    if meant := near(name, known):
        return meant
    if name in ProgramTable.model_fields:
        return f"{name} at the top of the file, before its first table"
    if name in OutputTable.model_fields:
        return f"{name} below [output] or [outputs.NAME]"
    return f"{name} below [inputs.NAME]" if name in InputTable.model_fields else "leave it out"


FIELD_KINDS: dict[str, type[FieldSpec]] = {
    "key": Key, "integer": Integer, "decimal": Decimal, "text": Text, "payload": Payload, "choice": Choice,
}  # fmt: skip
TOML_TYPES = {
    bool: "a boolean", int: "an integer", float: "a float", str: "a string", list: "an array", dict: "a table",
}  # fmt: skip
FIELD_EXAMPLES = {
    "domain": "domain = 1000", "distribution": 'distribution = "zipf"', "exponent": "exponent = 1.0",
    "low": "low = 1", "high": "high = 100", "words": "words = 2", "size_bytes": "size_bytes = 100",
    "values": 'values = ["Paris", "Rome"]', "weights": "weights = [3, 1]",
}  # fmt: skip
_MEANT = {
    "int": "integer", "long": "integer", "bigint": "integer", "float": "decimal", "double": "decimal",
    "number": "decimal", "string": "text", "str": "text", "bytes": "payload", "bool": "choice", "boolean": "choice",
    "enum": "choice",
}  # fmt: skip
"""Names of types that others use, to kinds of fields."""
_WHOLE = ("domain", "words", "size_bytes")
_NUMBER = "an integer or a float"


def specs_of(setting: str, tables: Mapping[str, Any]) -> tuple[FieldSpec, ...]:
    """The fields, those of nested tables with dotted names. Raises InputError with the problems of all."""
    problems: list[Problem] = []
    specs: list[FieldSpec] = []
    for name, table in _flat(tables):
        try:
            specs.append(_field(f"{setting}.{name}", name, table))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return tuple(specs)


def toml_type(value: object) -> str:
    """The type of a value as TOML names it."""
    return TOML_TYPES.get(type(value), "a date or time")


def _flat(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(dotted name, table) of each field. A table of tables is a level of nesting."""
    for name, table in tables.items():
        if table and all(isinstance(value, dict) for value in table.values()):
            yield from _flat(table, f"{prefix}{name}.")
        else:
            yield prefix + name, table


def _field(setting: str, name: str, table: Mapping[str, Any]) -> FieldSpec:
    """A field from its table: `kind`, and the arguments of that kind."""
    if not name:
        raise InputError(Problem(setting, "must have a name", name, 'user_id = { kind = "key", domain = 1000 }'))
    kind, given = table.get("kind"), {key: value for key, value in table.items() if key != "kind"}
    if not isinstance(kind, str) or kind not in FIELD_KINDS:
        way_out = f'kind = "{_MEANT.get(str(kind).lower()) or nearest(kind, list(FIELD_KINDS))}"'
        raise InputError(Problem(f"{setting}.kind", f"must be one of {', '.join(FIELD_KINDS)}", kind, way_out))
    arguments = {one.name: one for one in fields(FIELD_KINDS[kind]) if one.init and one.name != "name"}
    for key, value in given.items():
        if key not in arguments:
            way_out = FIELD_EXAMPLES[nearest(key, list(arguments))]
            raise InputError(Problem(f"{setting}.{key}", f"is not a setting of a {kind}", value, way_out))
        if (wanted := _wanted(kind, key, value)) is not None:
            rule = f"must be {wanted}, not {toml_type(value)}"
            raise InputError(Problem(f"{setting}.{key}", rule, value, FIELD_EXAMPLES[key]))
    for key, argument in arguments.items():
        if key not in given and argument.default is MISSING:
            raise InputError(Problem(f"{setting}.{key}", f"must be given for a {kind}", None, FIELD_EXAMPLES[key]))
    if kind == "choice":
        _check_choice(setting, **given)
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    try:
        return FIELD_KINDS[kind](name, **values)
    except InputError as error:
        shown = ", ".join(FIELD_EXAMPLES[key] for key in given) or FIELD_EXAMPLES["domain"]
        named = [(problem, problem.setting.removeprefix(name)) for problem in error.problems]
        raise InputError(
            [
                replace(problem, setting=setting + part, way_out=FIELD_EXAMPLES.get(part[1:], shown))
                for problem, part in named
            ]
        ) from None


def _wanted(kind: str, key: str, value: object) -> str | None:
    """The type that an argument must have; None if it has it."""
    if key in ("values", "weights"):
        return None if isinstance(value, list) else "an array"
    if key == "distribution":
        return None if isinstance(value, str) else "a string"
    if key in _WHOLE or kind == "integer":
        return None if type(value) is int else "an integer"
    return None if type(value) in (int, float) else _NUMBER


def _check_choice(setting: str, values: list[Any], weights: list[Any] | None = None) -> None:
    """Raises InputError unless a field can choose from these values with these weights."""
    kinds = list(dict.fromkeys(map(toml_type, values)))
    if len(kinds) != 1 or type(values[0]) not in (str, int, float, bool):
        rule = "must be strings, integers, floats or booleans, all of one type"
        raise InputError(Problem(f"{setting}.values", rule, values[:5], FIELD_EXAMPLES["values"]))
    for weight in weights or ():
        if type(weight) not in (int, float):
            rule = f"must be an array of numbers, not of {toml_type(weight)}"
            raise InputError(Problem(f"{setting}.weights", rule, weight, FIELD_EXAMPLES["weights"]))
    if weights and len(weights) != len(values):
        rule = f"must have a weight for each of the {len(values)} values"
        raise InputError(Problem(f"{setting}.weights", rule, weights, FIELD_EXAMPLES["weights"]))
