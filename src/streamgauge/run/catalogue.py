"""What there is: workloads and engines by name, and what each can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamgauge.engines.seam import BatchInterval, Capabilities, Engine, Entry, Wanted
from streamgauge.flow.nodes import InWindows
from streamgauge.options import Setting
from streamgauge.transports import catalogue as transports


def _spark() -> Entry:
    from streamgauge.engines.spark.asked import check
    from streamgauge.engines.spark.connectors import jars_for
    from streamgauge.engines.spark.interval import longest_interval
    from streamgauge.engines.spark.settings import CAPABILITIES, heap_bytes
    from streamgauge.engines.spark.watermark import delay_us

    def make(cpus: Sequence[int] | None) -> Engine:
        from streamgauge.engines.spark.engine import SparkEngine

        return SparkEngine(cpus)

    return Entry(CAPABILITIES, check, longest_interval, delay_us, heap_bytes, jars_for, make)


def _spark_rtm() -> Entry:
    from streamgauge.engines.spark.connectors import jars_for
    from streamgauge.engines.spark.realtime import CAPABILITIES, check, warmup_s
    from streamgauge.engines.spark.settings import heap_bytes

    def make(cpus: Sequence[int] | None) -> Engine:
        from streamgauge.engines.spark.engine import SparkEngine
        from streamgauge.engines.spark.ways import REAL_TIME

        return SparkEngine(cpus, REAL_TIME)

    return Entry(CAPABILITIES, check, heap_bytes=heap_bytes, require=jars_for, make=make, warmup_s=warmup_s)


def _spark_dstream() -> Entry:
    from streamgauge.engines.spark.dstream import CAPABILITIES, check, interval
    from streamgauge.engines.spark.settings import heap_bytes

    def make(cpus: Sequence[int] | None) -> Engine:
        from streamgauge.engines.spark.engine import SparkEngine
        from streamgauge.engines.spark.ways import DSTREAM

        return SparkEngine(cpus, DSTREAM)

    return Entry(CAPABILITIES, check, interval, heap_bytes=heap_bytes, make=make)


def _known() -> Entry:
    from streamgauge.engines.known.settings import CAPABILITIES, check, interval

    def make(cpus: Sequence[int] | None) -> Engine:
        from streamgauge.engines.known.engine import KnownEngine

        return KnownEngine(cpus)

    return Entry(CAPABILITIES, check, interval, make=make)


def _oracle() -> Entry:
    from streamgauge.engines.oracle.capabilities import CAPABILITIES

    return Entry(CAPABILITIES)


_ENGINES: dict[str, Callable[[], Entry]] = {
    "spark": _spark,
    "spark-rtm": _spark_rtm,
    "spark-dstream": _spark_dstream,
    "known": _known,
    "oracle": _oracle,
}
"""Every engine there is; an engine is loaded only when one is made."""


def capabilities() -> dict[str, Capabilities]:
    """Every engine's capabilities, the reference included."""
    return {name: entry().capabilities for name, entry in _ENGINES.items()}


def streaming_engines() -> tuple[str, ...]:
    return tuple(name for name, each in capabilities().items() if each.runs_streams)


def start_of(engine: str, cpus: Sequence[int] | None) -> Callable[[], Engine]:
    """What makes a fresh start of an engine that runs streams, on the processors given."""
    make = _ENGINES[engine]().make
    assert make is not None
    return lambda: make(cpus)


def check_wanted(engine: str, wanted: Wanted) -> None:
    """Refuse what an engine cannot use; InputError with every problem."""
    _ENGINES[engine]().check(wanted)


def interval_of(engine: str, wanted: Wanted) -> BatchInterval:
    """How far apart an engine's batches would be, as far as that is known before a start."""
    return _ENGINES[engine]().interval(wanted)


def fresh_warmup_of(engine: str, wanted: Wanted) -> float:
    """How long a fresh start of an engine warms up at least, seconds."""
    return _ENGINES[engine]().warmup_s(wanted)


def watermark_delay_of(engine: str, wanted: Wanted) -> int:
    """How far behind the latest event an engine's watermark would stay, microseconds."""
    return _ENGINES[engine]().watermark_delay_us(wanted)


def require(engine: str, transport: str, options: Mapping[str, str]) -> None:
    """MachineError where this machine lacks what a transport needs with its options, or the engine to read it, and
    cannot get it.
    """
    transports.transport(transport).require(options)
    _ENGINES[engine]().require(transport, options)


def heap_of(engine: str, options: Mapping[str, str]) -> int:
    """How much memory an engine would be given, bytes; 0 where that is not known."""
    return _ENGINES[engine]().heap_bytes(options)


def workload_rows(name: str = "") -> list[dict[str, Any]]:
    """Every workload as plain data, with its parameters and its flow; the one of that name alone where it is given."""
    from streamgauge.workloads.base import catalogue

    return catalogue(name=name)


def matrix() -> list[dict[str, Any]]:
    """The capability table, one row an engine."""
    return [
        {
            "name": each.name,
            "summary": each.summary,
            "streams": each.runs_streams,
            "truth": each.computes_truth,
            "several_sinks": each.several_sinks,
            "nodes": [name for name in each.nodes if name != InWindows.__name__],
            "windows_so_far": each.early,
            "sink_modes": list(each.sink_modes),
            "transports": list(each.transports),
            "options": _told(each.settings),
        }
        for each in capabilities().values()
    ]


def transport_rows() -> list[dict[str, Any]]:
    """Every transport with its options, as plain data."""
    return [{"name": name, "options": _told(transports.transport(name).settings)} for name in transports.NAMES]


def _told(settings: Sequence[Setting]) -> list[dict[str, Any]]:
    return [{"name": s.name, "default": s.default, "meaning": s.meaning, "choices": list(s.choices)} for s in settings]
