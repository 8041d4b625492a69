"""The rules of a program's file: of its tables, of its references' columns, and by a dry run of its references.

The dry run takes some planned events, before anything starts. It finds errors that need rows: a query that fails on
them, times in another unit, keys that do not identify a result.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.errors import Problem, Rule, attempt, broken, first, in_file, nearest
from streamgauge.core.schema import EVENT_TIME, LINEAGE, WINDOW_END, WINDOW_START, quote, quoted
from streamgauge.core.value_types import BOOLEAN, DECIMAL, FLOAT, INT, LIST, STRING, TIMESTAMP, ValueType, column_types
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.loadgen.plan import BATCH_BYTES_MAX, Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.system.user_code import duckdb_lines, first_line
from streamgauge.transports.topic_names import FRAMED, PROTOBUF, UNITS, WITH_SCHEMA, in_year, units_of
from streamgauge.user_workloads.program_fields import flat_fields, specs_of
from streamgauge.user_workloads.program_file import (
    EXAMPLES,
    FIELDS_EXAMPLE,
    InputTable,
    OutputTable,
    ProgramTable,
)
from streamgauge.user_workloads.program_node import SCRATCH, placeholders, unknown_placeholders
from streamgauge.user_workloads.reference import table_types, time_name

_REMOTE = re.compile(r"(?!file:)[A-Za-z][\w+.-]*:/")
_BRACES = re.compile(r"\{[^{}]*\}")
CHECKPOINT_PLACEHOLDERS = (SCRATCH, "{run}")
_TOPIC = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")
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
_FORMATS = {"delimiter": ("csv",), "schema_file": WITH_SCHEMA, "schema_id": FRAMED, "message": PROTOBUF}
"""Setting to the formats that it applies to."""
_KEY_TYPES = {"int": INT, "bigint": INT, "string": STRING}
"""Type of an event's field to that of a column that identifies its record."""
_SCHEMA_TAKES = {
    "int": ("int", "bigint", "double"), "bigint": ("bigint", "double"), "timestamp": ("bigint",),
    "string": ("string", "binary"),
}  # fmt: skip
"""Type of an event's field to the types of values in a schema that can hold it; others only themselves."""
_SCHEMA_GIVES = {"bigint": ("bigint", "int"), "double": ("double", "bigint", "int"), "timestamp": ("bigint",)}
"""Type of a result's field to the types of values in a schema from which it is read."""


def table_problems(table: ProgramTable) -> list[Problem]:
    """The problems of the file, without those of its samples and references."""
    problems: list[Problem] = []
    rules = [*_start_rules(table), *_progress_rules(table), *_table_rules(table)]
    for name, given in table.inputs.items():
        setting = f"inputs.{name}"
        attempt(partial(specs_of, table.place_of(setting), given.fields), problems)
        rules += [*_input_rules(setting, name, given), *_format_rules(setting, given, table.folder)]
    for sink, output in table.by_sink.items():
        setting = table.setting_of(sink)
        rules += [*_output_rules(setting, sink, output), *_format_rules(setting, output, table.folder)]
    rules += [*_topic_rules(table), *_placeholder_rules(table)]
    return problems + broken(*in_file(table.path.name, rules))


def independent(found: Sequence[Problem], refused: Sequence[Problem]) -> list[Problem]:
    """Those of the found problems that do not follow from the `refused` ones, whose settings were left out."""
    left_out = {f"{one.setting}." for one in refused}
    follow = {name for one in refused for name in _FOLLOW.get(_last(one.setting), ())}
    return [
        one
        for one in found
        if _last(one.setting) not in follow
        and not any(f"{one.setting}.".startswith(each) or each.startswith(f"{one.setting}.") for each in left_out)
    ]


def _last(setting: str) -> str:
    """A setting without its file and tables."""
    return re.split(r"\.| ", setting)[-1]


_FOLLOW = {
    "format": _FORMATS, "mode": ("keys", "delivery", "latency_key"), "delivery": ("loss_max",),
    "time": ("latency_key",), "window_end": ("latency_key",), "progress": ("ready", "group"),
    "ready": ("ready_line", "group"), "ready_line": ("ready",), "command": ("attach",),
    "attach": ("command", "ready", "brokers", "group", "topic", "spark_checkpoint"),
}  # fmt: skip
"""Setting to those whose rules need it."""


