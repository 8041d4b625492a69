"""The workload that a program's file declares."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.engine_reports import Guarantee
from streamgauge.core.errors import InputError, JobError, Problem, Rule, attempt, broken, in_file, near, refuse
from streamgauge.core.schema import EVENT_TIME, WINDOW_END, quote
from streamgauge.core.value_types import TIMESTAMP, ValueType, column_types
from streamgauge.dataflow.nodes import Flow, Sink, Source
from streamgauge.jobs import DEFAULT_REACH, TIME, Description, Input, RecordKey
from streamgauge.loadgen.fields import SHARES_RULE, RecordTime, StreamSpec
from streamgauge.loadgen.replay.files import digest
from streamgauge.loadgen.replay.fit_sample import fit
from streamgauge.results.run import FITTED
from streamgauge.system.java import spark_kafka_jars
from streamgauge.transports.topic_names import UNITS, InputTopic, OutputTopic, ProgramTopics
from streamgauge.user_workloads.program_checks import (
    column_rules,
    dry_run_rules,
    independent,
    inputs_with,
    message_type,
    sample_unit_rule,
    stream_rules,
    table_problems,
)
from streamgauge.user_workloads.program_fields import specs_of
from streamgauge.user_workloads.program_file import OutputTable, ProgramTable, read
from streamgauge.user_workloads.program_node import SCRATCH, SPARK_KAFKA_JARS, Launch, ProgramNode
from streamgauge.user_workloads.reference import program_columns, time_name
from streamgauge.user_workloads.user_workload import NoParameters, UserWorkload, shares_of
from streamgauge.workloads.registry import Job

SPARE_S = 5.0
"""The queue holds so much more than a program may keep waiting, so that its own time-out ends it."""
COMMIT_S = 5.0
"""How often Kafka's clients commit by default."""
_REACH = (
    f"reach not declared: taken as {DEFAULT_REACH} of event time, by which warm-up and tail are longer; a program "
    'without windows or state has reach = "0s"'
)
_TIMELESS = (
    "{sink}: its results carry no time, so they have no latency, and those of windows still open at the end count as "
    "missing; name the field with it (time or window_end), or the fields that identify an input record (latency_key)"
)
_ATTACHED = "the program ran already, so its CPU and memory are not known, and it was not restarted"


@dataclass(frozen=True, kw_only=True)
class Program(UserWorkload):
    """A program from a file."""

    observed_from_outside = True
    declares_formats = True
    restarts = True
    node_kind = ProgramNode

    program_topics: ProgramTopics
    launch: Launch

    def require(self) -> None:
        if self.launch.uses(SPARK_KAFKA_JARS):
            spark_kafka_jars()

    @classmethod
    def request_problems(
        cls, command: str, name: str, topics: ProgramTopics | None, partitions: int, encoding: str
    ) -> list[Problem]:
        by_results = topics is not None and topics.progress.by == "results"
        attached = topics is not None and topics.attached
        return broken(
            Rule(not encoding, "transport option encoding",
                 "is for workloads of the list, and a program's file names the format of each topic", encoding,
                 'format = "avro" below [inputs.NAME]'),
            Rule(not by_results or partitions == 1, "partitions",
                 'must be 1 with progress = "results", as results do not show how far each partition was read',
                 partitions, "--partitions 1, or in its file progress = { spark_checkpoint = [...] }, or a "
                 "group that commits"),
            Rule(command != "sustain" or not attached, command,
                 "starts the program anew for each trial, and with attach it runs already", name,
                 f"command = [...] in its file, or streamgauge run {name}"),
        )  # fmt: skip


