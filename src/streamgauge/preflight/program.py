"""Programs of the user's own as workloads: a TOML file that declares inputs, output, truth and command."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, JobError, Problem, nearest
from streamgauge.core.lineage_columns import EVENT_TIME, WINDOW_END
from streamgauge.core.schema import quote
from streamgauge.core.units import parse_duration
from streamgauge.core.value_types import BOOLEAN, DECIMAL, FLOAT, INT, LIST, STRING, TIMESTAMP, ValueType, from_duckdb
from streamgauge.dataflow.nodes import Flow, Sink, Source
from streamgauge.dataflow.program import Launch, Output, ProgramNode
from streamgauge.jobs import DEFAULT_REACH, TIME, UNBOUNDED, Description, Input
from streamgauge.loadgen.fields import SHARES_RULE, RecordTime, StreamSpec, sum_to_one
from streamgauge.loadgen.replay.files import digest
from streamgauge.loadgen.replay.fit_sample import fit
from streamgauge.preflight import program_file
from streamgauge.preflight.program_file import UNITS, InputTable, ProgramTable
from streamgauge.preflight.user_job import SINK, NoParameters, UserJob
from streamgauge.system.user_code import duckdb_lines, first_line
from streamgauge.workloads.registry import Job

PLANNED_TIME = "planned_time"
"""The time column of the tables of a reference, if a field has the usual name."""
_JSON = {
    INT: "bigint",
    FLOAT: "double",
    DECIMAL: "double",
    STRING: "string",
    BOOLEAN: "boolean",
    TIMESTAMP: "timestamp",
}
_DUCKDB = {"double": "DOUBLE", "string": "VARCHAR", "binary": "BLOB", "timestamp": "TIMESTAMP"}
_REACH = (
    f"reach not declared: taken as {DEFAULT_REACH} of event time, by which warm-up and tail are longer; a program "
    'without windows or state has reach = "0s"'
)


@dataclass(frozen=True, kw_only=True)
class Program(UserJob):
    """A program from a file."""

    without_parameters = "leave --set out, and change the values in its file"

    native: ProgramNode


def program(path: Path) -> Program:
    """The program in a file. Raises JobError with every problem."""
    try:
        return _program(path, program_file.read(path))
    except InputError as error:
        raise JobError(error.problems) from None


def results_of(job: Program, partitions: int) -> dict[str, Any]:
    """What the recorder must know of a program, as plain data (`ProgramTopics`)."""
    node, output = job.native, job.native.output
    results = {
        "types": dict(output.types), "required": list(output.required), "time": output.time,
        "window_end": output.window_end, "unit_us": output.unit_us,
    }  # fmt: skip
    return {
        "streams": [each.name for each in node.inputs], "partitions": partitions, "group": node.launch.group,
        "results": results, "timeout_s": node.launch.timeout_s + (node.reach_us or 0) / US,
    }  # fmt: skip


def _program(path: Path, table: ProgramTable) -> Program:
    folder = path.resolve().parent
    streams, notes = _streams(path, table)
    columns = _columns(path, table, streams)
    reach_us = None if table.reach == UNBOUNDED else round(US * parse_duration(table.reach, f"{path.name}: reach"))
    inputs = tuple(Input(name, (), None, None, _time_name(each), each.key) for name, each in _named(streams))
    described = Description(
        inputs, table.output.mode, table.output.keys, reach_us, _reference(path, table),
        () if table.output.reach else (_REACH,) if table.output.mode == "append" else (),
    )  # fmt: skip
    node = ProgramNode(
        tuple(Source(each.name, each.schema) for each in streams), tuple(each.time for each in inputs),
        str(path.resolve()), "program", table.output.keys, reach_us, tuple(columns.items()),
        launch=_launch(path, table, folder), output=_output(table, columns),
    )  # fmt: skip
    name = folder.name if path.stem == "program" else path.stem
    flow = Flow((Sink(node, SINK, table.output.mode),))
    files = {path.name: path} | {each.sample: folder / each.sample for each in table.inputs.values() if each.sample}
    files |= {word: folder / word for word in table.command if (folder / word).is_file()}
    return Program(
        name=name, title=name.replace("_", " "), summary=table.title or "a program of the user's own",
        source=str(path), parameters=NoParameters, build=lambda parameters, rate_per_s: Job(flow, streams),
        files={name: digest(file) for name, file in files.items()}, path=path, description=described, native=node,
        notes=(*notes, *described.assumed),
    )  # fmt: skip


def _named(streams: tuple[StreamSpec, ...]) -> Iterator[tuple[str, StreamSpec]]:
    return ((each.name, each) for each in streams)


def _time_name(stream: StreamSpec) -> str:
    taken = {name.lower() for name in stream.schema.names}
    return PLANNED_TIME if TIME in taken else TIME


def _launch(path: Path, table: ProgramTable, folder: Path) -> Launch:
    """The launch. Raises InputError if the command's program does not exist."""
    first = table.command[0].replace("{python}", sys.executable)
    if "{" not in first and shutil.which(first, path=None) is None and shutil.which(str(folder / first)) is None:
        rule = "must begin with a program that exists and may be run, on PATH or beside the file"
        way_out = f'install it, or name it by its path: command = ["/path/to/{Path(first).name}", ...]'
        raise InputError(Problem(f"{path.name}: command", rule, first, way_out))
    beside = shutil.which(str(folder / first)) if shutil.which(first) is None else None
    command = (beside, *table.command[1:]) if beside is not None else table.command
    return Launch(
        command, str(folder), tuple(table.environment.items()), table.group, table.ready, table.ready_line,
        table.timeout,
    )  # fmt: skip


