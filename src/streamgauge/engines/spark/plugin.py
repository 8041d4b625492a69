"""The plugins of Spark's three execution modes. They load no Spark before a start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from streamgauge.dataflow.nodes import Node
from streamgauge.engines.latency_probe import LatencyProbe
from streamgauge.engines.local_cluster import LocalCluster
from streamgauge.engines.operator_profiler import OperatorProfiler
from streamgauge.engines.spark import intervals, options, options_dstream, options_realtime, tuning, validate
from streamgauge.engines.spark.cluster.master import require_master
from streamgauge.engines.spark.latency_probe import MicroBatch
from streamgauge.engines.spark.latency_probe_dstream import DStream
from streamgauge.engines.spark.latency_probe_realtime import RealTime
from streamgauge.engines.spark.operator_profiler import SparkOperatorProfiler
from streamgauge.engines.spark.session import environment
from streamgauge.engines.spi import (
    BatchAnswer,
    BatchInterval,
    BatchRequest,
    Capabilities,
    Engine,
    EnginePlugin,
    StartRequest,
)


class _PluginOfMode(EnginePlugin):
    """What the three modes share. `mode`: a name in `engine`, which is loaded at a start."""

    interface = 2
    mode: str

    def heap_bytes(self, options_: Mapping[str, str]) -> int:
        return options.heap_bytes(options_)

    def require(self, transport: str, options_: Mapping[str, str]) -> None:
        environment.require(transport, options_)

    def require_master(self, master: str | None, options_: Mapping[str, str], parallelism: int | None) -> None:
        require_master(master, options_, parallelism)

    def place(self, master: str | None, cores: int) -> str:
        return master or f"local[{cores}]"

    def is_own_default(self, name: str, value: str) -> bool:
        return tuning.is_own_default(name, value)

    def make(self, cpus: Sequence[int] | None, parallelism: int | None) -> Engine:
        from streamgauge.engines.spark import engine

        return engine.SparkEngine(cpus, getattr(engine, self.mode), parallelism)


class SparkPlugin(_PluginOfMode):
    """Structured Streaming in micro-batches."""

    capabilities: Capabilities = options.CAPABILITIES
    batch_truth = "Spark, the same function in batch"
    mode = "MICRO_BATCH"
    conformance = "streamgauge.engines.spark.conformance:MICRO_BATCH"

    def check(self, request: StartRequest) -> None:
        validate.check(request)

    def closing_delay_us(self, node: Node) -> int:
        return intervals.closing_delay_us(node)

    def interval(self, request: StartRequest) -> BatchInterval:
        return intervals.longest_batch_interval(request)

    def watermark_delay_us(self, request: StartRequest) -> int:
        return intervals.delay_us(request)

    def sends_all_columns(self, options_: Mapping[str, str]) -> bool:
        return options.sends_all_columns(options_)

    def batch_answer(self, request: BatchRequest) -> AbstractContextManager[BatchAnswer]:
        from streamgauge.engines.spark.batch_answer import batch_answer

        return batch_answer(request)

    def local_cluster(self) -> LocalCluster:
        from streamgauge.engines.spark.cluster import service

        return service

    def latency_probe(self) -> LatencyProbe:
        return MicroBatch()

    def operator_profiler(self) -> OperatorProfiler:
        return SparkOperatorProfiler()


class SparkRealTimePlugin(_PluginOfMode):
    """Structured Streaming in real-time mode."""

    capabilities: Capabilities = options_realtime.CAPABILITIES
    mode = "REAL_TIME"
    conformance = "streamgauge.engines.spark.conformance:REAL_TIME"

    def check(self, request: StartRequest) -> None:
        options_realtime.check(request)

    def warmup_s(self, request: StartRequest) -> float:
        return options_realtime.warmup_s(request)

    def latency_probe(self) -> LatencyProbe:
        return RealTime()


class SparkDStreamPlugin(_PluginOfMode):
    """DStreams."""

    capabilities: Capabilities = options_dstream.CAPABILITIES
    mode = "DSTREAM"
    conformance = "streamgauge.engines.spark.conformance:DSTREAM"

    def check(self, request: StartRequest) -> None:
        options_dstream.check(request)

    def interval(self, request: StartRequest) -> BatchInterval:
        return options_dstream.interval(request)

    def latency_probe(self) -> LatencyProbe:
        return DStream()
