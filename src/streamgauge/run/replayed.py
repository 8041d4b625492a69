"""Workloads on a user's own data: `--set data=FILE`, or `--set data.STREAM=FILE` where there are several streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamgauge.errors import InputError, Problem
from streamgauge.load.fields import StreamSpec
from streamgauge.load.recorded import digest, recorded
from streamgauge.run.own_job import OwnJob
from streamgauge.workloads.base import Job, Workload

DATA = "data"
"""The parameter that every workload has besides its own."""


def with_data(workload: Workload, values: Mapping[str, Any]) -> tuple[Workload, dict[str, Any]]:
    """The workload on the files that `values` name, and its own parameters among them.

    The files' digests stand in the result, since they decide what the workload is. InputError for an own job, whose
    file says what it reads.
    """
    files = {name: str(value) for name, value in values.items() if name == DATA or name.startswith(f"{DATA}.")}
    own = {name: value for name, value in values.items() if name not in files}
    if not files:
        return workload, own
    if isinstance(workload, OwnJob):
        way_out = 'stream("name", sample="FILE") in its @job'
        raise InputError(Problem("set data", "is for built-in workloads", workload.source, way_out))

    def build(parameters: Any, rate_per_s: float) -> Job:
        job = workload.build(parameters, rate_per_s)
        return Job(job.flow, tuple(_replayed(stream, job.streams, files) for stream in job.streams))

    known = {str(path): digest(path) for path in map(Path, files.values()) if path.is_file()}
    return replace(workload, build=build, files={**workload.files, **known}), own


def _replayed(stream: StreamSpec, streams: tuple[StreamSpec, ...], files: Mapping[str, str]) -> StreamSpec:
    names = [each.name for each in streams]
    if DATA in files and len(streams) > 1:
        rule = f"must say of which stream: {', '.join(names)}"
        raise InputError(Problem("set data", rule, files[DATA], f"--set data.{names[0]}={files[DATA]}"))
    if unknown := [each for each in files if each != DATA and each.removeprefix(f"{DATA}.") not in names]:
        rule = f"must name a stream of the workload: {', '.join(names)}"
        raise InputError(Problem(f"set {unknown[0]}", rule, files[unknown[0]], f"--set data.{names[0]}=FILE"))
    path = files.get(f"{DATA}.{stream.name}", files.get(DATA))
    return stream if path is None else recorded(stream, Path(path))