def _start_rules(table: ProgramTable) -> Iterator[Rule]:
    """On how the program is started, or found."""
    command = "both" if table.attach else "neither"
    rule = "must be given, or attach = true for a program that runs already"
    yield Rule(bool(table.command) != table.attach, "command", rule, command, EXAMPLES["command"])
    yield Rule(table.timeout > 0, "timeout", "must be above 0s", f"{table.timeout:g}s", 'timeout = "30s"')
    yield from _ready_rules(table)
    if table.attach:
        yield from _attach_rules(table)


def _ready_rules(table: ProgramTable) -> Iterator[Rule]:
    """On the sign that the program is ready."""
    ready, line = table.ready, table.ready_line
    rule, way_out = 'must be given with ready = "line", and only then', 'ready = "line" and ready_line = "started"'
    yield Rule((ready == "line") == bool(line), "ready_line", rule, line, way_out)
    if table.progress.by == "spark_checkpoint":
        rule = 'must be "line" or "started" with spark_checkpoint, as Spark joins no group and commits to none'
        way_out = 'ready = "started"' if table.attach else 'ready = "line" and ready_line = "^query started"'
        yield Rule(ready not in ("consumer", "committed"), "ready", rule, ready, way_out)
    try:
        re.compile(line)
    except re.error as error:
        rule = f"must be a regular expression ({error})"
        yield Rule(False, "ready_line", rule, line, f"ready_line = '{re.escape(line)}'")


def _attach_rules(table: ProgramTable) -> Iterator[Rule]:
    """On what streamgauge cannot see or choose of a program that runs already."""
    ready, by = table.ready, table.progress.by
    rule = "must not be line with attach, as its output is not seen"
    yield Rule(ready != "line", "ready", rule, ready, 'ready = "consumer"')
    rule = "must be given with attach, as the program runs already"
    yield Rule(table.brokers, "brokers", rule, "", 'brokers = "localhost:9092"')
    needs_group = by != "spark_checkpoint" and not (by == "results" and ready == "started")
    yield Rule(table.group or not needs_group, "group", rule, "", 'group = "my-group"')


def _progress_rules(table: ProgramTable) -> Iterator[Rule]:
    """On the folders of checkpoints."""
    setting, example = "progress.spark_checkpoint", 'spark_checkpoint = ["{scratch}/checkpoint"]'
    folders = table.progress.checkpoints
    for folder in dict.fromkeys(folders):
        unknown = [name for name in _BRACES.findall(folder) if name not in CHECKPOINT_PLACEHOLDERS]
        yield from first((
            Rule(not _REMOTE.match(folder), setting,
                 "must be a folder of this machine, as streamgauge reads its files: no remote file system", folder,
                 f"{example}, and in the program checkpointLocation = $STREAMGAUGE_SCRATCH/checkpoint"),
            Rule(not unknown, setting, f"must have no placeholders except {' and '.join(CHECKPOINT_PLACEHOLDERS)}",
                 "".join(unknown[:1]), example),
            Rule(not table.attach or SCRATCH not in folder, setting,
                 f"must not be in {SCRATCH} with attach, as the program runs already and has no such folder", folder,
                 'spark_checkpoint = ["/path/of/its/checkpoint"]'),
            Rule(folders.count(folder) <= 1, setting, "must name each checkpoint once", folder,
                 "one folder for each of its queries"),
        ))  # fmt: skip


def _table_rules(table: ProgramTable) -> Iterator[Rule]:
    """On which tables there are."""
    for part, names in (("inputs", table.inputs), ("outputs", table.outputs)):
        for one, other in combinations(names, 2):
            yield Rule(
                one.lower() != other.lower(), f"{part}.{other}",
                f"must differ from {one} by more than upper and lower case, which SQL and variables ignore", other,
                f"{part}.{other}_2",
            )  # fmt: skip
    yield from (
        Rule((table.output is None) == bool(table.outputs), "output",
             "must be one table [output], or tables [outputs.NAME]", "both" if table.output else "neither",
             EXAMPLES["output"]),
        Rule(not table.outputs or not table.reference, "reference", "must stand in each of the outputs",
             table.reference, "[outputs.NAME] reference"),
    )  # fmt: skip


