"""The workload that a program's file declares."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.engine_reports import Guarantee
from streamgauge.core.errors import InputError, JobError, Problem
from streamgauge.core.schema import EVENT_TIME, WINDOW_END, quote
from streamgauge.core.units import parse_duration
from streamgauge.core.value_types import TIMESTAMP, ValueType
from streamgauge.dataflow.nodes import Flow, Sink, Source
from streamgauge.jobs import DEFAULT_REACH, TIME, UNBOUNDED, Description, Input, RecordKey
from streamgauge.loadgen.fields import SHARES_RULE, RecordTime, StreamSpec, sum_to_one
from streamgauge.loadgen.replay.files import digest
from streamgauge.loadgen.replay.fit_sample import fit
from streamgauge.results.run import FITTED
from streamgauge.system.java import spark_kafka_jars
from streamgauge.transports.topics import UNITS, InputTopic, OutputTopic, ProgramTopics, ProgressSource
from streamgauge.user_workloads.program_checks import (
    column_problems,
    dry_run_problems,
    inputs_with,
    latency_key_problems,
    message_type,
    sample_unit_problem,
    stream_problems,
    table_problems,
)
from streamgauge.user_workloads.program_file import InputTable, OutputTable, ProgramTable, read
from streamgauge.user_workloads.program_node import SCRATCH, SPARK_KAFKA_JARS, Launch, ProgramNode
from streamgauge.user_workloads.reference import program_columns, time_name, types_of
from streamgauge.user_workloads.user_workload import NoParameters, UserWorkload
from streamgauge.workloads.registry import Job

SPARE_S = 5.0
"""The queue holds so much more than a program may keep waiting, so that its own time-out ends it."""
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
    """A program from a file. `outputs`: sink to what the program declares of it. `brokers`: those of its file."""

    observed_from_outside = True
    node_kind = ProgramNode

    outputs: Mapping[str, Description]
    topics: ProgramTopics
    launch: Launch
    brokers: str = ""

    def require(self) -> None:
        if self.launch.uses(SPARK_KAFKA_JARS):
            spark_kafka_jars()

    def described(self, sink: str) -> Description:
        return self.outputs[sink]

    @property
    def patience_s(self) -> float:
        return self.topics.first_result_s + SPARE_S

    @property
    def restarts(self) -> bool:
        return True

    @property
    def can_restart(self) -> bool:
        return not self.topics.attached

    @property
    def transport_options(self) -> Mapping[str, str]:
        """The formats of its inputs, for the result."""
        return {"encoding": "+".join(dict.fromkeys(each.format.kind for each in self.topics.inputs.values()))}

    @property
    def default_transport_options(self) -> Mapping[str, str]:
        return {"brokers": self.brokers} if self.brokers else {}

    @property
    def program_topics(self) -> ProgramTopics:
        return self.topics


def program(path: Path) -> Program:
    """The program in a file. Raises JobError with every problem."""
    try:
        table = read(path)
        if problems := list(table_problems(path, table)):
            raise InputError(problems)
        return _program(path, table)
    except InputError as error:
        raise JobError(error.problems) from None


def _program(path: Path, table: ProgramTable) -> Program:
    folder = path.resolve().parent
    streams, notes = _streams(path, table)
    progress = replace(table.progress, checkpoints=_checkpoints(folder, table))
    launch, inputs = _launch(path, table, folder, progress.checkpoints), _inputs(streams)
    columns = _columns(path, table, streams)
    nodes = {sink: _node(path, sink, table, columns[sink], streams, launch) for sink in table.by_sink}
    outputs = {sink: _described(inputs, output, nodes[sink], streams) for sink, output in table.by_sink.items()}
    topics = _topics(folder, table, columns, nodes, progress)
    name = folder.name if path.stem == "program" else path.stem
    flow = Flow(tuple(Sink(node, sink, table.by_sink[sink].mode) for sink, node in nodes.items()))
    assumed = [note for each in outputs.values() for note in each.assumed] + ([_ATTACHED] if table.attach else [])
    return Program(
        name=name, title=name.replace("_", " "), summary=table.title or "a program of the user's own",
        source=str(path), parameters=NoParameters, build=lambda parameters, rate_per_s: Job(flow, streams),
        files={file: digest(place) for file, place in _files(path, table, folder).items()}, path=path,
        notes=(*notes, *dict.fromkeys(assumed)), outputs=outputs, topics=topics, launch=launch, brokers=table.brokers,
    )  # fmt: skip


def _files(path: Path, table: ProgramTable, folder: Path) -> dict[str, Path]:
    """The files that determine the workload."""
    tables = (*table.inputs.values(), *table.by_sink.values())
    names = [*(each.sample for each in table.inputs.values()), *(each.schema_file for each in tables)]
    names += [word for word in table.command if _is_readable(folder / word)]
    return {path.name: path} | {name: folder / name for name in names if name}


def _is_readable(path: Path) -> bool:
    """Whether it is a file that can be read. A word of a command may also be longer than a path can be."""
    try:
        return path.is_file() and os.access(path, os.R_OK)
    except OSError:
        return False


def _inputs(streams: tuple[StreamSpec, ...]) -> tuple[Input, ...]:
    return tuple(Input(each.name, (), None, None, time_name(each), each.key) for each in streams)


def _node(
    path: Path, sink: str, table: ProgramTable, columns: Mapping[str, ValueType], streams: tuple[StreamSpec, ...],
    launch: Launch,
) -> ProgramNode:  # fmt: skip
    output, reach = table.by_sink[sink], table.by_sink[sink].reach_or_default
    reach_us = None if reach == UNBOUNDED else round(US * parse_duration(reach))
    return ProgramNode(
        tuple(Source(each.name, each.schema) for each in streams), tuple(map(time_name, streams)),
        str(path.resolve()), "program" if len(table.by_sink) == 1 else f"program.{sink}", output.keys, reach_us,
        tuple(columns.items()), launch=launch,
    )  # fmt: skip


def _described(
    inputs: tuple[Input, ...], output: OutputTable, node: ProgramNode, streams: tuple[StreamSpec, ...]
) -> Description:
    assumed = [] if output.reach or output.mode == "update" else [_REACH]
    if not (output.time or output.window_end or output.latency_key):
        assumed.append(_TIMELESS.format(sink=node.name))
    return Description(
        inputs, output.mode, output.keys, node.reach_us, _reference(output), tuple(assumed),
        Guarantee(output.delivery, output.loss_max or 0.0), _record_key(output, streams), output.reference,
    )  # fmt: skip


def _reference(output: OutputTable) -> Callable[[Any], Any]:
    """The reference with the event time and the end of a window (a timestamp), by the fields that it names.

    The event time is null if the output names neither.
    """

    def answer(connection: Any) -> Any:
        relation = connection.sql(output.reference)
        return relation.project(_dated(output, types_of(relation)))

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


def _record_key(output: OutputTable, streams: tuple[StreamSpec, ...]) -> RecordKey | None:
    if not output.latency_key:
        return None
    (stream,) = inputs_with(output.latency_key, streams)
    return RecordKey(stream.name, output.latency_key)


def _topics(
    folder: Path, table: ProgramTable, columns: Mapping[str, Mapping[str, ValueType]],
    nodes: Mapping[str, ProgramNode], progress: ProgressSource,
) -> ProgramTopics:  # fmt: skip
    inputs = {
        name: InputTopic(each.topic, each.message_format(folder), each.record_timestamp)
        for name, each in table.inputs.items()
    }
    outputs = {}
    for sink, output in table.by_sink.items():
        types = {name: message_type(type_) for name, type_ in columns[sink].items()}
        times = filter(None, (output.time, output.window_end))
        required = tuple(dict.fromkeys((*output.keys, *output.latency_key, *times)))
        outputs[sink] = OutputTopic(
            types, required, output.time or "", output.window_end or "", UNITS[output.time_unit], output.topic,
            output.message_format(folder), (nodes[sink].reach_us or 0) / US,
        )  # fmt: skip
    return ProgramTopics(inputs, outputs, table.attach, table.timeout, progress)


def _checkpoints(folder: Path, table: ProgramTable) -> tuple[str, ...]:
    """The folders of checkpoints, by their whole paths."""
    places = (re.sub("^file:/+", "/", each) for each in table.progress.checkpoints)
    return tuple(each if each.startswith(SCRATCH) else str(folder / each) for each in places)


def _launch(path: Path, table: ProgramTable, folder: Path, checkpoints: tuple[str, ...]) -> Launch:
    """The launch. Raises InputError if the command's program does not exist."""
    return Launch(
        _command(path, table, folder), str(folder), tuple(table.environment.items()), table.group, table.ready,
        table.ready_line, table.timeout, tuple((name, each.topic) for name, each in table.inputs.items()),
        tuple((sink, each.topic) for sink, each in table.by_sink.items()), checkpoints,
    )  # fmt: skip


