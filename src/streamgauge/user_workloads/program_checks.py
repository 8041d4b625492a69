"""What a program's file says that cannot be, each with one message: in its tables, and by a dry run of its references.

The dry run takes some planned events, before anything starts. It finds errors that need rows: a query that fails on
them, times in another unit, keys that do not identify a result.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, Problem, nearest
from streamgauge.core.schema import EVENT_TIME, LINEAGE, WINDOW_END, WINDOW_START, quote, quoted
from streamgauge.core.value_types import BOOLEAN, DECIMAL, FLOAT, INT, LIST, STRING, TIMESTAMP, ValueType
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.loadgen.plan import BATCH_BYTES_MAX, Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.system.user_code import duckdb_lines, first_line
from streamgauge.transports.kafka.encodings.choice import schema_fields
from streamgauge.transports.topics import FRAMED, PROTOBUF, UNITS, WITH_SCHEMA, in_year, units_of
from streamgauge.user_workloads.program_file import EXAMPLES, FIELDS_EXAMPLE, InputTable, OutputTable, ProgramTable
from streamgauge.user_workloads.program_node import SCRATCH, placeholders, unknown_placeholders
from streamgauge.user_workloads.reference import table_types, time_name, types_of

_REMOTE = re.compile(r"(?!file:)[A-Za-z][\w+.-]*:/")
_BRACES = re.compile(r"\{[^{}]*\}")
CHECKPOINT_PLACEHOLDERS = (SCRATCH, "{run}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_PLAIN = {
    INT: "bigint",
    FLOAT: "double",
    DECIMAL: "double",
    STRING: "string",
    BOOLEAN: "boolean",
    TIMESTAMP: "timestamp",
}
TIMES = ("time", "window_end")
"""The settings of an output that name a field with a time."""
_KEY_TYPES = {"int": INT, "bigint": INT, "string": STRING}
"""Type of an event's field to that of a column that identifies its record."""
_SCHEMA_TAKES = {
    "int": ("int", "bigint", "double"), "bigint": ("bigint", "double"), "timestamp": ("bigint",),
    "string": ("string", "binary"),
}  # fmt: skip
"""Type of an event's field to the types of values in a schema that can hold it; others only themselves."""
_SCHEMA_GIVES = {"bigint": ("bigint", "int"), "double": ("double", "bigint", "int"), "timestamp": ("bigint",)}
"""Type of a result's field to the types of values in a schema from which it is read."""


def table_problems(path: Path, table: ProgramTable) -> Iterator[Problem]:
    """The problems of the file, without those of its references."""

    def refuse(setting: str, rule: str, got: object, way_out: str) -> Problem:
        return Problem(f"{path.name}: {setting}", rule, got, way_out)

    yield from _start_problems(path, table)
    yield from _progress_problems(path, table)
    for part, each in (("inputs", list(table.inputs)), ("outputs", list(table.outputs))):
        for first, second in combinations(each, 2):
            if first.lower() == second.lower():
                rule = f"must differ from {first} by more than upper and lower case, which SQL and variables ignore"
                yield refuse(f"{part}.{second}", rule, second, f"{part}.{second}_2")
    for name, given in table.inputs.items():
        yield from _input_problems(path, f"inputs.{name}", name, given)
    if (table.output is None) == (not table.outputs):
        got = "neither" if table.output is None else "both"
        yield refuse("output", "must be one table [output], or tables [outputs.NAME]", got, EXAMPLES["output"])
    if table.outputs and table.reference:
        yield refuse("reference", "must stand in each of the outputs", table.reference, "[outputs.NAME] reference")
    for sink, output in table.by_sink.items():
        yield from _output_problems(path, table.setting_of(sink), sink, output)
    yield from _topic_problems(path, table)
    yield from _placeholder_problems(path, table)


