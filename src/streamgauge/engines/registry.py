"""The registry of engines and their capabilities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamgauge.core.plugin_options import Setting
from streamgauge.dataflow.nodes import InWindows
from streamgauge.engines.spi import Capabilities, Engine, EnginePlugin
from streamgauge.transports import registry as transports

_PROBES = "streamgauge.studies.latency_breakdown.probes"


def _on_spark(mode: str) -> Callable[[Sequence[int] | None, int | None], Engine]:
    """A function that starts Spark in an execution mode. It loads Spark only when called."""

    def make(cpus: Sequence[int] | None, parallelism: int | None) -> Engine:
        from streamgauge.engines.spark import execution_modes
        from streamgauge.engines.spark.engine import SparkEngine

        return SparkEngine(cpus, getattr(execution_modes, mode), parallelism)

    return make


def _spark_plugin(mode: str, probe: str, **more: Any) -> EnginePlugin:
    """Spark in an execution mode; `more` is the part that differs from mode to mode."""
    from streamgauge.engines.spark.cluster.master import require_master
    from streamgauge.engines.spark.options import heap_bytes
    from streamgauge.engines.spark.session.environment import require
    from streamgauge.engines.spark.tuning import is_own_default

    return EnginePlugin(
        heap_bytes=heap_bytes, require=require, make=_on_spark(mode), is_own_default=is_own_default,
        latency_probe=f"{_PROBES}.{probe}", require_master=require_master, **more,
    )  # fmt: skip


def _spark() -> EnginePlugin:
    from streamgauge.engines.spark.batch_interval import longest_batch_interval
    from streamgauge.engines.spark.options import CAPABILITIES, sends_all_columns
    from streamgauge.engines.spark.validate import check
    from streamgauge.engines.spark.watermark import delay_us

    return _spark_plugin(
        "MICRO_BATCH", "micro_batch:MicroBatch", capabilities=CAPABILITIES, check=check,
        interval=longest_batch_interval, watermark_delay_us=delay_us, sends_all_columns=sends_all_columns,
    )  # fmt: skip


def _spark_rtm() -> EnginePlugin:
    from streamgauge.engines.spark.structured.realtime import CAPABILITIES, check, warmup_s

    return _spark_plugin("REAL_TIME", "real_time:RealTime", capabilities=CAPABILITIES, check=check, warmup_s=warmup_s)


def _spark_dstream() -> EnginePlugin:
    from streamgauge.engines.spark.dstream.options import CAPABILITIES, check, interval

    return _spark_plugin("DSTREAM", "dstream:DStream", capabilities=CAPABILITIES, check=check, interval=interval)


def _synthetic() -> EnginePlugin:
    from streamgauge.engines.synthetic.settings import CAPABILITIES, check, interval, is_own_default

    def make(cpus: Sequence[int] | None, instances: int | None) -> Engine:
        from streamgauge.engines.synthetic.engine import SyntheticEngine

        return SyntheticEngine(cpus, instances)

    return EnginePlugin(CAPABILITIES, check, interval, make=make, is_own_default=is_own_default)


def _external() -> EnginePlugin:
    from streamgauge.engines.external.capabilities import CAPABILITIES, check

    def make(cpus: Sequence[int] | None, parallelism: int | None) -> Engine:
        from streamgauge.engines.external.engine import ExternalEngine

        return ExternalEngine(cpus, parallelism)

    # Its settings in force are its command and its group.
    return EnginePlugin(CAPABILITIES, check, make=make, is_own_default=lambda *_: True)


def _oracle() -> EnginePlugin:
    from streamgauge.engines.duckdb_oracle.capabilities import CAPABILITIES

    return EnginePlugin(CAPABILITIES)


_ENGINES: dict[str, Callable[[], EnginePlugin]] = {
    "spark": _spark,
    "spark-rtm": _spark_rtm,
    "spark-dstream": _spark_dstream,
    "external": _external,
    "known": _synthetic,
    "oracle": _oracle,
}
"""All engines by name. An engine is only loaded when it is started."""


def capabilities() -> dict[str, Capabilities]:
    """The capabilities of every engine, including the oracle."""
    return {name: entry(name).capabilities for name in _ENGINES}


def streaming_engines() -> tuple[str, ...]:
    return tuple(name for name, each in capabilities().items() if each.runs_streams)


def entry(engine: str) -> EnginePlugin:
    """The plugin of an engine."""
    return _ENGINES[engine]()


def starter_of(engine: str, cpus: Sequence[int] | None, parallelism: int | None = None) -> Callable[[], Engine]:
    """A function that makes a fresh start of a streaming engine on the given processors, with a parallelism."""
    make = entry(engine).make
    assert make is not None
    return lambda: make(cpus, parallelism)


def require(engine: str, transport: str, options: Mapping[str, str]) -> None:
    """Raises MachineError if this machine lacks what the transport or the engine needs and cannot get it."""
    transports.transport(transport).require(options)
    entry(engine).require(transport, options)


def require_master(engine: str, master: str | None, options: Mapping[str, str], parallelism: int | None) -> None:
    """Raises InputError if nothing answers at the master's address, or it cannot hold what is asked for."""
    entry(engine).require_master(master, options, parallelism)


def matrix() -> list[dict[str, Any]]:
    """The capability matrix as plain data, one row per engine."""
    return [
        {
            "name": each.name,
            "summary": each.summary,
            "streams": each.runs_streams,
            "truth": each.computes_truth,
            "several_sinks": each.several_sinks,
            "nodes": [name for name in each.nodes if name != InWindows.__name__],
            "windows_so_far": each.early_firing,
            "sink_modes": list(each.sink_modes),
            "transports": list(each.transports),
            "tuning_profiles": list(each.profiles),
            "options": _setting_rows(each.settings),
        }
        for each in capabilities().values()
    ]


def transport_rows() -> list[dict[str, Any]]:
    """Every transport with its options, as plain data."""
    return [{"name": name, "options": _setting_rows(transports.transport(name).settings)} for name in transports.NAMES]


def _setting_rows(settings: Sequence[Setting]) -> list[dict[str, Any]]:
    return [{"name": s.name, "default": s.default, "meaning": s.meaning, "choices": list(s.choices)} for s in settings]
