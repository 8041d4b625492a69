"""The one look-up of a workload by what the command line names, and the files that decide it.

A workload is built in, a PySpark job (`FILE.py`), or a program over Kafka (`FILE.toml`). What reads a user's file is
loaded with the first file of its kind.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from streamgauge.config.experiment import Experiment
from streamgauge.config.named_files import is_data, is_own_file, is_program
from streamgauge.core.errors import InputError, Problem
from streamgauge.transports import registry as transports
from streamgauge.workloads import registry
from streamgauge.workloads.registry import Workload


def get(name: str) -> Workload:
    """The workload of a name or a file. Raises InputError if it does not exist or cannot be used."""
    if is_program(name):
        from streamgauge.user_workloads.program import program

        return program(Path(name))
    if name.endswith(".py"):
        from streamgauge.user_workloads.user_job import user_job

        return user_job(Path(name))
    if name not in registry.names() and (file := _intended_file(name)):
        rule = "a user job must be a file that ends in .py, and a program over Kafka one that ends in .toml"
        raise InputError(Problem("workload", rule, name, file))
    return registry.get(name)


def kind_of(name: str) -> type[Workload]:
    """The class of the workload of a name or a file, which need not exist. It answers questions about all of them."""
    if is_program(name):
        from streamgauge.user_workloads.program import Program

        return Program
    if name.endswith(".py"):
        from streamgauge.user_workloads.user_job import UserJob

        return UserJob
    return Workload


def _intended_file(name: str) -> str | None:
    """The file that a name seems to mean; None for a name like a workload's."""
    path = Path(name)
    if not path.name:
        return None
    job = f"{name}.py" if len(path.parts) > 1 or Path(f"{name}.py").is_file() else None
    job = f"{path.with_suffix('.py')}, with one function marked @job" if path.suffix else job
    return next((str(file) for file in (path / "program.toml", path.with_suffix(".toml")) if file.is_file()), job)


def changed_files(workload: Workload, previous: Mapping[str, str], way_out: str) -> Iterator[Problem]:
    """The workload's files whose SHA-256 differs from `previous`, the digests in a run's result."""
    for name, before in previous.items():
        if workload.files.get(name) != before:
            got = f"SHA-256 {workload.files[name][:12]}, was {before[:12]}" if name in workload.files else "none"
            yield Problem(name, "must be unchanged since that run", got, way_out)


def with_absolute_paths(experiment: Experiment) -> Experiment:
    """The experiment with absolute paths of user job, data and other files. An empty path stays empty, for its own
    refusal.
    """
    workload, values = experiment.workload, experiment.parameters
    built_in = registry.get(workload) if workload in registry.names() else None
    files = {name for name in values if is_data(name) or (built_in is not None and built_in.is_file(name))}
    return experiment.model_copy(
        update={
            "workload": os.path.abspath(workload) if is_own_file(workload) else workload,
            "parameters": {
                name: os.path.abspath(str(value)) if name in files and value else value
                for name, value in values.items()
            },
            "transport_options": transports.with_absolute_paths(experiment.transport, experiment.transport_options),
        }
    )
