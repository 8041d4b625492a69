"""What there is: workloads, engines and transports by name, and what each can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamgauge.engines.seam import Capabilities, Engine

TRANSPORTS = ("flight",)


def _spark(cpus: Sequence[int] | None) -> Engine:
    from streamgauge.engines.spark.engine import SparkEngine

    return SparkEngine(cpus)


def _known(cpus: Sequence[int] | None) -> Engine:
    from streamgauge.engines.known.engine import KnownEngine

    return KnownEngine(cpus)


_STARTERS: dict[str, Callable[[Sequence[int] | None], Engine]] = {"spark": _spark, "known": _known}


def capabilities() -> dict[str, Capabilities]:
    """Every engine's capabilities, the reference included; loads no engine."""
    from streamgauge.engines.known.settings import CAPABILITIES as KNOWN
    from streamgauge.engines.oracle.capabilities import CAPABILITIES as ORACLE
    from streamgauge.engines.spark.settings import CAPABILITIES as SPARK

    return {each.name: each for each in (SPARK, KNOWN, ORACLE)}


def streaming_engines() -> tuple[str, ...]:
    return tuple(name for name, each in capabilities().items() if each.runs_streams)


def start_of(engine: str, cpus: Sequence[int] | None) -> Callable[[], Engine]:
    """What makes a fresh start of an engine, on the processors given."""
    return lambda: _STARTERS[engine](cpus)


def check_options(engine: str, options: dict[str, str]) -> None:
    """Refuse option values that an engine cannot use; InputError with every problem."""
    if engine == "known":
        from streamgauge.engines.known.settings import read_options

        read_options(options)
    if engine == "spark":
        from streamgauge.engines.spark.settings import check

        check(options)


def workload_rows() -> list[dict[str, Any]]:
    """Every workload as plain data, with its parameters and its flow."""
    from streamgauge.workloads.base import catalogue

    return catalogue()


def matrix() -> list[dict[str, Any]]:
    """The capability table, one row an engine."""
    return [
        {
            "name": each.name,
            "summary": each.summary,
            "streams": each.runs_streams,
            "truth": each.computes_truth,
            "several_sinks": each.several_sinks,
            "nodes": list(each.nodes),
            "sink_modes": list(each.sink_modes),
            "transports": list(each.transports),
            "options": [
                {"name": s.name, "default": s.default, "meaning": s.meaning, "choices": list(s.choices)}
                for s in each.settings
            ],
        }
        for each in capabilities().values()
    ]