def _placeholder_problems(path: Path, table: ProgramTable) -> Iterator[Problem]:
    """Words in braces that would reach the program as they are."""
    known = placeholders(table.inputs, table.by_sink)
    listed = ", ".join(f"{{{name}}}" for name in known)
    texts = {"command": table.command} | {f"environment.{name}": [text] for name, text in table.environment.items()}
    for setting, words in texts.items():
        for unknown in unknown_placeholders(words, table.inputs, table.by_sink):
            way_out = f"{{{nearest(unknown, known)}}}; to pass on the braces themselves: {{{{{unknown}}}}}"
            rule = f"must be one of the placeholders {listed}"
            yield Problem(f"{path.name}: {setting}", rule, f"{{{unknown}}}", way_out)


def _start_problems(path: Path, table: ProgramTable) -> Iterator[Problem]:
    """Problems with how the program is started, or found."""

    def refuse(setting: str, rule: str, got: object, way_out: str) -> Problem:
        return Problem(f"{path.name}: {setting}", rule, got, way_out)

    if bool(table.command) == table.attach:
        got = "both" if table.attach else "neither"
        rule = "must be given, or attach = true for a program that runs already"
        yield refuse("command", rule, got, EXAMPLES["command"])
    if (table.ready == "line") != bool(table.ready_line):
        rule = 'must be given with ready = "line", and only then'
        yield refuse("ready_line", rule, table.ready_line, 'ready = "line" and ready_line = "started"')
    try:
        re.compile(table.ready_line)
    except re.error as error:
        yield refuse(
            "ready_line",
            f"must be a regular expression ({error})",
            table.ready_line,
            f"ready_line = '{re.escape(table.ready_line)}'",
        )
    by_checkpoint = table.progress.by == "spark_checkpoint"
    if by_checkpoint and table.ready in ("consumer", "committed"):
        rule = 'must be "line" or "started" with spark_checkpoint, as Spark joins no group and commits to none'
        way_out = 'ready = "started"' if table.attach else 'ready = "line" and ready_line = "^query started"'
        yield refuse("ready", rule, table.ready, way_out)
    if not table.timeout > 0:
        yield refuse("timeout", "must be above 0s", f"{table.timeout:g}s", 'timeout = "30s"')
    if not table.attach:
        return
    if table.ready == "line":
        yield refuse("ready", "must not be line with attach, as its output is not seen", "line", 'ready = "consumer"')
    ungrouped = table.ready == "started" and table.progress.by in ("results", "spark_checkpoint")
    for setting, example in (("brokers", "localhost:9092"), ("group", "my-group")):
        if not getattr(table, setting) and not (setting == "group" and ungrouped):
            rule = "must be given with attach, as the program runs already"
            if setting == "group" and by_checkpoint:
                continue  # said of ready
            yield refuse(setting, rule, "", f'{setting} = "{example}"')


def _progress_problems(path: Path, table: ProgramTable) -> Iterator[Problem]:
    """Checkpoints that cannot be read."""
    setting, example = f"{path.name}: progress.spark_checkpoint", 'spark_checkpoint = ["{scratch}/checkpoint"]'
    for place in table.progress.checkpoints:
        if _REMOTE.match(place):
            rule = "must be a folder of this machine, as streamgauge reads its files: no remote file system"
            way_out = f"{example}, and in the program checkpointLocation = $STREAMGAUGE_SCRATCH/checkpoint"
            yield Problem(setting, rule, place, way_out)
        elif unknown := [name for name in _BRACES.findall(place) if name not in CHECKPOINT_PLACEHOLDERS]:
            rule = f"must have no placeholders except {' and '.join(CHECKPOINT_PLACEHOLDERS)}"
            yield Problem(setting, rule, unknown[0], example)
        elif SCRATCH in place and table.attach:
            rule = f"must not be in {SCRATCH} with attach, as the program runs already and has no such folder"
            yield Problem(setting, rule, place, 'spark_checkpoint = ["/path/of/its/checkpoint"]')
        elif table.progress.checkpoints.count(place) > 1:
            yield Problem(setting, "must name each checkpoint once", place, "one folder for each of its queries")
            return