def _output(table: ProgramTable, columns: Mapping[str, ValueType]) -> Output:
    output = table.output
    types = {name: _json_type(type_) for name, type_ in columns.items()}
    required = tuple(dict.fromkeys((*output.keys, *filter(None, (output.time, output.window_end)))))
    return Output(
        tuple(types.items()), required, output.time or "", output.window_end or "", UNITS[output.time_unit]
    )  # fmt: skip


def _json_type(type_: ValueType) -> str:
    """A type as JSON has it; empty for types that results cannot have."""
    if type_.name == LIST:
        element = type_["element"]
        return f"array<{_JSON[element.name]}>" if element.name in (INT, FLOAT, STRING, BOOLEAN) else ""
    return _JSON.get(type_.name, "")


def _streams(path: Path, table: ProgramTable) -> tuple[tuple[StreamSpec, ...], tuple[str, ...]]:
    """(the offered streams, notes on fitted samples)."""
    shares = _shares(path, table)
    specs, notes = [], []
    for (name, given), share in zip(table.inputs.items(), shares, strict=True):
        fields = given.specs(f"{path.name}: inputs.{name}")
        if given.sample is not None:
            sample = fit(path.resolve().parent / given.sample, given.time or TIME, named=given.time is not None)
            fields = sample.fields
            notes += [f"{name} is fitted to {given.sample}: {text}" for text in sample.notes]
        specs.append(StreamSpec(name, (*fields, *_time_field(given)), share, given.key))
    return tuple(specs), tuple(notes)


def _time_field(given: InputTable) -> tuple[RecordTime, ...]:
    return (RecordTime(given.time, UNITS[given.time_unit]),) if given.time is not None else ()


def _shares(path: Path, table: ProgramTable) -> list[float]:
    given = [each.share for each in table.inputs.values() if each.share is not None]
    if not given:
        return [1 / len(table.inputs)] * len(table.inputs)
    if len(given) < len(table.inputs) or not sum_to_one(given):
        got = [each.share for each in table.inputs.values()]
        rule = f"{SHARES_RULE}, or have none at all"
        raise InputError(Problem(f"{path.name}: inputs share", rule, got, "share = 0.5 on each of two"))
    return given


