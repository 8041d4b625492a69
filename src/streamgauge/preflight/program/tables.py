"""The file of a program of the user's own: its tables, read and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from streamgauge.core.engine_reports import Delivery
from streamgauge.core.errors import InputError, JobError, Problem, choices_of, near, nearest, rule_of
from streamgauge.core.units import parse_duration
from streamgauge.dataflow.program import Ready
from streamgauge.jobs import DEFAULT_REACH, UNBOUNDED
from streamgauge.loadgen.fields import FieldSpec
from streamgauge.preflight.program.field_tables import specs_of
from streamgauge.preflight.user_job import SINK
from streamgauge.transports.kafka.encodings.api import AVRO, Kind, MessageFormat
from streamgauge.transports.kafka.topics import RecordTimestamp

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
        items = error.errors()
        unknown = {item["loc"][0] for item in items if item["type"] == "extra_forbidden" and len(item["loc"]) == 1}
        named_otherwise = {near(name, _TABLES) for name in unknown}
        missing = [item for item in items if item["type"] == "missing" and item["loc"][0] in named_otherwise]
        raise JobError([_problem(path, item) for item in items if item not in missing]) from None


def _topics_without_names(path: Path, values: dict[str, Any]) -> Iterator[Problem]:
    """Settings that stand in `[inputs]` or `[outputs]` itself."""
    for part, way_out in (("inputs", "[inputs.purchases]"), ("outputs", "[output]; several outputs: [outputs.NAME]")):
        table = values.get(part)
        if isinstance(table, dict) and (settings := [name for name in table if not isinstance(table[name], dict)]):
            rule = f"must be a table for each topic: [{part}.NAME]"
            yield Problem(f"{path.name}: {part}", rule, f"settings {', '.join(settings)}", way_out)


def _problem(path: Path, item: Any) -> Problem:
    parts = [str(part) for part in item["loc"]]
    setting, name = f"{path.name}: {'.'.join(parts)}", parts[-1] if parts else ""
    inner = item.get("ctx", {}).get("error")
    if isinstance(inner, InputError):
        first = inner.problems[0]
        return Problem(setting, first.rule, first.got, first.way_out)
    if item["type"] == "extra_forbidden":
        known = _settings_beside(parts)
        rule, got = f"is not a setting; these are: {', '.join(known)}", item["input"]
        if isinstance(got, dict):
            return Problem(setting, rule, f"a table of {', '.join(got)}", _table_for(parts, got, known))
        return Problem(setting, rule, got, _place_for(name, known))
    if item["type"] == "missing":
        return Problem(setting, "must be given", None, EXAMPLES.get(parts[0], f"{name} = ..."))
    if name != parts[0] and (example := _EXAMPLES_BELOW.get(parts[0] if len(parts) == 2 else parts[-2])):
        return Problem(setting, rule_of(item), item["input"], f"{name} = {example.format(item['input'])}")
    choices = choices_of(item)
    way_out = f'{name} = "{nearest(item["input"], choices)}"' if choices else EXAMPLES.get(name, f"correct {name}")
    return Problem(setting, rule_of(item), item["input"], way_out)


EXAMPLES = {
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
}
_EXAMPLES_BELOW = {"environment": '"{}"', "fields": '{{ kind = "integer", low = 1, high = 100 }}'}
"""Table to a value for a name of the user's own in it."""
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
    return f"one of {', '.join(f'[{each}]' for each in tables)}, or leave it out"


def _place_for(name: str, known: list[str]) -> str:
    """The setting that is meant by an unknown one, or the table in which it belongs."""
    if meant := near(name, known):
        return meant
    if name in ProgramTable.model_fields:
        return f"{name} at the top of the file, before its first table"
    if name in OutputTable.model_fields:
        return f"{name} below [output] or [outputs.NAME]"
    return f"{name} below [inputs.NAME]" if name in InputTable.model_fields else "leave it out"
