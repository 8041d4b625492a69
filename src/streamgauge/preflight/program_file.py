"""The file of a program of the user's own: TOML tables, checked on their own."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from streamgauge.core.errors import InputError, JobError, Problem, choices_of, nearest, rule_of
from streamgauge.core.lineage_columns import LINEAGE
from streamgauge.core.units import parse_duration
from streamgauge.dataflow.program import unknown_inputs
from streamgauge.jobs import DEFAULT_REACH, UNBOUNDED
from streamgauge.loadgen.fields import Decimal, FieldSpec, Integer, Key, Payload, Text
from streamgauge.loadgen.fitted import Choice

KINDS: dict[str, type[FieldSpec]] = {
    "key": Key, "integer": Integer, "decimal": Decimal, "text": Text, "payload": Payload, "choice": Choice,
}  # fmt: skip
UNITS = {"s": 1_000_000, "ms": 1000, "us": 1}
"""Microseconds by the name of a unit."""
Unit = Literal["s", "ms", "us"]
Seconds = Annotated[float, BeforeValidator(lambda value: parse_duration(value, "timeout", way_out='timeout = "30s"'))]
_PURCHASES = '[inputs.purchases.fields], and below it user_id = { kind = "key", domain = 1000 }'


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class InputTable(_Table):
    """`[inputs.NAME]`: an input topic."""

    fields: dict[str, dict[str, Any]] = {}
    sample: str | None = None
    share: float | None = None
    key: str | None = None
    time: str | None = None
    time_unit: Unit = "ms"

    def specs(self, setting: str) -> tuple[FieldSpec, ...]:
        """The declared fields. Raises InputError with the problems of all."""
        problems: list[Problem] = []
        specs: list[FieldSpec] = []
        for name, table in self.fields.items():
            try:
                specs.append(_field(f"{setting}.fields.{name}", name, table))
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(problems)
        return tuple(specs)


class OutputTable(_Table):
    """`[output]`: the topic of the results."""

    mode: Literal["append", "update"] = "append"
    keys: tuple[str, ...] = ()
    time: str | None = None
    window_end: str | None = None
    time_unit: Unit = "ms"
    reach: str = ""


class ProgramTable(_Table):
    """The whole file."""

    kind: Literal["program"]
    title: str = ""
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    environment: dict[str, str] = {}
    group: str = ""
    ready: Literal["consumer", "committed", "line", "started"] = "consumer"
    ready_line: str = ""
    timeout: Seconds = 30.0
    inputs: Annotated[dict[str, InputTable], Field(min_length=1)]
    output: OutputTable
    reference: str

    @property
    def reach(self) -> str:
        """How long one event can influence results."""
        return self.output.reach or (UNBOUNDED if self.output.mode == "update" else DEFAULT_REACH)


def read(path: Path) -> ProgramTable:
    """The tables of a file. Raises JobError with every problem."""
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
        table = ProgramTable.model_validate(values)
    except ValidationError as error:
        raise JobError([_problem(path, item) for item in error.errors()]) from None
    if problems := list(_problems(path, table)):
        raise JobError(problems)
    return table


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
        return Problem(setting, "must be given", None, _EXAMPLES.get(parts[0], f"{name} = ..."))
    choices = choices_of(item)
    way_out = f'{name} = "{nearest(item["input"], choices)}"' if choices else _EXAMPLES.get(name, f"correct {name}")
    return Problem(setting, rule_of(item), item["input"], way_out)


_EXAMPLES = {
    "command": 'command = ["{python}", "consumer.py"]',
    "inputs": _PURCHASES,
    "output": '[output], and below it keys = ["user_id"] and time = "ts"',
    "reference": 'reference = "SELECT ... FROM purchases", the right results as DuckDB SQL over the inputs',
    "keys": 'keys = ["user_id"]',
}


def _settings_beside(parts: list[str]) -> list[str]:
    model: type[BaseModel] = ProgramTable
    if parts[0] == "inputs" and len(parts) > 2:
        model = InputTable
    elif parts[0] == "output" and len(parts) > 1:
        model = OutputTable
    return list(model.model_fields)


def _problems(path: Path, table: ProgramTable) -> Iterator[Problem]:
    """What the tables say that cannot be."""

    def refuse(setting: str, rule: str, got: object, way_out: str) -> Problem:
        return Problem(f"{path.name}: {setting}", rule, got, way_out)

    for name, given in table.inputs.items():
        yield from _input_problems(path, f"inputs.{name}", name, given)
    output = table.output
    if output.time is None and output.window_end is None:
        rule = "must name the field of a result with its event time (time) or the end of its window (window_end)"
        yield refuse("output", rule, None, 'time = "ts" below [output]')
    if output.mode == "update" and not output.keys:
        rule = "must name the fields whose values are updated"
        yield refuse("output.keys", rule, [], 'keys = ["user_id"]')
    if (table.ready == "line") != bool(table.ready_line):
        rule = 'must be given with ready = "line", and only then'
        yield refuse("ready_line", rule, table.ready_line, 'ready = "line" and ready_line = "started"')
    for unknown in unknown_inputs(table.command, table.inputs):
        names = ", ".join(f"{{input.{name}}}" for name in table.inputs)
        yield refuse("command", "must name an input in its placeholder", f"{{{unknown}}}", names)


def _input_problems(path: Path, setting: str, name: str, given: InputTable) -> Iterator[Problem]:
    place = f"{path.name}: {setting}"
    if not name.isidentifier() or name.startswith("_"):
        yield Problem(place, "must have a name of letters, digits and _", name, "[inputs.purchases]")
    if bool(given.fields) == (given.sample is not None):
        got = "both" if given.fields else "neither"
        rule = "needs its fields or a sample of its messages, one of them"
        yield Problem(place, rule, got, f'{_PURCHASES}; or sample = "FILE.json"')
    try:
        names = [one.name for one in given.specs(place)]
    except InputError as error:
        yield from error.problems
        return
    taken = (*LINEAGE, *names)
    if given.time is not None and given.time.lower() in map(str.lower, taken):
        yield Problem(f"{place}.time", f"must differ from {', '.join(taken)}", given.time, 'time = "ts"')
    if given.key is not None and names and given.key not in names:
        yield Problem(f"{place}.key", "must be one of its fields", given.key, f'key = "{nearest(given.key, names)}"')


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
