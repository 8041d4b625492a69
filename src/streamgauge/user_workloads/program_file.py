"""The file of a program of the user's own: its tables, read and checked, and the fields of its inputs.

A field is a table such as `price = { kind = "integer", low = 1, high = 100 }`. Messages about it name the types of
TOML, since the classes of fields name those of Python.
"""

import base64
import copy
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from functools import partial, reduce
from operator import getitem
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    ValidationError,
)

from streamgauge.core.clock import US
from streamgauge.core.engine_reports import Delivery
from streamgauge.core.errors import (
    Fault,
    InputError,
    Problem,
    Rule,
    attempt,
    faults_of,
    first,
    in_file,
    near,
    nearest,
    problems_of,
    refuse,
    require_all,
)
from streamgauge.core.formatting import leave_out
from streamgauge.core.schema import Field as SchemaField
from streamgauge.core.units import parse_duration
from streamgauge.jobs import DEFAULT_REACH, UNBOUNDED
from streamgauge.loadgen.fields import Decimal, FieldSpec, Integer, Key, Payload, Text
from streamgauge.loadgen.fitted import Choice
from streamgauge.transports.kafka.encodings.avro import leaves
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

    def schema_fields(self, folder: Path) -> Sequence[SchemaField]:
        """The fields of the format's schema. Raises OSError, and ValueError with what is wrong with it."""
        declared = self.message_format(folder)
        if declared.kind in PROTOBUF:
            from streamgauge.transports.kafka.encodings.protobuf import fields_of

            return fields_of(declared.schema, declared.message)
        return leaves(declared.schema)


class InputTable(_TopicTable):
    """`[inputs.NAME]`: an input topic."""

    fields: dict[str, dict[str, Any]] = {}
    sample: Name = None
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    key: Name = None
    time: Name = None
    time_unit: Unit = "ms"
    record_timestamp: RecordTimestamp = "planned"


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
    def reach_us(self) -> int | None:
        """How long one event can influence results; None if without an end."""
        reach = self.reach or (UNBOUNDED if self.mode == "update" else DEFAULT_REACH)
        return None if reach == UNBOUNDED else round(US * parse_duration(reach))


class ProgramTable(_Table):
    """The whole file."""

    _path: Path = PrivateAttr(default=Path())

    kind: Literal["program"]
    title: str = ""
    answers: str = ""
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
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def folder(self) -> Path:
        """The whole path of the file's folder."""
        return self._path.resolve().parent

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

    def place_of(self, setting: str) -> str:
        """A setting with the file's name, for messages."""
        return f"{self._path.name}: {setting}"

    def require(self, rules: Iterable[Rule]) -> None:
        """Raises InputError with every broken rule."""
        require_all(*in_file(self._path.name, rules))