def _topic_problems(path: Path, table: ProgramTable) -> Iterator[Problem]:
    """Problems with the names of topics."""
    named = {f"inputs.{name}": each.topic for name, each in table.inputs.items()}
    named |= {table.setting_of(sink): each.topic for sink, each in table.by_sink.items()}
    taken: dict[str, str] = {}
    for setting, topic in named.items():
        place = f"{path.name}: {setting}.topic"
        if not topic and table.attach:
            yield Problem(place, "must be given with attach, as the program has its topics", "", 'topic = "orders"')
        elif topic and (not _TOPIC.fullmatch(topic) or topic in (".", "..")):
            yield Problem(place, "must have letters, digits, . _ and - only, at most 249", topic, 'topic = "orders"')
        elif topic in taken:
            yield Problem(place, f"must differ from that of {taken[topic]}", topic, "a topic of its own")
        elif topic:
            taken[topic] = setting


_NAME_RULE = "must have a name of letters (a to z), digits and _"


def _is_name(name: str) -> bool:
    """Whether it can be that of an input or output, which its topic contains."""
    return name.isascii() and name.isidentifier() and not name.startswith("_")


def _input_problems(path: Path, setting: str, name: str, given: InputTable) -> Iterator[Problem]:
    place = f"{path.name}: {setting}"
    if not _is_name(name):
        yield Problem(place, _NAME_RULE, name, "[inputs.purchases]")
    if bool(given.fields) == (given.sample is not None):
        got = "both" if given.fields else "neither"
        rule = "needs its fields or a sample of its messages, one of them"
        yield Problem(place, rule, got, f'{FIELDS_EXAMPLE}; or sample = "FILE.json"')
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
    yield from _nesting_problems(place, [*names, *([given.time] if given.time else [])])
    yield from _format_problems(path, setting, given)


def _output_problems(path: Path, setting: str, sink: str, output: OutputTable) -> Iterator[Problem]:
    place = f"{path.name}: {setting}"
    if not _is_name(sink):
        yield Problem(place, _NAME_RULE, sink, "[outputs.totals]")
    if output.mode == "update" and not output.keys:
        yield Problem(f"{place}.keys", "must name the fields whose values are updated", [], EXAMPLES["keys"])
    if output.mode == "update" and output.delivery != "exactly_once":
        rule = 'applies to mode = "append" only: of updates the last value of each key is compared'
        yield Problem(f"{place}.delivery", rule, output.delivery, "leave it out")
    if (output.delivery == "at_most_once") != (output.loss_max is not None):
        rule = "must be given with at_most_once, and only with it: the share of results that may be lost"
        without = 'delivery = "at_most_once", or leave loss_max out'
        way_out = EXAMPLES["loss_max"] if output.loss_max is None else without
        yield Problem(f"{place}.loss_max", rule, output.loss_max, way_out)
    if output.latency_key and (output.mode == "update" or output.time or output.window_end):
        rule = 'applies to mode = "append" without time and window_end only: these say the event time'
        yield Problem(f"{place}.latency_key", rule, list(output.latency_key), "leave it out")
    if not output.reference:
        reference = f"{path.name}: reference" if setting == "output" else f"{place}.reference"
        yield Problem(reference, "must be given", None, EXAMPLES["reference"])
    yield from _format_problems(path, setting, output)


