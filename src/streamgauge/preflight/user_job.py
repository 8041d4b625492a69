"""Own jobs as workloads: a Python file with one function marked `@job` is asked for like a workload's name."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.core.errors import InputError, JobError, Problem
from streamgauge.dataflow.nodes import Flow, NativeJob, Sink, Source
from streamgauge.jobs import DESCRIPTION, TIME, Description, Input
from streamgauge.loadgen.fields import SHARES_RULE, StreamSpec, sum_to_one
from streamgauge.loadgen.replay.files import digest
from streamgauge.loadgen.replay.fit_sample import fit
from streamgauge.preflight import user_job_reference
from streamgauge.system.user_code import import_file
from streamgauge.workloads import registry
from streamgauge.workloads.registry import Job, Parameters, Workload

SINK = "results"


class NoParameters(Parameters):
    """An own job has none: its file is there to be changed."""


@dataclass(frozen=True, kw_only=True)
class UserJob(Workload):
    """A workload that a file describes; `notes` say what was assumed and fitted."""

    besides = ()

    path: Path
    description: Description
    native: NativeJob
    notes: tuple[str, ...]


def get(name: str) -> Workload:
    """A workload by its name, or an own job by its file. InputError where there is none, or it cannot be used."""
    if name.endswith(".py"):
        return user_job(Path(name))
    if name not in registry.names() and (meant := _file_meant(name)):
        raise InputError(Problem("workload", "a job of your own must be a file that ends in .py", name, meant))
    return registry.get(name)


def _file_meant(name: str) -> str | None:
    """What to give in the place of a name that is like a file's; None where it is like a workload's."""
    path = Path(name)
    if path.suffix:
        return f"{path.with_suffix('.py')}, with one function marked @job"
    return f"{name}.py" if len(path.parts) > 1 or Path(f"{name}.py").is_file() else None


def absolute_path(name: str) -> str:
    """An own job's file as it can be found from any working folder; any other workload's name as it is."""
    return os.path.abspath(name) if name.endswith(".py") else name


def changed_files(workload: Workload, kept: Mapping[str, str], way_out: str) -> Iterator[Problem]:
    """The files of an own job that are not what they were when a run kept their digests: its input may be another."""
    for name, before in kept.items():
        if workload.files.get(name) != before:
            found = f"SHA-256 {workload.files[name][:12]}, was {before[:12]}" if name in workload.files else "none"
            yield Problem(name, "must be as it was in that run, and has changed since", found, way_out)


def user_job(path: Path) -> UserJob:
    """The workload that a file describes; JobError with the one thing that is wrong with it."""
    try:
        return _workload(path)
    except InputError as error:
        raise JobError(error.problems) from None


def _workload(path: Path) -> UserJob:
    module = import_file(path)
    function = _function(path, module)
    described: Description = getattr(function, DESCRIPTION)
    streams, notes = _streams(path, described.inputs)
    columns = user_job_reference.columns(path, described, streams) if described.reference is not None else None
    sources = tuple(Source(each.name, each.schema) for each in streams)
    times = tuple(each.time for each in described.inputs)
    job = NativeJob(sources, times, str(path.resolve()), function.__name__, described.keys, described.reach_us, columns)
    flow = Flow((Sink(job, SINK, described.mode),))
    return UserJob(
        name=path.stem,
        title=path.stem.replace("_", " "),
        summary=(inspect.getdoc(function) or inspect.getdoc(module) or "an own job").partition("\n")[0],
        source=str(path),
        parameters=NoParameters,
        build=lambda parameters, rate_per_s: Job(flow, streams),
        files=_digests(path, described.inputs),
        path=path,
        description=described,
        native=job,
        notes=(*notes, *described.assumed),
    )


def _digests(path: Path, inputs: tuple[Input, ...]) -> dict[str, str]:
    """File as the job names it to its SHA-256: the job's own, and every sample."""
    folder = path.resolve().parent
    files = {path.name: path, **{str(one.sample): folder / one.sample for one in inputs if one.sample is not None}}
    return {name: digest(file) for name, file in files.items()}


def _function(path: Path, module: Any) -> Any:
    there = {name: each for name, each in vars(module).items() if inspect.isfunction(each)}
    marked = {each.__name__: each for each in there.values() if hasattr(each, DESCRIPTION)}
    if len(marked) == 1:
        return next(iter(marked.values()))
    if marked:
        raise JobError(Problem(str(path), "must have one function marked @job", sorted(marked), "a file for each"))
    own = sorted(name for name, each in there.items() if each.__module__ == module.__name__)
    way_out = f"put @job(stream(...)) above {own[0]}" if own else "see examples/ and docs/reference/job-api.md"
    got = f"functions without it: {', '.join(own)}" if own else "no function"
    raise JobError(Problem(str(path), "must have one function marked @job", got, way_out))


def _streams(path: Path, inputs: tuple[Input, ...]) -> tuple[tuple[StreamSpec, ...], tuple[str, ...]]:
    """(the streams that are offered, what was fitted)."""
    shares = _shares(inputs)
    specs, notes = [], []
    for given, share in zip(inputs, shares, strict=True):
        fields = given.fields
        if given.sample is not None:
            sample = fit(path.resolve().parent / given.sample, given.time, named=given.time != TIME)
            fields = sample.fields
            notes += [f"{given.name} is fitted to {given.sample.name}: {text}" for text in sample.notes]
        specs.append(StreamSpec(given.name, fields, share))
    return tuple(specs), tuple(notes)


def _shares(inputs: tuple[Input, ...]) -> list[float]:
    given = [each.share for each in inputs if each.share is not None]
    if not given:
        return [1 / len(inputs)] * len(inputs)
    if len(given) < len(inputs) or not sum_to_one(given):
        got = [each.share for each in inputs]
        raise JobError(Problem("@job share", f"{SHARES_RULE}, or none is given", got, "share=0.5 on each of two"))
    return given