def _command(path: Path, table: ProgramTable, folder: Path) -> tuple[str, ...]:
    if not table.command:
        return ()
    first = table.command[0].replace("{python}", sys.executable)
    if "{" in first or shutil.which(first) is not None:
        return table.command
    if (beside := shutil.which(str(folder / first))) is not None:
        return (beside, *table.command[1:])
    rule = "must begin with a program that exists and may be run, on PATH or beside the file"
    way_out = f'install it, or name it by its path: command = ["/path/to/{Path(first).name}", ...]'
    raise InputError(Problem(f"{path.name}: command", rule, first, way_out))


def _columns(path: Path, table: ProgramTable, streams: tuple[StreamSpec, ...]) -> dict[str, dict[str, ValueType]]:
    """Sink to its reference's columns. Raises InputError if one fails or lacks a field that its output names."""
    if problems := list(stream_problems(path, table, streams)):
        raise InputError(problems)
    columns = {}
    for sink, output in table.by_sink.items():
        columns[sink] = program_columns(f"{path.name}: {table.reference_setting_of(sink)}", output.reference, streams)
        problems += column_problems(path, table, sink, columns[sink])
        if output.latency_key:
            problems += latency_key_problems(path, table, sink, columns[sink], streams)
    if problems:
        raise InputError(problems)
    if problems := list(dry_run_problems(path, table, streams)):
        raise InputError(problems)
    return columns