def _format_problems(path: Path, setting: str, given: InputTable | OutputTable) -> Iterator[Problem]:
    """Problems with the settings of a format, and with the file of its schema."""
    place = f"{path.name}: {setting}"
    if len(given.delimiter) != 1:
        yield Problem(f"{place}.delimiter", "must be one character", given.delimiter, 'delimiter = ";"')
    settings = {"delimiter": ("csv",), "schema_file": WITH_SCHEMA, "schema_id": FRAMED, "message": PROTOBUF}
    for name, kinds in settings.items():
        if name in given.model_fields_set and given.format not in kinds:
            rule = f"applies to the format {' or '.join(kinds)} only"
            yield Problem(f"{place}.{name}", rule, given.format, f'format = "{kinds[0]}", or leave it out')
    if given.format not in WITH_SCHEMA:
        return
    if not given.schema_file:
        rule = f"must be given for the format {given.format}: the file of the schema that the program uses"
        example = "purchase.desc" if given.format in PROTOBUF else "purchase.avsc"
        yield Problem(f"{place}.schema_file", rule, "", f'schema_file = "{example}"')
        return
    try:
        schema_fields(given.message_format(path.resolve().parent))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        what = "a descriptor set of a message" if given.format in PROTOBUF else "an Avro schema of a record"
        rule = f"must be {what} of plain fields ({reason})"
        yield Problem(f"{place}.schema_file", rule, given.schema_file, "correct it, or name another file")


def _nesting_problems(place: str, names: Sequence[str]) -> Iterator[Problem]:
    """A field that would be a value and an object."""
    for name in names:
        inside = next((other for other in names if other.startswith(f"{name}.")), None)
        if inside is not None:
            yield Problem(f"{place}.fields", f"{name} must not be a value beside {inside}", name, "rename one")


def stream_problems(path: Path, table: ProgramTable, streams: Sequence[StreamSpec]) -> Iterator[Problem]:
    """Fields that the format of their messages cannot hold."""
    for stream, given in zip(streams, table.inputs.values(), strict=True):
        place, types = f"{path.name}: inputs.{stream.name}", stream.schema.types()
        if given.format == "text" and len(types) != 1:
            yield Problem(f"{place}.format", "text needs one field", list(types), 'format = "csv"')
        if given.format in WITH_SCHEMA:
            fields = schema_fields(given.message_format(path.resolve().parent))
            found = {each.name: each.type for each in fields}
            yield from _schema_problems(place, types, found, _SCHEMA_TAKES)
            for name in found.keys() - types.keys():
                rule = "must have a field for each one of the schema"
                yield Problem(f"{place}.fields", rule, name, f"add {name}, or use a schema without it")
            lacking = {each.name for each in fields if not each.nullable}
            for name in (each.name for each in stream.schema.fields if each.nullable and each.name in lacking):
                rule = f"must be able to hold nulls of {name}, which the program would take for another value"
                way_out = "a union with null in Avro, optional in Protocol Buffers, or a sample without nulls there"
                yield Problem(f"{place}.schema_file", rule, name, way_out)


def _schema_problems(
    place: str, types: Mapping[str, str], found: Mapping[str, str], accepted: Mapping[str, tuple[str, ...]]
) -> Iterator[Problem]:
    """Fields that a schema lacks, or has as another type. `accepted`: type to types of a schema."""
    for name, kind in types.items():
        if name not in found:
            rule = f"must have {name} in its schema, which has {', '.join(found)}"
            yield Problem(f"{place}.schema_file", rule, name, nearest(name, list(found)))
        elif found[name] not in accepted.get(kind, (kind,)):
            rule = f"must have {name} as a type that fits {kind}"
            yield Problem(f"{place}.schema_file", rule, found[name], "correct the schema, or cast the field")


def latency_key_problems(
    path: Path, table: ProgramTable, sink: str, columns: Mapping[str, ValueType], streams: Sequence[StreamSpec]
) -> Iterator[Problem]:
    """A latency key that does not name fields of one input, each with its type."""
    key = table.by_sink[sink].latency_key
    place = f"{path.name}: {table.setting_of(sink)}.latency_key"
    if not set(key) <= columns.keys():
        return  # said of the column
    found = inputs_with(key, streams)
    if len(found) != 1:
        names = ", ".join(each.name for each in found) or "none"
        rule = f"must be fields of exactly one input; these have them: {names}"
        way_out = "rename them in the other input" if found else "name fields that the reference takes from an input"
        yield Problem(place, rule, list(key), way_out)
        return
    (stream,) = found
    for name in key:
        kind = stream.schema.types()[name]
        if name in columns and columns[name].name != _KEY_TYPES.get(kind):
            rule = f"must be whole numbers or texts, as in {stream.name}, where {name} is {kind}"
            got = f"{name} {columns[name]}"
            yield Problem(place, rule, got, "name other fields, or leave its type in the reference")


