"""User jobs as workloads: a Python file with one function marked `@job`. What the function does is left to Spark."""

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.core.errors import InputError, JobError, Rule, require, require_all
from streamgauge.dataflow.nodes import Flow, Sink, Source, UserJobNode
from streamgauge.jobs import DESCRIPTION, TIME, Description, Input
from streamgauge.loadgen.fields import SHARES_RULE, StreamSpec
from streamgauge.loadgen.replay.files import digest
from streamgauge.loadgen.replay.fit_sample import fit
from streamgauge.results.run import FITTED
from streamgauge.system.user_code import import_file
from streamgauge.user_workloads.reference import job_columns
from streamgauge.user_workloads.user_workload import SINK, NoParameters, UserWorkload, shares_of
from streamgauge.workloads.registry import Job


@dataclass(frozen=True, kw_only=True)
class UserJob(UserWorkload):
    """A PySpark job from a file."""

    node_kind = UserJobNode

    batch_job: UserJobNode


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
    columns = job_columns(path, description, streams) if description.reference is not None else None
    job = UserJobNode(
        tuple(Source(stream.name, stream.schema) for stream in streams), tuple(one.time for one in description.inputs),
        str(path.resolve()), function.__name__, description.keys, description.reach_us, columns,
    )  # fmt: skip
    flow, samples = Flow((Sink(job, SINK, description.mode),)), [one.sample for one in description.inputs if one.sample]
    return UserJob(
        name=path.stem,
        title=path.stem.replace("_", " "),
        summary=(inspect.getdoc(function) or inspect.getdoc(module) or "a user job").partition("\n")[0],
        source=str(path),
        parameters=NoParameters,
        build=lambda parameters, rate_per_s: Job(flow, streams),
        files={path.name: digest(path)} | {str(each): digest(path.resolve().parent / each) for each in samples},
        path=path,
        described={SINK: description},
        batch_job=job,
        notes=(*notes, *description.assumed),
    )


def _function(path: Path, module: Any) -> Any:
    functions = {name: value for name, value in vars(module).items() if inspect.isfunction(value)}
    jobs = {function.__name__: function for function in functions.values() if hasattr(function, DESCRIPTION)}
    local = sorted(name for name, function in functions.items() if function.__module__ == module.__name__)
    got = f"functions without it: {', '.join(local)}" if local else "no function"
    way_out = f"put @job(stream(...)) above {local[0]}" if local else "see examples/ and docs/reference/job-api.md"
    way_out += "; a program with its own source and sink over Kafka: a program.toml (docs/how-to/my-kafka-job.md)"
    rule, setting = "must have one function marked @job", str(path)
    require_all(
        Rule(len(jobs) <= 1, setting, rule, sorted(jobs), "move each function to its own file"),
        Rule(jobs, setting, rule, got, way_out),
    )
    return next(iter(jobs.values()))


def _streams(path: Path, inputs: tuple[Input, ...]) -> tuple[tuple[StreamSpec, ...], tuple[str, ...]]:
    """(the offered streams, notes on fitted samples)."""
    given_shares = [each.share for each in inputs]
    shares = shares_of(given_shares)
    require(shares, "@job share", f"{SHARES_RULE}, or have none at all", given_shares, "share=0.5 on each of two")
    specs, notes = [], []
    for given, share in zip(inputs, shares, strict=True):
        fields = given.fields
        if given.sample is not None:
            sample = fit(path.resolve().parent / given.sample, given.time, named=given.time != TIME)
            fields = sample.fields
            notes += [f"{given.name}{FITTED}{given.sample.name}: {text}" for text in sample.notes]
        specs.append(StreamSpec(given.name, fields, share, given.key))
    return tuple(specs), tuple(notes)
