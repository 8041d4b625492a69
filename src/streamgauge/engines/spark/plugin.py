"""The plugins of Spark's three execution modes. They load no Spark before a start."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from streamgauge.core.clock import US
from streamgauge.core.errors import Problem
from streamgauge.dataflow.nodes import Node, Process
from streamgauge.engines.latency_probe import LatencyProbe
from streamgauge.engines.local_cluster import LocalCluster
from streamgauge.engines.operator_profiler import OperatorProfiler
from streamgauge.engines.spark import intervals, options, options_dstream, options_realtime, tuning, validate
from streamgauge.engines.spark.cluster.master import require_master
from streamgauge.engines.spark.latency_probe import MicroBatch, RealTime
from streamgauge.engines.spark.latency_probe_dstream import DStream
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

    def request_problems(self, request: StartRequest) -> Iterable[Problem]:
        return validate.request_problems(request)

    def closing_delay_us(self, node: Node) -> int:
        return intervals.PROCESS_DELAY_US if isinstance(node, Process) and node.identity else 0

    def interval(self, request: StartRequest) -> BatchInterval:
        return intervals.longest_batch_interval(request)

    def watermark_delay_us(self, request: StartRequest) -> int:
        requested = options.split(request.options)[0]["watermark_delay"]
        delay = intervals.delay_of(requested, request.transport, request.partitions, request.flow)
        return round(intervals.seconds(delay) * US)

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

    def request_problems(self, request: StartRequest) -> Iterable[Problem]:
        return options_realtime.request_problems(request)

    def warmup_s(self, request: StartRequest) -> float:
        """The shortest warm-up of a fresh query: until its first checkpoint of positions."""
        if request.flow is None:
            return 0.0
        every_s = intervals.seconds(options_realtime.trigger(request.flow, request.options.get("trigger", "auto")))
        return every_s + options_realtime.SETTLES_S if every_s <= options_realtime.RETENTION_MAX_S else 0.0

    def latency_probe(self) -> LatencyProbe:
        return RealTime()


class SparkDStreamPlugin(_PluginOfMode):
    """DStreams."""

    capabilities: Capabilities = options_dstream.CAPABILITIES
    mode = "DSTREAM"
    conformance = "streamgauge.engines.spark.conformance:DSTREAM"

    def request_problems(self, request: StartRequest) -> Iterable[Problem]:
        return options_dstream.request_problems(request)

    def interval(self, request: StartRequest) -> BatchInterval:
        requested = options_dstream.requested_value(request.options, options_dstream.BATCH)
        return BatchInterval(options_dstream.seconds(requested), options_dstream.BATCH)

    def latency_probe(self) -> LatencyProbe:
        return DStream()
