"""Which workloads run on which engine over which transport: what the check that comes before a run says of each."""

from __future__ import annotations

from streamgauge.config.experiment import build
from streamgauge.core.errors import InputError, Problem
from streamgauge.preflight.validate import check

OF_THE_MACHINE = ("load.memory", "load.generators", "bind", "isolation")


def incompatibility(workload: str, engine: str, transport: str) -> tuple[Problem, ...]:
    """Why a workload, with its defaults, cannot run on an engine over a transport, whatever the machine; nothing where
    it can.
    """
    asked = {"workload": workload, "engine": engine, "transport": transport, "load": {"rate": "1k"}}
    try:
        check(build(asked), new_folder=False)
    except InputError as error:
        return tuple(problem for problem in error.problems if problem.setting not in OF_THE_MACHINE)
    return ()
