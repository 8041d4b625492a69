"""Workloads on a user's own files: `--set data=FILE`, or `--set data.STREAM=FILE` if there are several streams.

`--set data.time=COLUMN`, or `data.STREAM.time`, names the data's time column. A result sums the data up: readable rows,
and how often the input repeats them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamgauge.config.named_files import DATA, DATA_TIME, is_data, is_data_time
from streamgauge.core.errors import InputError, Problem, Rule, first, require, require_all
from streamgauge.dataflow.expressions.check import checked
from streamgauge.dataflow.graph import with_schemas
from streamgauge.dataflow.lineage import needed_columns, with_lineage
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.replay.columns import (
    Absent,
    ReplayedColumn,
    ReplayRequest,
    keys,
    recorded,
    replayed_columns,
    rows_of,
)
from streamgauge.loadgen.replay.files import content, digest
from streamgauge.loadgen.replay.text import LeftOut, in_words
from streamgauge.results.run import DataColumn, ReplayedData, Result
from streamgauge.workloads.registry import Job, Parameters, Workload


def with_user_data(workload: Workload, values: Mapping[str, Any]) -> tuple[Workload, dict[str, Any]]:
    """(the workload on the files that `values` name, the workload's own parameters).

    The files' SHA-256 digests go into the result. Raises DriverError if a file changes later, and InputError for a
    user job, whose file names its own samples.
    """
    files = {name: str(value) for name, value in values.items() if is_data(name)}
    times = {name: str(value) for name, value in values.items() if is_data_time(name)}
    named = {**files, **times}
    parameters = {name: value for name, value in values.items() if name not in named}
    rule = f"is for built-in workloads, which replay a file; {workload.name} is a user job, which names its own files"
    way_out = 'stream("NAME", sample="FILE") in its @job, and no --set'
    require_all(*first(Rule(workload.takes_data, f"set {name}", rule, value, way_out) for name, value in named.items()))
    rule = "must name a file of recorded events, Parquet, CSV or JSON lines"
    require_all(*(Rule(path, f"set {name}", rule, "", f"--set {name}=FILE") for name, path in files.items()))
    own = {name: str(value) for name, value in parameters.items() if workload.is_file(name) and value}
    digests = {path: _digest(name, path) for name, path in (files | own).items() if Path(path).is_file()}

    def build(parameters: Any, rate_per_s: float) -> Job:
        job = workload.build(parameters, rate_per_s)
        paths = _by_stream(job.streams, files)
        return _with_files(job, paths, _times(paths, times), digests)

    build_with_files = build if named else workload.build
    return replace(workload, build=build_with_files, files={**workload.files, **digests}), parameters


def _digest(name: str, path: str) -> str:
    try:
        return digest(Path(path))
    except OSError as error:
        raise InputError(Problem(f"set {name}", "must be readable", str(error), "name another file")) from None


def _by_stream(streams: tuple[StreamSpec, ...], files: Mapping[str, str]) -> dict[str, str]:
    """File by stream. Raises InputError on an unknown stream or two files for one stream."""
    names, whole = [each.name for each in streams], files.get(DATA, "")
    by_stream = {names[0] if each == DATA else each.removeprefix(f"{DATA}."): path for each, path in files.items()}
    require_all(*first((
        Rule(not whole or len(streams) <= 1, "set data", f"must name the stream: {', '.join(names)}", whole,
             f"--set data.{names[0]}={whole}"),
        *(Rule(stream in names, f"set {DATA}.{stream}", f"must name a stream of the workload: {', '.join(names)}",
               path, f"--set data.{names[0]}=FILE") for stream, path in by_stream.items()),
        Rule(len(by_stream) >= len(files), "set data", f"must be given once: {names[0]} is the workload's only stream",
             ", ".join(files.values()), f"only --set data={whole}"),
    )))  # fmt: skip
    return by_stream


def _times(paths: Mapping[str, str], times: Mapping[str, str]) -> dict[str, str]:
    """Time column by stream. Raises InputError if the stream is ambiguous or has no file."""
    columns, only = {}, next(iter(paths)) if len(paths) == 1 else ""
    rule = f"must name a stream that replays a file: {', '.join(paths) or 'no stream does'}"
    for name, column in times.items():
        stream = name.removeprefix(DATA).removesuffix(DATA_TIME).removeprefix(".") or only
        named = f"--set {DATA}.{next(iter(paths), '')}{DATA_TIME}={column}"
        way_out = named if paths else f"--set data=FILE, or leave {name} out"
        require(stream in paths, f"set {name}", rule, column, way_out)
        columns[stream] = column
    return columns


def _with_files(job: Job, paths: Mapping[str, str], times: Mapping[str, str], digests: Mapping[str, str]) -> Job:
    """The job on the rows of files; its sources are nullable where the files hold nulls."""
    columns = needed_columns(with_lineage(job.flow))
    requests = [
        ReplayRequest(
            stream,
            Path(path),
            columns.get(stream.name, ()) + _malformed_columns(job, stream),
            times.get(stream.name),
            digests.get(path),
        )
        for stream in job.streams
        if (path := paths.get(stream.name)) is not None
    ]
    replayed = {stream.name: stream for stream in recorded(*requests)}
    streams = tuple(replayed.get(stream.name, stream) for stream in job.streams)
    return job._replace(
        flow=with_schemas(job.flow, {stream.name: stream.schema for stream in streams}), streams=streams
    )


def _malformed_columns(job: Job, stream: StreamSpec) -> tuple[str, ...]:
    """The columns of the rule for malformed records, which the flow need not read."""
    if (rule := job.malformed.get(stream.name)) is None:
        return ()
    return tuple(checked(rule, stream.schema.types(), f"malformed {stream.name}").columns)


def idle_parameters(workload: Workload, parameters: Parameters, rate_per_s: float, job: Job) -> Iterator[Problem]:
    """Given parameters that affect only generated rows which a file replaces."""

    def is_idle(name: str) -> bool:
        default = type(parameters).model_fields[name].default
        try:
            without = workload.build(parameters.model_copy(update={name: default}), rate_per_s)
        except InputError:
            return False
        return without.streams != job.streams and _effective(without) == _effective(job)

    if not any(isinstance(field, ReplayedColumn) for stream in job.streams for field in stream.fields):
        return
    if names := [name for name in sorted(parameters.model_fields_set) if is_idle(name)]:
        leave_out = " and ".join(f"--set {name}" for name in names)
        yield Problem(
            f"set {', '.join(names)}", "affects only generated rows, and the data replaces these",
            ", ".join(f"{name}={getattr(parameters, name)}" for name in names), f"leave {leave_out} out, or the data",
        )  # fmt: skip


def _effective(job: Job) -> tuple[Any, ...]:
    """What the engine sees of a job: its flow and its input, without replaced rows."""
    return job.flow, [(stream.name, stream.share, tuple(map(_source, stream.fields))) for stream in job.streams]


def _source(field: Any) -> Any:
    if isinstance(field, Absent):
        return field.name, field.sql_type
    if isinstance(field, ReplayedColumn):
        return field.name, field.sql_type, field.nullable, field.file, field.numbering, field.step
    return field


def replayed_data(plan: Plan, until_us: int) -> tuple[ReplayedData, ...]:
    """The replayed files, with the rows offered before `until_us`."""
    return tuple(
        _data(stream, plan.planned_events(plan.start_us, until_us, number))
        for number, stream in enumerate(plan.streams)
        if replayed_columns(stream)
    )


def _data(stream: StreamSpec, events: int) -> ReplayedData:
    taken, rows = replayed_columns(stream), rows_of(stream)
    file = taken[0].file
    return ReplayedData(
        stream=stream.name,
        file=file.path,
        sha256=file.digest,
        rows=rows,
        left_out=content(file).left_out.lines,
        left_out_no_utf8=content(file).left_out.no_utf8,
        rounds=events / rows,
        time=next((field.name for field in taken if field.step), None),
        columns=tuple(map(_column, taken)),
    )


def _column(field: ReplayedColumn) -> DataColumn:
    numbered = len(keys(field.numbering)) if field.numbering is not None else None
    wrong = content(field.file).unreadable.get(field.name) if numbered is None else None
    unreadable = wrong.count if wrong is not None else 0
    return DataColumn(
        name=field.name, unreadable=unreadable, empty=field.values.null_count - unreadable, numbered=numbered
    )


def files_read_otherwise(data: Sequence[ReplayedData], result: Result) -> Iterator[Problem]:
    """The files of a run whose content the version that wrote `result` read otherwise than this one."""
    version = result.environment.get("streamgauge", "an older version")
    rule, way_out = "must be read as in that run", f"streamgauge {version}, which wrote the run"
    for one, other in zip(result.data, data, strict=False):
        if _reading(one) != _reading(other):
            yield Problem(one.file, rule, "other rows or values", way_out)


def _reading(data: ReplayedData) -> tuple[Any, ...]:
    return (
        data.rows, data.left_out, data.left_out_no_utf8,
        [(column.name, column.unreadable, column.empty) for column in data.columns],
    )  # fmt: skip


def input_notes(workload: Workload, data: Sequence[ReplayedData]) -> tuple[str, ...]:
    """Notes on an input: what was assumed of the workload, and the summary of `data`."""
    return (*workload.notes, *(note for one in data for note in notes_of(one)))


def notes_of(data: ReplayedData) -> Iterator[str]:
    """`data` in sentences."""
    if data.left_out:
        yield f"data of {data.stream}: {in_words(LeftOut(data.left_out, data.left_out_no_utf8))}"
    for column in data.columns:
        wrong = [
            *([f"unreadable value: {column.unreadable:,}"] if column.unreadable else []),
            *([f"no value: {column.empty:,}"] if column.empty else []),
        ]
        if wrong:
            null = column.unreadable + column.empty
            yield f"data of {data.stream}: {column.name} is null in {null:,} of {data.rows:,} rows ({'; '.join(wrong)})"
        if column.numbered is not None:
            yield (
                f"data of {data.stream}: {column.name}: "
                f"{column.numbered:,} keys that are not numbers of its type are numbered by first appearance"
            )
    if data.rounds > 1:
        how = f"{data.time} continues from round to round" if data.time else _REPEATED
        rows = "its one row comes" if data.rows == 1 else f"its {data.rows:,} rows come"
        # %.3g would print a thousand as a power of ten.
        times = f"{data.rounds:,.0f}" if data.rounds >= 100 else f"{data.rounds:.3g}"
        yield f"data of {data.stream}: {rows} {times} times; {how}"


_REPEATED = "times in the rows repeat in each round (data.time=COLUMN makes a time column continue)"
