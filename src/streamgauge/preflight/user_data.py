"""Workloads on a user's own files: data by `--set data=FILE`, or `--set data.STREAM=FILE` where there are several
streams, and what parameters name.

`--set data.time=COLUMN`, or `data.STREAM.time`, names the column that is the data's own time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamgauge.config.experiment import DATA, DATA_TIME, Experiment, is_data, is_data_time
from streamgauge.core.errors import InputError, Problem
from streamgauge.dataflow.expressions.check import checked
from streamgauge.dataflow.graph import with_schemas
from streamgauge.dataflow.lineage import needed_columns, with_lineage
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.loadgen.replay.columns import Absent, ReplayedColumn, ReplayRequest, recorded
from streamgauge.loadgen.replay.files import digest
from streamgauge.preflight import user_job
from streamgauge.preflight.user_job import UserJob
from streamgauge.transports import registry as transports
from streamgauge.workloads import registry
from streamgauge.workloads.registry import Job, Parameters, Workload


def with_absolute_paths(experiment: Experiment) -> Experiment:
    """The experiment with its files, an own job's, data, a client's, as they can be found from any working folder."""
    parameters = absolute_paths(experiment.workload, experiment.parameters)
    options = transports.with_absolute_paths(experiment.transport, experiment.transport_options)
    whole = {"workload": user_job.absolute_path(experiment.workload), "parameters": parameters}
    whole |= {"transport_options": options}
    return experiment.model_copy(update=whole)


def absolute_paths(workload: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with the whole paths of data and other files; an empty one stays so, and is refused as what it is."""
    known = registry.get(workload) if workload in registry.names() else None

    def whole(name: str, value: Any) -> Any:
        named = is_data(name) or (known is not None and known.is_file(name))
        return os.path.abspath(str(value)) if named and value else value

    return {name: whole(name, value) for name, value in values.items()}


def with_user_data(workload: Workload, values: Mapping[str, Any]) -> tuple[Workload, dict[str, Any]]:
    """The workload on the files that `values` name, and its own parameters among them.

    The files' digests stand in the result, since they decide what the workload is; a file that has another one later
    is a DriverError. InputError for an own job, whose file says what it reads.
    """
    files = {name: str(value) for name, value in values.items() if is_data(name)}
    times = {name: str(value) for name, value in values.items() if is_data_time(name)}
    own = {name: value for name, value in values.items() if name not in files and name not in times}
    if not files and not times:
        return replace(workload, files={**workload.files, **_digests(_named(workload, own))}), own
    if isinstance(workload, UserJob):
        way_out = 'stream("name", sample="FILE") in its @job'
        raise InputError(Problem("set data", "is for built-in workloads", workload.source, way_out))
    known = _digests(files)

    def build(parameters: Any, rate_per_s: float) -> Job:
        job = workload.build(parameters, rate_per_s)
        paths = _by_stream(job.streams, files)
        return _on_files(job, paths, _times(paths, times), known)

    others = _digests(_named(workload, own))
    return replace(workload, build=build, files={**workload.files, **known, **others}), own


def _named(workload: Workload, values: Mapping[str, Any]) -> dict[str, str]:
    """The files that parameters name, by those."""
    return {name: str(value) for name, value in values.items() if workload.is_file(name) and value}


def _digests(files: Mapping[str, str]) -> dict[str, str]:
    return {path: _digest(name, path) for name, path in files.items() if Path(path).is_file()}


def _digest(name: str, path: str) -> str:
    try:
        return digest(Path(path))
    except OSError as error:
        raise InputError(Problem(f"set {name}", "must be readable", str(error), "another file")) from None