def inputs_with(names: Sequence[str], streams: Sequence[StreamSpec]) -> list[StreamSpec]:
    """The inputs that have all these fields."""
    return [stream for stream in streams if set(names) <= stream.schema.types().keys()]


def message_type(type_: ValueType) -> str:
    """A type of a result as JSON has it; empty for types that results cannot have."""
    if type_.name == LIST:
        element = type_["element"]
        return f"array<{_PLAIN[element.name]}>" if element.name in (INT, FLOAT, STRING, BOOLEAN) else ""
    return _PLAIN.get(type_.name, "")


def column_problems(path: Path, table: ProgramTable, sink: str, columns: Mapping[str, ValueType]) -> Iterator[Problem]:
    """Problems of an output whose reference gives these columns."""
    output, names = table.by_sink[sink], list(columns)
    place = f"{path.name}: {table.setting_of(sink)}"
    absent: set[str] = set()
    named = [("keys", output.keys), ("latency_key", output.latency_key)]
    named += [(setting, (field,)) for setting in TIMES if (field := getattr(output, setting))]
    for setting, fields in named:
        for field in fields:
            if field in absent:
                continue
            if field not in columns:
                absent.add(field)
                rule = f"must be a column of the reference: {', '.join(names)}"
                way_out = f'"{nearest(field, names)}", or add {field} to the reference'
                yield Problem(f"{place}.{setting}", rule, field, way_out)
            elif setting in TIMES and columns[field].name not in (INT, TIMESTAMP):
                rule = f"must be a whole number of {output.time_unit}, or a timestamp, in the reference"
                kind = "TIMESTAMP" if columns[field].name == STRING else "BIGINT"
                way_out = f"CAST({field} AS {kind}) AS {field} in the reference"
                yield Problem(f"{place}.{setting}", rule, f"{field} {columns[field]}", way_out)
    reference = f"{path.name}: {table.reference_setting_of(sink)}"
    types = {name: message_type(type_) for name, type_ in columns.items()}
    for name, kind in types.items():
        if not kind or (kind.startswith("array<") and output.format != "json"):
            held = "numbers, texts, booleans, timestamps" + (" and arrays of these" if output.format == "json" else "")
            rule = f"must have columns that {output.format.replace('json', 'JSON')} can hold: {held}"
            yield Problem(reference, rule, f"{name} {columns[name]}", f"CAST({name} AS VARCHAR) AS {name}")
    yield from _nesting_problems(place, names)
    if output.format == "text" and list(types.values()) != ["string"]:
        yield Problem(f"{place}.format", "text needs a reference of one column of text", names, 'format = "csv"')
    if output.format in WITH_SCHEMA:
        found = {each.name: each.type for each in schema_fields(output.message_format(path.resolve().parent))}
        yield from _schema_problems(place, types, found, _SCHEMA_GIVES)


DRY_RATE_PER_S, DRY_S = 1000.0, 5.0
SAMPLED_US = (631_152_000 * US, 4_102_444_800 * US)
"""The times that a user's sample may have: 1990 to 2100."""


def dry_run_problems(path: Path, table: ProgramTable, streams: Sequence[StreamSpec]) -> Iterator[Problem]:
    """The problems of each output's reference over some events."""
    import duckdb

    now_us = time.time_ns() // 1000
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET threads = 1")
        _fill(connection, streams, now_us)
        for sink, output in table.by_sink.items():
            place = f"{path.name}: {table.setting_of(sink)}"
            try:
                connection.execute("DROP TABLE IF EXISTS _results")
                connection.sql(output.reference).create("_results")
            except duckdb.InterruptException:
                raise KeyboardInterrupt from None
            except duckdb.Error as error:
                way_out = "\n  ".join(["correct it", *duckdb_lines(error)])
                setting = f"{path.name}: {table.reference_setting_of(sink)}"
                yield Problem(setting, "must run over events of its inputs", first_line(error), way_out)
                continue
            yield from _unit_problems(connection, place, output, now_us)
            yield from _key_problems(connection, place, output)