def program(path: Path) -> Program:
    """The program in a file. Raises JobError with every problem."""
    try:
        table, refused = read(path)
    except InputError as error:
        raise JobError(error.problems, error.incomplete) from None
    found = table_problems(table)
    launch = attempt(partial(_launch, table), found)
    wrong = [one.setting.removeprefix(table.place_of("")) for one in (*found, *refused)]
    inputs, columns = None, None
    if not any(name.startswith("inputs") and name.rpartition(".")[2] not in _OF_MESSAGES for name in wrong):
        inputs = attempt(partial(_streams, table), found)
    if inputs is not None:
        columns = attempt(partial(_columns, table, inputs[0], wrong), found)
    refuse([*refused, *independent(found, refused)], JobError, incomplete=bool(refused) or columns is None)
    assert inputs is not None
    assert columns is not None
    streams, notes = inputs
    declared = tuple(Input(each.name, (), None, None, time_name(each), each.key) for each in streams)
    nodes = {sink: _node(table, sink, columns[sink], streams, launch) for sink in table.by_sink}
    described = {sink: _described(declared, output, nodes[sink], streams) for sink, output in table.by_sink.items()}
    name = table.folder.name if path.stem == "program" else path.stem
    flow = Flow(tuple(Sink(node, sink, table.by_sink[sink].mode) for sink, node in nodes.items()))
    topics = _topics(table, nodes)
    assumed = [note for each in described.values() for note in each.assumed] + ([_ATTACHED] if table.attach else [])
    return Program(
        name=name, title=name.replace("_", " "), summary=table.title or "a program of the user's own",
        source=str(path), parameters=NoParameters, build=lambda parameters, rate_per_s: Job(flow, streams),
        files={file: digest(place) for file, place in _files(table).items()}, path=path,
        notes=(*notes, *dict.fromkeys(assumed)), answers=table.answers, patience_s=topics.first_result_s + SPARE_S,
        unseen_s=_unseen_s(topics), can_restart=not table.attach,
        transport_options={"encoding": "+".join(dict.fromkeys(each.format for each in table.inputs.values()))},
        default_transport_options={"brokers": table.brokers} if table.brokers else {}, described=described,
        program_topics=topics, launch=launch,
    )  # fmt: skip


_OF_MESSAGES = ("topic", "format", "time_unit", "record_timestamp")
"""Settings of an input that say nothing of its events."""


def _unseen_s(topics: ProgramTopics) -> float:
    """For how long nothing may show that it has read: its group may commit late, or its progress be known by the
    results of windows, of all outputs.
    """
    longest_s = max(each.reach_s for each in topics.outputs.values())
    by = topics.progress.by
    return 0.0 if by == "spark_checkpoint" else COMMIT_S if by == "group" else COMMIT_S + longest_s


def _files(table: ProgramTable) -> dict[str, Path]:
    """The files that determine the workload."""
    inputs, folder = table.inputs.values(), table.folder
    names = (
        *(each.sample for each in inputs),
        *(each.schema_file for each in (*inputs, *table.by_sink.values())),
        *(word for word in table.command if os.path.isfile(folder / word) and os.access(folder / word, os.R_OK)),
    )
    return {table.path.name: table.path} | {name: folder / name for name in names if name}


def _node(
    table: ProgramTable, sink: str, columns: Mapping[str, ValueType], streams: tuple[StreamSpec, ...], launch: Launch
) -> ProgramNode:
    output = table.by_sink[sink]
    return ProgramNode(
        tuple(Source(each.name, each.schema) for each in streams), tuple(map(time_name, streams)),
        str(table.path.resolve()), "program" if len(table.by_sink) == 1 else f"program.{sink}", output.keys,
        output.reach_us, tuple(columns.items()), launch=launch,
    )  # fmt: skip


def _described(
    inputs: tuple[Input, ...], output: OutputTable, node: ProgramNode, streams: tuple[StreamSpec, ...]
) -> Description:
    assumed = [] if output.reach or output.mode == "update" else [_REACH]
    if not (output.time or output.window_end or output.latency_key):
        assumed.append(_TIMELESS.format(sink=node.name))
    key = output.latency_key
    record = RecordKey(inputs_with(key, streams)[0].name, key) if key else None
    return Description(
        inputs, output.mode, output.keys, node.reach_us, _reference(output), tuple(assumed),
        Guarantee(output.delivery, output.loss_max or 0.0), record, output.reference,
    )  # fmt: skip