def _by_stream(streams: tuple[StreamSpec, ...], files: Mapping[str, str]) -> dict[str, str]:
    """Stream to the file whose rows it gets. InputError where a file is of no stream, or a stream would get two."""
    names = [each.name for each in streams]
    if DATA in files and len(streams) > 1:
        rule = f"must say of which stream: {', '.join(names)}"
        raise InputError(Problem("set data", rule, files[DATA], f"--set data.{names[0]}={files[DATA]}"))
    if unknown := [each for each in files if each != DATA and each.removeprefix(f"{DATA}.") not in names]:
        rule = f"must name a stream of the workload: {', '.join(names)}"
        raise InputError(Problem(f"set {unknown[0]}", rule, files[unknown[0]], f"--set data.{names[0]}=FILE"))
    if len(files) > len(names):
        rule = f"must be given once: {names[0]} is the workload's only stream"
        raise InputError(Problem("set data", rule, ", ".join(files.values()), f"--set data={files[DATA]} alone"))
    return {names[0] if each == DATA else each.removeprefix(f"{DATA}."): path for each, path in files.items()}


def _times(paths: Mapping[str, str], times: Mapping[str, str]) -> dict[str, str]:
    """Stream to the column that is its time. InputError where it is not clear whose, or no file is replayed there."""
    found = {}
    for name, column in times.items():
        stream = name.removeprefix(DATA).removesuffix(DATA_TIME).removeprefix(".")
        if not stream and len(paths) == 1:
            (stream,) = paths
        if stream not in paths:
            one = next(iter(paths), "STREAM")
            way_out = f"--set {DATA}.{one}{DATA_TIME}={column}" if paths else f"--set data=FILE, or leave {name} out"
            rule = f"must be of a stream whose rows are a file's: {', '.join(paths) or 'there is none'}"
            raise InputError(Problem(f"set {name}", rule, column, way_out))
        found[stream] = column
    return found


def _on_files(job: Job, paths: Mapping[str, str], times: Mapping[str, str], known: Mapping[str, str]) -> Job:
    """The job on the rows of files; its sources may hold nulls where the files do."""
    read = needed_columns(with_lineage(job.flow))
    asked = [
        ReplayRequest(
            stream, Path(path), read.get(stream.name, ()) + _ruled(job, stream), times.get(stream.name), known.get(path)
        )
        for stream in job.streams
        if (path := paths.get(stream.name)) is not None
    ]
    found = {stream.name: stream for stream in recorded(*asked)}
    streams = tuple(found.get(stream.name, stream) for stream in job.streams)
    return job._replace(
        flow=with_schemas(job.flow, {stream.name: stream.schema for stream in streams}), streams=streams
    )


def _ruled(job: Job, stream: StreamSpec) -> tuple[str, ...]:
    """The columns by which a record is malformed: they are looked at, whether the flow reads them or not."""
    if (rule := job.malformed.get(stream.name)) is None:
        return ()
    return tuple(checked(rule, stream.schema.types(), f"malformed {stream.name}").columns)


def idle_parameters(workload: Workload, parameters: Parameters, rate_per_s: float, job: Job) -> Iterator[Problem]:
    """Parameters that were given and shape nothing of `job`, built with them, but rows that a file's replace."""

    def is_idle(name: str) -> bool:
        default = type(parameters).model_fields[name].default
        try:
            without = workload.build(parameters.model_copy(update={name: default}), rate_per_s)
        except InputError:
            return False
        return without.streams != job.streams and _asked(without) == _asked(job)

    if not any(isinstance(field, ReplayedColumn) for stream in job.streams for field in stream.fields):
        return
    if names := [name for name in sorted(parameters.model_fields_set) if is_idle(name)]:
        rule = "shapes only rows in the place of which those of the data come"
        got = ", ".join(f"{name}={getattr(parameters, name)}" for name in names)
        leave_out = " and ".join(f"--set {name}" for name in names)
        yield Problem(f"set {', '.join(names)}", rule, got, f"leave {leave_out} out, or the data")


def _asked(job: Job) -> tuple[Any, ...]:
    """What is asked of an engine, and of which input: all of a job but the made rows that were replaced."""
    streams = [(stream.name, stream.share, tuple(map(_source, stream.fields))) for stream in job.streams]
    return job.flow, streams


def _source(field: Any) -> Any:
    if isinstance(field, Absent):
        return field.name, field.spark_type
    if isinstance(field, ReplayedColumn):
        return field.name, field.spark_type, field.nullable, field.file, field.numbering, field.step
    return field