def read(path: Path) -> tuple[ProgramTable, list[Problem]]:
    """The tables of a file, each valid by itself, and the problems of the settings that were left out of them.

    Raises InputError with every problem if the others make no tables.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        rule = f"must be a file that can be read ({error.strerror})"
        raise InputError(Problem(str(path), rule, str(path), "check the path")) from None
    except ValueError as error:  # of the text or its encoding
        raise InputError(Problem(str(path), f"must be TOML ({error})", path.name, "correct that line")) from None
    kind, rule = values.get("kind"), 'must have kind = "program", to be measured like a workload'
    way_out = f'kind = "program" in its first line; an experiment file: streamgauge experiment {path}'
    require_all(*in_file(path.name, [Rule(kind == "program", "kind", rule, kind, way_out)]))
    require_all(*in_file(path.name, _rules_of_topics_without_names(values)))
    problems: list[Problem] = []
    try:
        table = ProgramTable.model_validate(values)
    except ValidationError as error:
        faults = faults_of(error)
        named_otherwise = {near(one.name, _TABLES) for one in faults if one.is_unknown and len(one.location) == 1}
        missing = [fault for fault in faults if fault.kind == "missing" and fault.location[0] in named_otherwise]
        named = [fault for fault in faults if fault not in missing]
        problems = problems_of(named, lambda fault: f"{path.name}: {fault.name}", _unknown, _way_out)
        try:
            table = ProgramTable.model_validate(_repaired(values, faults))
        except ValidationError:
            raise InputError(problems, incomplete=True) from None
    table._path = path
    return table, problems


def _repaired(values: dict[str, Any], faults: Iterable[Fault]) -> dict[str, Any]:
    """The values without their faults. An unknown name is taken for the most similar one, if that is not given."""
    repaired = copy.deepcopy(values)
    for fault in faults:
        leave_out(repaired, fault.name)  # a list with a wrong item as a whole
        *above, name = map(str, fault.location)
        known = _MODELS.get(fault.name.partition(".")[0], ProgramTable).model_fields
        if fault.is_unknown and (meant := near(name, known)) is not None:
            reduce(getitem, above, repaired).setdefault(meant, fault.got)
    return repaired


def _rules_of_topics_without_names(values: dict[str, Any]) -> Iterator[Rule]:
    """On settings that stand in `[inputs]` or `[outputs]` itself."""
    for part, way_out in (("inputs", "[inputs.purchases]"), ("outputs", "[output]; several outputs: [outputs.NAME]")):
        if isinstance(table := values.get(part), dict):
            settings = [name for name in table if not isinstance(table[name], dict)]
            yield Rule(not settings, part, f"must be a table for each topic: [{part}.NAME]",
                       f"settings {', '.join(settings)}", way_out)  # fmt: skip


def _unknown(fault: Fault) -> tuple[str, str]:
    parts = list(map(str, fault.location))
    known = list(_MODELS.get(parts[0], ProgramTable).model_fields)
    is_table = isinstance(fault.got, dict)
    way_out = _table_for(parts, fault.got, known) if is_table else _place_for(parts[-1], known)
    return f"is not a setting; these are: {', '.join(known)}", way_out


def _way_out(fault: Fault, offered: str) -> str:
    parts = list(map(str, fault.location))
    if offered:
        return offered
    return EXAMPLES.get(parts[0], f"{parts[-1]} = ...") if fault.kind == "missing" else _example(parts, fault)


def _example(parts: list[str], fault: Fault) -> str:
    """A right value of a setting."""
    got, choices = fault.got, fault.choices
    name, word = parts[-1], str(got).lower()
    if name != parts[0] and (value := _EXAMPLES_BELOW.get(parts[0] if len(parts) == 2 else parts[-2])):
        return f"{name} = {value.format(got)}"
    if not choices:
        return EXAMPLES.get(name, f"correct {name}")
    units = (unit for start, unit in _UNITS_MEANT.items() if name == "time_unit" and word.startswith(start))
    return f'{name} = "{next(units, nearest(got, choices))}"'


EXAMPLES = {
    "answers": 'answers = "windowed_aggregation"',
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


_MODELS: dict[str, type[BaseModel]] = {"inputs": InputTable, "output": OutputTable, "outputs": OutputTable}
_PLACES: dict[type[BaseModel], str] = {
    ProgramTable: "at the top of the file, before its first table",
    OutputTable: "below [output] or [outputs.NAME]",
    InputTable: "below [inputs.NAME]",
}


def _table_for(parts: list[str], value: dict[str, Any], known: list[str]) -> str:
    """The table that is meant by an unknown one."""
    *above, name = parts
    if above and above[0] != "inputs":
        return f"[outputs.{name}], and each other output as a table [outputs.NAME]"
    tables = {each: f"[{'.'.join([*above, each])}]" for each in known if each in _TABLES}
    meant = near(name, tables)
    if meant in ("inputs", "outputs"):
        return f"[{meant}.{next((each for each in value if isinstance(value[each], dict)), 'NAME')}]"
    return tables[meant] if meant else f"one of {', '.join(tables.values())}, or leave it out"


def _place_for(name: str, known: list[str]) -> str:
    """The setting that is meant by an unknown one, or the table in which it belongs."""
    if name == "spark_checkpoint":
        return f"{_CHECKPOINT} {_PLACES[ProgramTable]}"
    places = (f"{name} {place}" for model, place in _PLACES.items() if name in model.model_fields)
    return near(name, known) or next(places, "leave it out")


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
_INTEGER = ("an integer",)
_ARGUMENT_TYPES = {
    "domain": _INTEGER, "words": _INTEGER, "size_bytes": _INTEGER,
    "distribution": ("a string",), "values": ("an array",), "weights": ("an array",),
}  # fmt: skip
"""Argument to the types in TOML that it may have; others are numbers, of an integer field integers."""
_NUMBER = ("an integer", "a float")


def specs_of(place: str, tables: Mapping[str, Any]) -> tuple[FieldSpec, ...]:
    """The fields of the input at `place`, those of nested tables with dotted names. Raises InputError for all."""
    problems: list[Problem] = []
    specs = [
        attempt(partial(_field, f"{place}.fields.{name}", name, table), problems) for name, table in flat_fields(tables)
    ]
    refuse(problems)
    return tuple(specs)


def field_text(spec: FieldSpec) -> str:
    """A field as its line of TOML, without defaults."""
    kinds = {type_: kind for kind, type_ in FIELD_KINDS.items()}
    arguments = {one.name: getattr(spec, one.name) for one in fields(spec) if one.init and one.name != "name"}
    defaults = {one.name: one.default for one in fields(spec)}
    given = {name: value for name, value in arguments.items() if value != defaults[name]}
    shown = {"kind": kinds.get(type(spec), type(spec).__name__), **given}
    return f"{spec.name} = {{ {', '.join(f'{name} = {json.dumps(value)}' for name, value in shown.items())} }}"


def toml_type(value: object) -> str:
    """The type of a value as TOML names it."""
    return TOML_TYPES.get(type(value), "a date or time")


def flat_fields(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(dotted name, table) of each field. A table of tables is a level of nesting."""
    for name, table in tables.items():
        if table and all(isinstance(value, dict) for value in table.values()):
            yield from flat_fields(table, f"{prefix}{name}.")
        else:
            yield prefix + name, table