def _reference(output: OutputTable) -> Callable[[Any], Any]:
    """The reference with the event time and the end of a window (a timestamp), by the fields that it names.

    The event time is null if the output names neither.
    """

    def answer(connection: Any) -> Any:
        relation = connection.sql(output.reference)
        return relation.project(_dated(output, column_types(relation)))

    return answer


def _dated(output: OutputTable, types: Mapping[str, ValueType]) -> str:
    """The columns of the reference, of these types, with the event time and the end of the window, as SQL."""
    unit_us = UNITS[output.time_unit]

    def micros(name: str) -> str:
        return f"epoch_us({quote(name)})" if types[name].name == TIMESTAMP else f"{quote(name)}::BIGINT * {unit_us}"

    added = {EVENT_TIME: "NULL::BIGINT"}
    if output.window_end:
        end = micros(output.window_end)
        added = {EVENT_TIME: f"{end} - 1", WINDOW_END: f"make_timestamp({end})"}
    if output.time:
        added[EVENT_TIME] = micros(output.time)
    replaced = [f"{sql} AS {quote(name)}" for name, sql in added.items() if name in types]
    new = [f"{sql} AS {quote(name)}" for name, sql in added.items() if name not in types]
    return ", ".join([f"* REPLACE ({', '.join(replaced)})" if replaced else "*", *new])


def _topics(table: ProgramTable, nodes: Mapping[str, ProgramNode]) -> ProgramTopics:
    folder = table.folder
    inputs = {
        name: InputTopic(each.topic, each.message_format(folder), each.record_timestamp)
        for name, each in table.inputs.items()
    }
    outputs = {sink: _output_topic(output, nodes[sink], folder) for sink, output in table.by_sink.items()}
    progress = replace(table.progress, checkpoints=_checkpoints(table))
    return ProgramTopics(inputs, outputs, table.attach, table.timeout, progress)


def _output_topic(output: OutputTable, node: ProgramNode, folder: Path) -> OutputTopic:
    types = {name: message_type(type_) for name, type_ in node.reference or ()}
    times = filter(None, (output.time, output.window_end))
    identity = tuple(dict.fromkeys((*output.keys, *output.latency_key, *times)))
    return OutputTopic(
        types, identity, output.time or "", output.window_end or "", UNITS[output.time_unit], output.topic,
        output.message_format(folder), (node.reach_us or 0) / US,
    )  # fmt: skip


def _checkpoints(table: ProgramTable) -> tuple[str, ...]:
    """The folders of checkpoints, by their whole paths."""
    places = (re.sub("^file:/+", "/", each) for each in table.progress.checkpoints)
    return tuple(each if each.startswith(SCRATCH) else str(table.folder / each) for each in places)


def _launch(table: ProgramTable) -> Launch:
    """The launch. Raises InputError if the command's program does not exist."""
    return Launch(
        _command(table), str(table.folder), tuple(table.environment.items()), table.group, table.ready,
        table.ready_line, table.timeout, tuple((name, each.topic) for name, each in table.inputs.items()),
        tuple((sink, each.topic) for sink, each in table.by_sink.items()), _checkpoints(table),
    )  # fmt: skip


def _command(table: ProgramTable) -> tuple[str, ...]:
    if not table.command:
        return ()
    script = _script(table.command)
    scripts = [path.name for path in table.folder.glob("*.*") if path.suffix == Path(script).suffix]
    table.require([
        Rule(not script or os.path.exists(table.folder / script), "command",
             "must name a script that exists, by its path from the file's folder", script,
             near(script, scripts) or "correct its path, or write it"),
    ])  # fmt: skip
    first = table.command[0].replace("{python}", sys.executable)
    if "{" in first or shutil.which(first) is not None:
        return table.command
    beside = shutil.which(str(table.folder / first))
    table.require([
        Rule(beside is not None, "command",
             "must begin with a program that exists and may be run, on PATH or beside the file", first,
             f'install it, or name it by its path: command = ["/path/to/{Path(first).name}", ...]'),
    ])  # fmt: skip
    return (str(beside), *table.command[1:])


