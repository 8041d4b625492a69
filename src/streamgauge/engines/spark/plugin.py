"""The plugins of Spark's three execution modes. They load no Spark before a start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from streamgauge.engines.latency_probe import LatencyProbe
from streamgauge.engines.local_cluster import LocalCluster
from streamgauge.engines.operator_profiler import OperatorProfiler
from streamgauge.engines.spark import intervals as batch_interval
from streamgauge.engines.spark import intervals as watermark
from streamgauge.engines.spark import options, tuning, validate
from streamgauge.engines.spark import options_dstream as dstream
from streamgauge.engines.spark import options_realtime as realtime
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
    """What the three modes share. `mode`: a name in `execution_modes`, which is loaded with the engine."""

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
        from streamgauge.engines.spark import execution_modes
        from streamgauge.engines.spark.engine import SparkEngine

        return SparkEngine(cpus, getattr(execution_modes, self.mode), parallelism)


class SparkPlugin(_PluginOfMode):
    """Structured Streaming in micro-batches."""

    capabilities: Capabilities = options.CAPABILITIES
    batch_truth = "Spark, the same function in batch"
    mode = "MICRO_BATCH"
    conformance = "streamgauge.engines.spark.conformance:MICRO_BATCH"

    def check(self, request: StartRequest) -> None:
        validate.check(request)

    def interval(self, request: StartRequest) -> BatchInterval:
        return batch_interval.longest_batch_interval(request)

    def watermark_delay_us(self, request: StartRequest) -> int:
        return watermark.delay_us(request)

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

    capabilities: Capabilities = realtime.CAPABILITIES
    mode = "REAL_TIME"
    conformance = "streamgauge.engines.spark.conformance:REAL_TIME"

    def check(self, request: StartRequest) -> None:
        realtime.check(request)

    def warmup_s(self, request: StartRequest) -> float:
        return realtime.warmup_s(request)

    def latency_probe(self) -> LatencyProbe:
        return RealTime()


class SparkDStreamPlugin(_PluginOfMode):
    """DStreams."""

    capabilities: Capabilities = dstream.CAPABILITIES
    mode = "DSTREAM"
    conformance = "streamgauge.engines.spark.conformance:DSTREAM"

    def check(self, request: StartRequest) -> None:
        dstream.check(request)

    def interval(self, request: StartRequest) -> BatchInterval:
        return dstream.interval(request)

    def latency_probe(self) -> LatencyProbe:
        return DStream()