def _topic_rules(table: ProgramTable) -> Iterator[Rule]:
    """On the names of topics."""
    topics = {f"inputs.{name}": each.topic for name, each in table.inputs.items()}
    topics |= {table.setting_of(sink): each.topic for sink, each in table.by_sink.items()}
    owners = {topic: setting for setting, topic in reversed(topics.items())}
    for setting, topic in topics.items():
        place = f"{setting}.topic"
        yield from (
            Rule(not table.attach or topic, place, "must be given with attach, as the program has its topics", "",
                 EXAMPLES["topic"]),
            Rule(not topic or _TOPIC.fullmatch(topic), place,
                 "must have letters, digits, . _ and - only, at most 249", topic, EXAMPLES["topic"]),
            Rule(not topic or owners[topic] == setting, place, f"must differ from that of {owners[topic]}", topic,
                 "a topic of its own"),
        )  # fmt: skip


def _placeholder_rules(table: ProgramTable) -> Iterator[Rule]:
    """On words in braces that would reach the program as they are."""
    known = placeholders(table.inputs, table.by_sink)
    rule = f"must be one of the placeholders {', '.join(f'{{{name}}}' for name in known)}"
    texts = {"command": table.command} | {f"environment.{name}": (text,) for name, text in table.environment.items()}
    for setting, words in texts.items():
        for unknown in unknown_placeholders(words, table.inputs, table.by_sink):
            yield Rule(
                False, setting, rule, f"{{{unknown}}}",
                f"{{{nearest(unknown, known)}}}; to pass on the braces themselves: {{{{{unknown}}}}}",
            )  # fmt: skip


def _name_rule(setting: str, name: str, way_out: str) -> Rule:
    """On the name of an input or output, which its topic contains."""
    return Rule(
        name.isascii() and name.isidentifier() and not name.startswith("_"), setting,
        "must have a name of letters (a to z), digits and _", name, way_out,
    )  # fmt: skip


def _input_rules(setting: str, name: str, given: InputTable) -> list[Rule]:
    declared = [field for field, _ in flat_fields(given.fields)]
    names = declared if all(declared) else []
    taken = (*LINEAGE, *names)
    return [
        _name_rule(setting, name, "[inputs.purchases]"),
        Rule(bool(given.fields) != (given.sample is not None), setting,
             "needs its fields or a sample of its messages, one of them", "both" if given.fields else "neither",
             f'{FIELDS_EXAMPLE}; or sample = "FILE.json"'),
        Rule((given.time or "").lower() not in map(str.lower, taken), f"{setting}.time",
             f"must differ from {', '.join(taken)}", given.time, EXAMPLES["time"]),
        Rule(not names or given.key in (None, *names), f"{setting}.key", "must be one of its fields", given.key,
             f'key = "{nearest(given.key, names or [""])}"'),
        *_nesting_rules(setting, [*names, *filter(None, [given.time])]),
    ]  # fmt: skip


def _output_rules(setting: str, sink: str, output: OutputTable) -> Iterator[Rule]:
    updates = output.mode == "update"
    yield _name_rule(setting, sink, "[outputs.totals]")
    if updates:
        rule = "must name the fields whose values are updated"
        yield Rule(output.keys, f"{setting}.keys", rule, [], EXAMPLES["keys"])
        rule = 'applies to mode = "append" only: of updates the last value of each key is compared'
        is_default = output.delivery == "exactly_once"
        yield Rule(is_default, f"{setting}.delivery", rule, output.delivery, "leave it out")
    may_lose, is_given = output.delivery == "at_most_once", output.loss_max is not None
    rule = "must be given with at_most_once, and only with it: the share of results that may be lost"
    way_out = EXAMPLES["loss_max"] if may_lose else 'delivery = "at_most_once", or leave loss_max out'
    yield Rule(may_lose == is_given, f"{setting}.loss_max", rule, output.loss_max, way_out)
    if output.latency_key:
        rule = 'applies to mode = "append" without time and window_end only: these say the event time'
        has_event_time = updates or output.time or output.window_end
        yield Rule(not has_event_time, f"{setting}.latency_key", rule, list(output.latency_key), "leave it out")
    reference = "reference" if setting == "output" else f"{setting}.reference"
    yield Rule(output.reference, reference, "must be given", None, EXAMPLES["reference"])