def _columns(path: Path, table: ProgramTable, streams: tuple[StreamSpec, ...]) -> dict[str, ValueType]:
    """The fields of a result and their types, from a run of the reference over empty tables.

    Raises InputError if the reference fails or lacks a field that [output] names.
    """
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for stream in streams:
            connection.execute(f"CREATE VIEW {quote(stream.name)} AS {_empty(stream)}")
        setting, names = f"{path.name}: reference", ", ".join(each.name for each in streams)
        rule = f"must be DuckDB SQL over its inputs ({names})"
        try:
            relation = connection.sql(table.reference)
        except duckdb.Error as error:
            more = "\n  ".join(["correct it", *duckdb_lines(error)])
            raise InputError(Problem(setting, rule, first_line(error), more)) from None
        if relation is None:  # the query is empty or a comment
            raise InputError(
                Problem(setting, rule, table.reference, f'reference = "SELECT ... FROM {streams[0].name}"')
            )
        columns = dict(zip(relation.columns, map(from_duckdb, relation.types), strict=True))
    if problems := list(_column_problems(path, table, columns)):
        raise InputError(problems)
    return columns


def _empty(stream: StreamSpec) -> str:
    """A table without rows, as the reference reads the stream."""
    types = {name: _DUCKDB.get(kind, kind) for name, kind in stream.schema.types().items()}
    types |= {EVENT_TIME: "BIGINT", _time_name(stream): "TIMESTAMP"}
    return "SELECT " + ", ".join(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in types.items()) + " LIMIT 0"


def _column_problems(path: Path, table: ProgramTable, columns: Mapping[str, ValueType]) -> Iterator[Problem]:
    output, names = table.output, list(columns)
    absent: set[str] = set()
    for setting, fields in (("keys", output.keys), ("time", (output.time,)), ("window_end", (output.window_end,))):
        for field in filter(None, fields):
            if field in absent:
                continue
            if field not in columns:
                absent.add(field)
                rule = f"must be a column of the reference: {', '.join(names)}"
                way_out = f'"{nearest(field, names)}", or add {field} to the reference'
                yield Problem(f"{path.name}: output.{setting}", rule, field, way_out)
            elif setting != "keys" and columns[field].name not in (INT, TIMESTAMP):
                rule = f"must be a whole number of {output.time_unit}, or a timestamp, in the reference"
                yield Problem(f"{path.name}: output.{setting}", rule, f"{field} {columns[field]}", f"cast {field}")
    for name, type_ in columns.items():
        if not _json_type(type_):
            rule = "must have columns that JSON can hold: numbers, texts, booleans, timestamps and arrays of these"
            yield Problem(f"{path.name}: reference", rule, f"{name} {type_}", f"CAST({name} AS VARCHAR) AS {name}")


def _reference(path: Path, table: ProgramTable) -> Callable[[Any], Any]:
    """The reference with the event time, and the end of a window as a timestamp, by the fields that [output] names."""

    def answer(connection: Any) -> Any:
        relation = connection.sql(table.reference)
        types = dict(zip(relation.columns, map(from_duckdb, relation.types), strict=True))
        return _dated(connection, table, types)

    return answer


def _dated(connection: Any, table: ProgramTable, types: Mapping[str, ValueType]) -> Any:
    output, unit_us = table.output, UNITS[table.output.time_unit]

    def micros(name: str) -> str:
        return f"epoch_us({quote(name)})" if types[name].name == TIMESTAMP else f"{quote(name)}::BIGINT * {unit_us}"

    added: dict[str, str] = {}
    if output.window_end:
        added = {
            EVENT_TIME: f"{micros(output.window_end)} - 1",
            WINDOW_END: f"make_timestamp({micros(output.window_end)})",
        }
    if output.time:
        added[EVENT_TIME] = micros(output.time)
    replaced = [f"{sql} AS {quote(name)}" for name, sql in added.items() if name in types]
    new = [f"{sql} AS {quote(name)}" for name, sql in added.items() if name not in types]
    columns = ", ".join([f"* REPLACE ({', '.join(replaced)})" if replaced else "*", *new])
    return connection.sql(f"SELECT {columns} FROM ({table.reference.strip().rstrip(';')})")
