"""Which workloads run on which engine over which transport, by the check before a run."""

from __future__ import annotations

from streamgauge.config.experiment import build
from streamgauge.core.errors import InputError, Problem
from streamgauge.engines.jvm.plugin import JvmPlugin
from streamgauge.engines.registry import entry, streaming_engines
from streamgauge.preflight.settings_checks import check

MACHINE_SETTINGS = ("load.memory", "load.generators", "partitions", "bind", "isolation")


def incompatibility(workload: str, engine: str, transport: str) -> tuple[Problem, ...]:
    """Why a workload with default parameters cannot run on an engine over a transport, on any machine; else ()."""
    values = {"workload": workload, "engine": engine, "transport": transport, "load": {"rate": "1k"}}
    try:
        check(build(values), new_folder=False)
    except InputError as error:
        return tuple(problem for problem in error.problems if problem.setting not in MACHINE_SETTINGS)
    return ()


def on_jvms() -> tuple[str, ...]:
    """The engines on a JVM of their own, in the order of the registry."""
    return tuple(name for name in streaming_engines() if isinstance(entry(name), JvmPlugin))