def _streams(path: Path, table: ProgramTable) -> tuple[tuple[StreamSpec, ...], tuple[str, ...]]:
    """(the offered streams, notes on fitted samples)."""
    shares = _shares(path, table)
    specs, notes = [], []
    for (name, given), share in zip(table.inputs.items(), shares, strict=True):
        fields = given.specs(f"{path.name}: inputs.{name}")
        if given.sample is not None:
            sample = fit(path.resolve().parent / given.sample, given.time or TIME, named=given.time is not None)
            fields = sample.fields
            if given.time is not None and sample.last_time is not None:
                place = f"{path.name}: inputs.{name}"
                if problem := sample_unit_problem(place, given.time_unit, sample.last_time):
                    raise InputError(problem)
            notes += [f"{name}{FITTED}{given.sample}: {text}" for text in sample.notes]
        specs.append(StreamSpec(name, (*fields, *_time_field(given)), share, given.key))
    return tuple(specs), tuple(notes)


def _time_field(given: InputTable) -> tuple[RecordTime, ...]:
    return (RecordTime(given.time, UNITS[given.time_unit]),) if given.time is not None else ()


def _shares(path: Path, table: ProgramTable) -> list[float]:
    given = {name: each.share for name, each in table.inputs.items()}
    shares = [share for share in given.values() if share is not None]
    if len(given) == 1:
        if shares not in ([], [1.0]):
            rule = "must be 1 for the only input, which gets the whole rate"
            raise InputError(Problem(f"{path.name}: inputs.{next(iter(given))}.share", rule, shares[0], "leave it out"))
        return [1.0]
    if not shares:
        return [1 / len(given)] * len(given)
    if len(shares) < len(given) or not sum_to_one(shares):
        rule = f"{SHARES_RULE}, or be left out for each input"
        got = ", ".join(f"{name}: {'none' if share is None else f'{share:g}'}" for name, share in given.items())
        way_out = "leave share out everywhere, for equal shares"
        raise InputError(Problem(f"{path.name}: share of the inputs", rule, got, way_out))
    return shares
