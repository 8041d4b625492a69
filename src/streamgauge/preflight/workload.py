"""A workload by its name on the command line: built in, a user job, or a program of the user's own."""

from __future__ import annotations

from pathlib import Path

from streamgauge.config.named_files import is_program
from streamgauge.preflight import user_job
from streamgauge.preflight.program.program import program
from streamgauge.workloads.registry import Workload


def get(name: str) -> Workload:
    """The workload of a name or a file. Raises InputError if it does not exist or cannot be used."""
    return program(Path(name)) if is_program(name) else user_job.get(name)
