"""The file of a program of the user's own: its tables, read and checked."""

import base64
import copy
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    ValidationError,
)

from streamgauge.config.setting_info import quantity
from streamgauge.core.clock import US
from streamgauge.core.engine_reports import Delivery
from streamgauge.core.errors import (
    Fault,
    InputError,
    Problem,
    Rule,
    faults_of,
    in_file,
    near,
    nearest,
    problems_of,
    require_all,
)
from streamgauge.core.formatting import leave_out
from streamgauge.core.schema import Field as SchemaField
from streamgauge.core.units import DURATION_PATTERN, parse_duration
from streamgauge.jobs import DEFAULT_REACH, UNBOUNDED
from streamgauge.transports.kafka.encodings.avro import leaves
from streamgauge.transports.topic_names import (
    PROTOBUF,
    WITH_SCHEMA,
    Kind,
    MessageFormat,
    ProgressSource,
    RecordTimestamp,
)
from streamgauge.user_workloads.program_node import Ready
from streamgauge.user_workloads.user_workload import SINK

Name = Annotated[str | None, AfterValidator(lambda value: value or None)]
"""A name that may be left out, or be empty."""
Unit = Literal["s", "ms", "us"]
Seconds = Annotated[
    float, quantity(lambda value: parse_duration(value, "timeout", way_out='timeout = "30s"'), DURATION_PATTERN)
]


def _is_reach(value: str) -> str:
    if value not in ("", UNBOUNDED):
        parse_duration(value, "reach", way_out=f'reach = "5s", or "{UNBOUNDED}" if results never close')
    return value


FIELDS_EXAMPLE = '[inputs.purchases.fields], and below it user_id = { kind = "key", domain = 1000 }'
_REFERENCE = 'reference = "SELECT ... FROM purchases", the right results as DuckDB SQL over the inputs'


_CHECKPOINT = 'progress = { spark_checkpoint = ["{scratch}/checkpoint"] }'


_ProgressInFile = Literal["", "group", "results"] | dict[Literal["spark_checkpoint"], list[str]]
"""What the file may have, for its JSON Schema."""


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
    """A table of the file. The texts below its fields are what an editor shows."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class _TopicTable(_Table):
    """What inputs and outputs have alike: a topic and the format of its messages."""

    topic: str = ""
    """the program's own name; without it the run makes one, and states it in an environment variable"""
    format: Kind = "json"
    """how messages carry fields"""
    delimiter: str = ","
    """of csv"""
    schema_file: str = ""
    """the schema that the program uses: an .avsc of avro, a descriptor set of protobuf"""
    schema_id: Annotated[int, Field(ge=0, lt=2**32)] = 1
    """with -confluent: the id in each header"""
    message: str = ""
    """of protobuf: the name of the message, if its file has several"""

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
    """the generated fields of its events"""
    sample: Name = None
    """a file of real messages, instead of fields"""
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """its share of the rate; left out of all inputs, they have equal shares"""
    key: Name = None
    """the field that is the key of its messages"""
    time: Name = None
    """the field with the event time"""
    time_unit: Unit = "ms"
    """the unit of its times"""
    record_timestamp: RecordTimestamp = "planned"
    """the time of its records: the planned event time, or that of sending"""


class OutputTable(_TopicTable):
    """`[output]` or `[outputs.NAME]`: a topic of results."""

    mode: Literal["append", "update"] = "append"
    """append: final results; update: successive values of a key"""
    delivery: Delivery = "exactly_once"
    """what the program promises"""
    loss_max: Annotated[float, Field(gt=0, lt=1)] | None = None
    """with at_most_once: the greatest share of results that may be missing"""
    keys: tuple[str, ...] = ()
    """the fields that tell results apart"""
    time: Name = None
    """the field with the event time of a result"""
    window_end: Name = None
    """the field with the end of its window, instead of time"""
    latency_key: tuple[str, ...] = ()
    """the fields that a result has from its one input record, instead of time"""
    time_unit: Unit = "ms"
    """the unit of its times"""
    reach: Annotated[str, AfterValidator(_is_reach)] = ""
    """how long one event can change results: a time such as 5s, or unbounded. Default: 20s; in update mode unbounded"""
    reference: str = ""
    """the right results as DuckDB SQL over the inputs"""

    @property
    def reach_us(self) -> int | None:
        """How long one event can influence results; None if without an end."""
        reach = self.reach or (UNBOUNDED if self.mode == "update" else DEFAULT_REACH)
        return None if reach == UNBOUNDED else round(US * parse_duration(reach))


class ProgramTable(_Table):
    """The whole file."""

    _path: Path = PrivateAttr(default=Path())

    kind: Literal["program"]
    """what the file is"""
    title: str = ""
    """what the program does, for reports"""
    answers: str = ""
    """the built-in workload whose query the program answers, so that both can be compared"""
    command: tuple[str, ...] = ()
    """the program and its arguments; it runs in the file's folder. {python} is the interpreter of streamgauge"""
    attach: bool = False
    """instead of command: the program runs already"""
    brokers: str = ""
    """with attach: addresses of the brokers, HOST:PORT,..."""
    environment: dict[str, str] = {}
    """environment variables, which may have placeholders such as {parallelism}"""
    group: str = ""
    """the program's own consumer group; without it the run makes one, in STREAMGAUGE_GROUP"""
    ready: Ready = "consumer"
    """what shows that the program is ready"""
    ready_line: str = ""
    """with ready = "line": a regular expression that finds the line"""
    timeout: Seconds = 30.0
    """how long it may take to get ready, and from the first event to the first result, in seconds or as 30s, 2m"""
    progress: Annotated[ProgressSource, PlainValidator(_progress, json_schema_input_type=_ProgressInFile)] = (
        ProgressSource()
    )
    """what shows how far it has read: the offsets of its group, its results, or the checkpoints of its Spark queries"""
    inputs: Annotated[dict[str, InputTable], Field(min_length=1)]
    """one table for each input topic: [inputs.NAME]"""
    output: OutputTable | None = None
    """the topic of results"""
    outputs: dict[str, OutputTable] = {}
    """instead of output: one table for each of several topics, [outputs.NAME]"""
    reference: str = ""
    """the right results as DuckDB SQL over the inputs"""

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