def sample_unit_problem(place: str, unit: str, last_time: float) -> Problem | None:
    """A unit of an input in which the times of its sample are of no year that events have, while another unit fits."""
    low_us, high_us = SAMPLED_US
    fits = [name for name, unit_us in UNITS.items() if low_us <= last_time * unit_us <= high_us]
    if unit in fits or not fits:
        return None
    got = f"{unit}, in which its time {last_time:.0f} is {in_year(last_time * UNITS[unit])}"
    return Problem(f"{place}.time_unit", "must be the unit of the times in its sample", got, f'time_unit = "{fits[0]}"')


def _fill(connection: Any, streams: Sequence[StreamSpec], start_us: int) -> None:
    """Creates the table of each input, with fewer events if they are large."""
    event_bytes = sum(stream.share * stream.row_bytes for stream in streams)
    profile = parse_profile("constant", min(DRY_RATE_PER_S, max(BATCH_BYTES_MAX / event_bytes / DRY_S, 1.0)), DRY_S)
    plan = Plan(tuple(streams), profile, start_us, DRY_S, partitions=1, seed=1)
    for number, stream in enumerate(streams):
        connection.register("_events", plan.batch(number, 0, 0, plan.count_before(number, 0, plan.end_us)))
        times = {EVENT_TIME: quote(EVENT_TIME), time_name(stream): f"make_timestamp({EVENT_TIME})"}
        values = [
            f"CAST({times.get(name, quote(name))} AS {kind}) AS {quote(name)}"
            for name, kind in table_types(stream).items()
        ]
        connection.execute(f"CREATE TABLE {quote(stream.name)} AS SELECT {', '.join(values)} FROM _events")


def _unit_problems(connection: Any, place: str, output: OutputTable, now_us: int) -> Iterator[Problem]:
    """Numbers that are times in another unit than the declared one."""
    relation = connection.table("_results")
    types = types_of(relation)
    for setting, name in (("time", output.time), ("window_end", output.window_end)):
        if name is None or types[name].name != INT:
            continue
        ((low, high),) = connection.execute(f"SELECT min({quote(name)}), max({quote(name)}) FROM _results").fetchall()
        if low is None:
            continue
        fits = units_of((low, high), now_us)
        if output.time_unit not in fits and fits:
            moment = in_year(high * UNITS[output.time_unit])
            got = f"{output.time_unit}, in which the {setting} {name} of a result is {moment}"
            way_out = f'time_unit = "{fits[0]}", or another unit of {name} in the reference'
            yield Problem(f"{place}.time_unit", "must be the unit of the times in results", got, way_out)
            return


def _key_problems(connection: Any, place: str, output: OutputTable) -> Iterator[Problem]:
    """Keys that several rows have, in update mode."""
    if output.mode != "update":
        return
    names = connection.table("_results").columns
    ids = list(dict.fromkeys([*output.keys, *filter(None, [output.window_end])]))
    ids += [name for name in (WINDOW_START, WINDOW_END) if name in names and name not in ids]
    query = f"SELECT {quoted(ids)}, count(*) FROM _results GROUP BY {quoted(ids)} HAVING count(*) > 1 LIMIT 1"
    if (several := connection.execute(query).fetchone()) is None:
        return
    *values, count = several
    got = f"{count} rows with " + ", ".join(f"{name} {value}" for name, value in zip(ids, values, strict=True))
    others = [name for name in names if name not in (*ids, output.time)]
    more = f'keys = ["{output.keys[0]}", "{others[0]}"], or ' if others else ""
    rule = "must identify one row of the reference, as in update mode each key has one last value"
    yield Problem(f"{place}.keys", rule, got, f"{more}GROUP BY {', '.join(ids)} in the reference")