def _format_rules(setting: str, given: InputTable | OutputTable, folder: Path) -> Iterator[Rule]:
    """On the settings of a format, and on the file of its schema."""
    kind, file, is_protobuf = given.format, given.schema_file, given.format in PROTOBUF
    yield from (
        Rule(len(given.delimiter) == 1, f"{setting}.delimiter", "must be one character", given.delimiter,
             'delimiter = ";"'),
        *(Rule(name not in given.model_fields_set or kind in kinds, f"{setting}.{name}",
               f"applies to the format {' or '.join(kinds)} only", kind, f'format = "{kinds[0]}", or leave it out')
          for name, kinds in _FORMATS.items()),
        Rule(kind not in WITH_SCHEMA or file, f"{setting}.schema_file",
             f"must be given for the format {kind}: the file of the schema that the program uses", "",
             f'schema_file = "purchase.{"desc" if is_protobuf else "avsc"}"'),
    )  # fmt: skip
    if kind in WITH_SCHEMA and file:
        try:
            given.schema_fields(folder)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            what = "a descriptor set of a message" if is_protobuf else "an Avro schema of a record"
            rule = f"must be {what} of plain fields ({reason})"
            yield Rule(False, f"{setting}.schema_file", rule, file, "correct it, or name another file")


def _nesting_rules(setting: str, names: Sequence[str]) -> Iterator[Rule]:
    """On a field that would be a value and an object."""
    for name in names:
        inside = next((other for other in names if other.startswith(f"{name}.")), None)
        yield Rule(not inside, f"{setting}.fields", f"{name} must not be a value beside {inside}", name, "rename one")


def stream_rules(table: ProgramTable, streams: Sequence[StreamSpec]) -> Iterator[Rule]:
    """On fields that the format of their messages cannot hold."""
    for stream, given in zip(streams, table.inputs.values(), strict=True):
        setting, types = f"inputs.{stream.name}", stream.schema.types()
        yield Rule(
            given.format != "text" or len(types) == 1, f"{setting}.format", "text needs one field", list(types),
            'format = "csv"',
        )  # fmt: skip
        if given.format in WITH_SCHEMA:
            declared = given.schema_fields(table.folder)
            in_schema = {each.name: each.type for each in declared}
            lacking = {each.name for each in declared if not each.nullable}
            yield from (
                *_schema_rules(setting, types, in_schema, _SCHEMA_TAKES),
                *(Rule(name in types, f"{setting}.fields", "must have a field for each one of the schema", name,
                       f"add {name}, or use a schema without it")
                  for name in in_schema),
                *(Rule(not each.nullable or each.name not in lacking, f"{setting}.schema_file",
                       f"must be able to hold nulls of {each.name}, which the program would take for another value",
                       each.name,
                       "a union with null in Avro, optional in Protocol Buffers, or a sample without nulls there")
                  for each in stream.schema.fields),
            )  # fmt: skip


def _schema_rules(
    setting: str, types: Mapping[str, str], in_schema: Mapping[str, str], accepted: Mapping[str, tuple[str, ...]]
) -> Iterator[Rule]:
    """On fields that a schema lacks, or has as another type. `accepted`: type to types of a schema."""
    place = f"{setting}.schema_file"
    for name, kind in types.items():
        yield from first((
            Rule(name in in_schema, place, f"must have {name} in its schema, which has {', '.join(in_schema)}",
                 name, nearest(name, list(in_schema))),
            Rule(in_schema.get(name) in accepted.get(kind, (kind,)), place,
                 f"must have {name} as a type that fits {kind}", in_schema.get(name),
                 "correct the schema, or cast the field"),
        ))  # fmt: skip


def inputs_with(names: Sequence[str], streams: Sequence[StreamSpec]) -> list[StreamSpec]:
    """The inputs that have all these fields."""
    return [stream for stream in streams if set(names) <= stream.schema.types().keys()]


def message_type(type_: ValueType) -> str:
    """A type of a result as JSON has it; empty for types that results cannot have."""
    if type_.name == LIST:
        element = type_["element"]
        return f"array<{_PLAIN[element.name]}>" if element.name in (INT, FLOAT, STRING, BOOLEAN) else ""
    return _PLAIN.get(type_.name, "")


