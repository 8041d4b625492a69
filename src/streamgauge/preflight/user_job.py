"""User jobs as workloads: a Python file with one function marked `@job`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.config.named_files import is_own_file
from streamgauge.core.errors import InputError, JobError, Problem
from streamgauge.dataflow.nodes import Flow, Sink, Source, UserJobNode
from streamgauge.jobs import DESCRIPTION, TIME, Description, Input
from streamgauge.loadgen.fields import SHARES_RULE, StreamSpec, sum_to_one
from streamgauge.loadgen.replay.files import digest
from streamgauge.loadgen.replay.fit_sample import fit
from streamgauge.preflight import user_job_function, user_job_reference
from streamgauge.system.user_code import import_file
from streamgauge.workloads import registry
from streamgauge.workloads.registry import Job, Parameters, Workload

SINK = "results"


class NoParameters(Parameters):
    """A user job has no parameters: the user changes its file."""


@dataclass(frozen=True, kw_only=True)
class UserJob(Workload):
    """A workload from a file; `notes` state what was assumed and fitted."""

    extra_names = ()
    without_parameters = "leave --set out, and change the values in its file"

    path: Path
    description: Description
    node: UserJobNode
    notes: tuple[str, ...]

    def described(self, sink: str) -> Description:
        """What the job declares of a sink."""
        return self.description


def get(name: str) -> Workload:
    """A workload by name, or a user job by file. Raises InputError if it does not exist or cannot be used."""
    if name.endswith(".py"):
        return user_job(Path(name))
    if name not in registry.names() and (file := _intended_file(name)):
        raise InputError(Problem("workload", _FILES_RULE, name, file))
    return registry.get(name)


_FILES_RULE = "a user job must be a file that ends in .py, and a program over Kafka one that ends in .toml"


def _intended_file(name: str) -> str | None:
    """The file that a name seems to mean; None for a name like a workload's."""
    path = Path(name)
    if not path.name:
        return None
    for program in (path / "program.toml", path.with_suffix(".toml")):
        if program.is_file():
            return str(program)
    if path.suffix:
        return f"{path.with_suffix('.py')}, with one function marked @job"
    return f"{name}.py" if len(path.parts) > 1 or Path(f"{name}.py").is_file() else None


def absolute_path(name: str) -> str:
    """The absolute path of the file of a user job or a program; any other workload's name unchanged."""
    return os.path.abspath(name) if is_own_file(name) else name


def changed_files(workload: Workload, previous: Mapping[str, str], way_out: str) -> Iterator[Problem]:
    """The workload's files whose SHA-256 differs from `previous`, the digests in a run's result."""
    for name, before in previous.items():
        if workload.files.get(name) != before:
            got = f"SHA-256 {workload.files[name][:12]}, was {before[:12]}" if name in workload.files else "none"
            yield Problem(name, "must be unchanged since that run", got, way_out)


def user_job(path: Path) -> UserJob:
    """The workload in a file. Raises JobError with the first problem."""
    try:
        return _workload(path)
    except InputError as error:
        raise JobError(error.problems) from None


def _workload(path: Path) -> UserJob:
    module = import_file(path)
    function = _function(path, module)
    description: Description = getattr(function, DESCRIPTION)
    streams, notes = _streams(path, description.inputs)
    columns = user_job_reference.columns(path, description, streams) if description.reference is not None else None
    if wrong := user_job_function.problems(path, function):
        raise JobError(wrong)
    sources = tuple(Source(stream.name, stream.schema) for stream in streams)
    times = tuple(one.time for one in description.inputs)
    job = UserJobNode(
        sources, times, str(path.resolve()), function.__name__, description.keys, description.reach_us, columns
    )
    flow = Flow((Sink(job, SINK, description.mode),))
    return UserJob(
        name=path.stem,
        title=path.stem.replace("_", " "),
        summary=(inspect.getdoc(function) or inspect.getdoc(module) or "a user job").partition("\n")[0],
        source=str(path),
        parameters=NoParameters,
        build=lambda parameters, rate_per_s: Job(flow, streams),
        files=_digests(path, description.inputs),
        path=path,
        description=description,
        node=job,
        notes=(*notes, *description.assumed),
    )


def _digests(path: Path, inputs: tuple[Input, ...]) -> dict[str, str]:
    """SHA-256 of the job's file and of every sample, by the name that the job uses."""
    folder = path.resolve().parent
    files = {path.name: path, **{str(one.sample): folder / one.sample for one in inputs if one.sample is not None}}
    return {name: digest(file) for name, file in files.items()}


def _function(path: Path, module: Any) -> Any:
    functions = {name: value for name, value in vars(module).items() if inspect.isfunction(value)}
    jobs = {function.__name__: function for function in functions.values() if hasattr(function, DESCRIPTION)}
    if len(jobs) == 1:
        return next(iter(jobs.values()))
    if jobs:
        way_out = "move each function to its own file"
        raise JobError(Problem(str(path), "must have one function marked @job", sorted(jobs), way_out))
    local = sorted(name for name, function in functions.items() if function.__module__ == module.__name__)
    way_out = f"put @job(stream(...)) above {local[0]}" if local else "see examples/ and docs/reference/job-api.md"
    got = f"functions without it: {', '.join(local)}" if local else "no function"
    raise JobError(Problem(str(path), "must have one function marked @job", got, way_out))


def _streams(path: Path, inputs: tuple[Input, ...]) -> tuple[tuple[StreamSpec, ...], tuple[str, ...]]:
    """(the offered streams, notes on fitted samples)."""
    shares = _shares(inputs)
    specs, notes = [], []
    for given, share in zip(inputs, shares, strict=True):
        fields = given.fields
        if given.sample is not None:
            sample = fit(path.resolve().parent / given.sample, given.time, named=given.time != TIME)
            fields = sample.fields
            notes += [f"{given.name} is fitted to {given.sample.name}: {text}" for text in sample.notes]
        specs.append(StreamSpec(given.name, fields, share, given.key))
    return tuple(specs), tuple(notes)


def _shares(inputs: tuple[Input, ...]) -> list[float]:
    given = [each.share for each in inputs if each.share is not None]
    if not given:
        return [1 / len(inputs)] * len(inputs)
    if len(given) < len(inputs) or not sum_to_one(given):
        got = [each.share for each in inputs]
        raise JobError(Problem("@job share", f"{SHARES_RULE}, or have none at all", got, "share=0.5 on each of two"))
    return given