def _script(command: Sequence[str]) -> str:
    """The script that Python, or the archive that Java, is started with; empty if that is not certain."""
    first, *words = command
    name = Path(first).name
    if name == "java" and "-jar" in words[:-1]:
        script = words[words.index("-jar") + 1]
    else:
        is_python = name == "{python}" or re.fullmatch(r"python[\d.]*", name)
        script = words[0] if is_python and words and not words[0].startswith("-") else ""
    return "" if "{" in script else script


def _columns(
    table: ProgramTable, streams: tuple[StreamSpec, ...], wrong: Sequence[str]
) -> dict[str, dict[str, ValueType]]:
    """Sink to its reference's columns. `wrong`: settings that are refused already, whose rules are left out.

    Raises InputError if a reference fails or lacks a field that its output names. If nothing is wrong with inputs and
    outputs, the references also run over some events.
    """
    in_tables = [name for name in wrong if name.startswith(("inputs", "output"))]
    problems = broken(*in_file(table.path.name, [] if in_tables else stream_rules(table, streams)))
    columns = {
        sink: attempt(partial(program_columns, table.place_of(setting), output.reference, streams), problems)
        for sink, output in table.by_sink.items()
        if output.reference
        for setting in [table.reference_setting_of(sink)]
    }
    for sink in columns:
        place = f"{table.setting_of(sink)}."
        of_columns = [one for one in in_tables if one.startswith(place) and one.removeprefix(place) not in _OF_RESULTS]
        if columns[sink] is not None and not of_columns:
            problems += broken(*in_file(table.path.name, column_rules(table, sink, columns[sink], streams)))
    if not (problems or in_tables):
        problems = broken(*in_file(table.path.name, dry_run_rules(table, streams)))
    refuse(problems)
    return columns


_OF_RESULTS = ("reach", "delivery", "loss_max", "topic")
"""Settings of an output that say nothing of its columns."""


def _streams(table: ProgramTable) -> tuple[tuple[StreamSpec, ...], tuple[str, ...]]:
    """(the offered streams, notes on fitted samples)."""
    specs, notes = [], []
    for (name, given), share in zip(table.inputs.items(), _shares(table), strict=True):
        setting = f"inputs.{name}"
        fields = specs_of(table.place_of(setting), given.fields)
        if given.sample is not None:
            sample = fit(table.folder / given.sample, given.time or TIME, named=given.time is not None)
            fields = sample.fields
            if given.time is not None and sample.last_time is not None:
                table.require([sample_unit_rule(setting, given.time_unit, sample.last_time)])
            notes += [f"{name}{FITTED}{given.sample}: {text}" for text in sample.notes]
        times = [RecordTime(given.time, UNITS[given.time_unit])] if given.time is not None else []
        specs.append(StreamSpec(name, (*fields, *times), share, given.key))
    return tuple(specs), tuple(notes)


def _shares(table: ProgramTable) -> list[float]:
    given = {name: each.share for name, each in table.inputs.items()}
    shares = shares_of(list(given.values()))
    shown = ", ".join(f"{name}: {'none' if share is None else f'{share:g}'}" for name, share in given.items())
    name, share = next(iter(given.items()))
    table.require([
        Rule(shares or len(given) != 1, f"inputs.{name}.share",
             "must be 1 for the only input, which gets the whole rate", share, "leave it out"),
        Rule(shares or len(given) <= 1, "share of the inputs", f"{SHARES_RULE}, or be left out for each input",
             shown, "leave share out everywhere, for equal shares"),
    ])  # fmt: skip
    return shares