def column_rules(
    table: ProgramTable, sink: str, columns: Mapping[str, ValueType], streams: Sequence[StreamSpec]
) -> Iterator[Rule]:
    """On an output whose reference gives these columns."""
    output, setting, names = table.by_sink[sink], table.setting_of(sink), list(columns)
    times = {field: name for name in TIMES if (field := getattr(output, name))}
    named = times | dict.fromkeys(output.latency_key, "latency_key") | dict.fromkeys(output.keys, "keys")
    yield from (
        Rule(field in columns, f"{setting}.{name}", f"must be a column of the reference: {', '.join(names)}", field,
             f'"{nearest(field, names)}", or add {field} to the reference')
        for field, name in named.items()
    )  # fmt: skip
    for field, name in times.items():
        type_ = columns.get(field, ValueType(INT))
        yield Rule(
            type_.name in (INT, TIMESTAMP), f"{setting}.{name}",
            f"must be a whole number of {output.time_unit}, or a timestamp, in the reference", f"{field} {type_}",
            f"CAST({field} AS {'TIMESTAMP' if type_.name == STRING else 'BIGINT'}) AS {field} in the reference",
        )  # fmt: skip
    yield from _result_rules(setting, table.reference_setting_of(sink), output, columns)
    if output.format in WITH_SCHEMA:
        types = {name: message_type(type_) for name, type_ in columns.items()}
        in_schema = {each.name: each.type for each in output.schema_fields(table.folder)}
        yield from _schema_rules(setting, types, in_schema, _SCHEMA_GIVES)
    if set(output.latency_key) <= columns.keys():
        yield from _latency_key_rules(f"{setting}.latency_key", output.latency_key, columns, streams)


def _result_rules(
    setting: str, reference: str, output: OutputTable, columns: Mapping[str, ValueType]
) -> Iterator[Rule]:
    """On columns that the messages of results cannot hold."""
    is_json = output.format == "json"
    held = "numbers, texts, booleans, timestamps" + (" and arrays of these" if is_json else "")
    rule = f"must have columns that {'JSON' if is_json else output.format} can hold: {held}"
    for name, type_ in columns.items():
        fits = message_type(type_) and (is_json or type_.name != LIST)
        yield Rule(fits, reference, rule, f"{name} {type_}", f"CAST({name} AS VARCHAR) AS {name}")
    yield from _nesting_rules(setting, list(columns))
    is_text = [type_.name for type_ in columns.values()] == [STRING]
    yield Rule(
        output.format != "text" or is_text, f"{setting}.format", "text needs a reference of one column of text",
        list(columns), 'format = "csv"',
    )  # fmt: skip


def _latency_key_rules(
    place: str, key: Sequence[str], columns: Mapping[str, ValueType], streams: Sequence[StreamSpec]
) -> Iterator[Rule]:
    """On fields by which results name a record of an input."""
    having = inputs_with(key, streams)
    yield Rule(
        not key or len(having) == 1, place,
        f"must be fields of exactly one input; these have them: {', '.join(each.name for each in having) or 'none'}",
        list(key),
        "rename them in the other input" if having else "name fields that the reference takes from an input",
    )  # fmt: skip
    for name in key if len(having) == 1 else ():
        kind = having[0].schema.types()[name]
        yield Rule(
            columns[name].name == _KEY_TYPES.get(kind), place,
            f"must be whole numbers or texts, as in {having[0].name}, where {name} is {kind}",
            f"{name} {columns[name]}", "name other fields, or leave its type in the reference",
        )  # fmt: skip


DRY_RATE_PER_S, DRY_S = 1000.0, 5.0
SAMPLED_US = (631_152_000 * US, 4_102_444_800 * US)
"""The times that a user's sample may have: 1990 to 2100."""