def _field(setting: str, name: str, table: Mapping[str, Any]) -> FieldSpec:
    """A field from its table: `kind`, and the arguments of that kind."""
    kind, given = table.get("kind"), {key: value for key, value in table.items() if key != "kind"}
    require_all(*first(_field_rules(setting, name, kind, given)))
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    try:
        return FIELD_KINDS[str(kind)](name, **values)
    except InputError as error:
        shown = ", ".join(FIELD_EXAMPLES[key] for key in given) or FIELD_EXAMPLES["domain"]
        raise InputError(
            [
                replace(problem, setting=setting + part, way_out=FIELD_EXAMPLES.get(part[1:], shown))
                for problem in error.problems
                for part in [problem.setting.removeprefix(name)]
            ]
        ) from None


def _field_rules(setting: str, name: str, kind: Any, given: Mapping[str, Any]) -> Iterator[Rule]:
    """The rules of a field's table; each presumes those before it."""
    yield Rule(name, setting, "must have a name", name, 'user_id = { kind = "key", domain = 1000 }')
    meant = _MEANT.get(str(kind).lower()) or nearest(kind, list(FIELD_KINDS))
    known = isinstance(kind, str) and kind in FIELD_KINDS
    yield Rule(known, f"{setting}.kind", f"must be one of {', '.join(FIELD_KINDS)}", kind, f'kind = "{meant}"')
    arguments = {one.name: one for one in fields(FIELD_KINDS[kind]) if one.init and one.name != "name"}
    for key, value in given.items():
        place, wanted = f"{setting}.{key}", _ARGUMENT_TYPES.get(key, _INTEGER if kind == "integer" else _NUMBER)
        yield from (
            Rule(key in arguments, place, f"is not a setting of a {kind}", value,
                 FIELD_EXAMPLES[nearest(key, list(arguments))]),
            Rule(toml_type(value) in wanted, place, f"must be {' or '.join(wanted)}, not {toml_type(value)}", value,
                 FIELD_EXAMPLES.get(key, "")),
        )  # fmt: skip
    yield from (
        Rule(key in given or argument.default is not MISSING, f"{setting}.{key}", f"must be given for a {kind}", None,
             FIELD_EXAMPLES[key])
        for key, argument in arguments.items()
    )  # fmt: skip
    if kind == "choice":
        yield from _choice_rules(setting, **given)


def _choice_rules(setting: str, values: list[Any], weights: Sequence[Any] = ()) -> tuple[Rule, ...]:
    """The rules of values to choose from, and of their weights."""
    place, way_out = f"{setting}.weights", FIELD_EXAMPLES["weights"]
    alike = len(set(map(toml_type, values))) == 1 and type(values[0]) in (str, int, float, bool)
    return (
        Rule(alike, f"{setting}.values", "must be strings, integers, floats or booleans, all of one type", values[:5],
             FIELD_EXAMPLES["values"]),
        *(Rule(toml_type(weight) in _NUMBER, place, f"must be an array of numbers, not of {toml_type(weight)}",
               weight, way_out)
          for weight in weights),
        Rule(not weights or len(weights) == len(values), place,
             f"must have a weight for each of the {len(values)} values", weights, way_out),
    )  # fmt: skip