def dry_run_rules(table: ProgramTable, streams: Sequence[StreamSpec]) -> Iterator[Rule]:
    """On each output's reference over some events."""
    import duckdb

    now_us = time.time_ns() // 1000
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET threads = 1")
        _fill(connection, streams, now_us)
        for sink, output in table.by_sink.items():
            try:
                connection.execute("DROP TABLE IF EXISTS _results")
                connection.sql(output.reference).create("_results")
            except duckdb.InterruptException:
                raise KeyboardInterrupt from None
            except duckdb.Error as error:
                way_out, rule = "\n  ".join(["correct it", *duckdb_lines(error)]), "must run over events of its inputs"
                yield Rule(False, table.reference_setting_of(sink), rule, first_line(error), way_out)
            else:
                yield from first(_unit_rules(connection, table.setting_of(sink), output, now_us))
                yield from _key_rules(connection, table.setting_of(sink), output)


def sample_unit_rule(setting: str, unit: str, last_time: float) -> Rule:
    """On a unit in which the times of an input's sample are of no year that events have, while another unit fits."""
    low_us, high_us = SAMPLED_US
    fits = [name for name, unit_us in UNITS.items() if low_us <= last_time * unit_us <= high_us]
    return Rule(
        not fits or unit in fits, f"{setting}.time_unit", "must be the unit of the times in its sample",
        f"{unit}, in which its time {last_time:.0f} is {in_year(last_time * UNITS[unit])}",
        f'time_unit = "{"".join(fits[:1])}"',
    )  # fmt: skip


def _fill(connection: Any, streams: Sequence[StreamSpec], start_us: int) -> None:
    """Creates the table of each input, with fewer events if they are large."""
    event_bytes = sum(stream.share * stream.row_bytes for stream in streams)
    profile = parse_profile("constant", min(DRY_RATE_PER_S, max(BATCH_BYTES_MAX / event_bytes / DRY_S, 1.0)), DRY_S)
    plan = Plan(tuple(streams), profile, start_us, DRY_S, partitions=1, seed=1)
    for number, stream in enumerate(streams):
        events = connection.from_arrow(plan.batch(number, 0, 0, plan.count_before(number, 0, plan.end_us)))
        times = {EVENT_TIME: quote(EVENT_TIME), time_name(stream): f"make_timestamp({EVENT_TIME})"}
        values = [
            f"CAST({times.get(name, quote(name))} AS {kind}) AS {quote(name)}"
            for name, kind in table_types(stream).items()
        ]
        events.project(", ".join(values)).create(quote(stream.name))


def _unit_rules(connection: Any, setting: str, output: OutputTable, now_us: int) -> Iterator[Rule]:
    """On numbers that are times in another unit than the declared one. The second time of a result has the same."""
    types, unit = column_types(connection.table("_results")), output.time_unit
    for role in TIMES:
        name = getattr(output, role)
        if name is None or types[name].name != INT:
            continue
        ((low, high),) = connection.execute(f"SELECT min({quote(name)}), max({quote(name)}) FROM _results").fetchall()
        fits = units_of((low, high), now_us) if low is not None else []
        if fits and unit not in fits:
            yield Rule(
                False, f"{setting}.time_unit", "must be the unit of the times in results",
                f"{unit}, in which the {role} {name} of a result is {in_year(high * UNITS[unit])}",
                f'time_unit = "{fits[0]}", or another unit of {name} in the reference',
            )  # fmt: skip


def _key_rules(connection: Any, setting: str, output: OutputTable) -> Iterator[Rule]:
    """On keys that several rows have, in update mode."""
    names = connection.table("_results").columns
    windows = [output.window_end, *(name for name in (WINDOW_START, WINDOW_END) if name in names)]
    ids = list(dict.fromkeys([*output.keys, *filter(None, windows)]))
    query = f"SELECT {quoted(ids)}, count(*) FROM _results GROUP BY ALL HAVING count(*) > 1 LIMIT 1"
    if output.mode == "update" and (several := connection.execute(query).fetchone()):
        *values, count = several
        got = f"{count} rows with " + ", ".join(f"{name} {value}" for name, value in zip(ids, values, strict=True))
        others = [name for name in names if name not in (*ids, output.time)]
        more = f'keys = ["{output.keys[0]}", "{others[0]}"], or ' if others else ""
        yield Rule(
            False, f"{setting}.keys",
            "must identify one row of the reference, as in update mode each key has one last value", got,
            f"{more}GROUP BY {', '.join(ids)} in the reference",
        )  # fmt: skip
