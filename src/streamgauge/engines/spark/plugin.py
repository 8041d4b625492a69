"""The plugins of Spark's three execution modes. They load no Spark before a start."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from streamgauge.core.clock import US
from streamgauge.dataflow.nodes import Node, Process
from streamgauge.engines.local_cluster import LocalCluster
from streamgauge.engines.spark import (
    options,
    options_dstream,
    options_realtime,
    tuning,
    validate,
    watermark_and_interval,
)
from streamgauge.engines.spark.cluster import master as cluster_master
from streamgauge.engines.spark.latency_probe import MicroBatch, RealTime
from streamgauge.engines.spark.latency_probe_dstream import DStream
from streamgauge.engines.spark.operator_profiler import SparkOperatorProfiler
from streamgauge.engines.spark.session import environment, masters
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

    interface = 3
    memory_option = "driver_memory"
    mode: str

    heap_bytes = staticmethod(options.heap_bytes)
    machine_checks = staticmethod(environment.machine_checks)
    require = staticmethod(environment.require)
    require_master = staticmethod(cluster_master.require_master)
    is_own_default = staticmethod(tuning.is_own_default)

    usable_cores = staticmethod(masters.usable_cores)

    def found_at_start(self, options: Mapping[str, str]) -> Iterable[str]:
        names = [name for name in options if name.startswith(validate.PREFIX)]
        return [f"whether Spark has {', '.join(names)}: its start refuses misspelt names"] if names else []

    def place(self, master: str | None, cores: int) -> str:
        return master or f"local[{cores}]"

    def make(self, cpus: Sequence[int] | None, parallelism: int | None) -> Engine:
        from streamgauge.engines.spark import engine

        return engine.SparkEngine(cpus, getattr(engine, self.mode), parallelism)


class SparkPlugin(_PluginOfMode):
    """Structured Streaming in micro-batches."""

    capabilities: Capabilities = options.CAPABILITIES
    batch_truth = "Spark, the same function in batch"
    mode = "MICRO_BATCH"
    conformance = "streamgauge.engines.spark.conformance:MICRO_BATCH"
    request_problems = staticmethod(validate.request_problems)
    interval = staticmethod(watermark_and_interval.longest_batch_interval)
    sends_all_columns = staticmethod(options.sends_all_columns)
    latency_probe = staticmethod(MicroBatch)
    operator_profiler = staticmethod(SparkOperatorProfiler)

    def closing_delay_us(self, node: Node) -> int:
        return watermark_and_interval.PROCESS_DELAY_US if isinstance(node, Process) and node.identity else 0

    def watermark_delay_us(self, request: StartRequest) -> int:
        requested = options.split(request.options)[0]["watermark_delay"]
        delay = watermark_and_interval.delay_of(requested, request.transport, request.partitions, request.flow)
        return round(watermark_and_interval.seconds(delay) * US)

    def batch_answer(self, request: BatchRequest) -> AbstractContextManager[BatchAnswer]:
        from streamgauge.engines.spark.batch_answer import batch_answer

        return batch_answer(request)

    def local_cluster(self) -> LocalCluster:
        from streamgauge.engines.spark.cluster import service

        return service


class SparkRealTimePlugin(_PluginOfMode):
    """Structured Streaming in real-time mode."""

    capabilities: Capabilities = options_realtime.CAPABILITIES
    mode = "REAL_TIME"
    conformance = "streamgauge.engines.spark.conformance:REAL_TIME"
    request_problems = staticmethod(options_realtime.request_problems)
    latency_probe = staticmethod(RealTime)

    def warmup_s(self, request: StartRequest) -> float:
        """The shortest warm-up of a fresh query: until its first checkpoint of positions."""
        if request.flow is None:
            return 0.0
        every_s = watermark_and_interval.seconds(
            options_realtime.trigger(request.flow, request.options.get("trigger", "auto"))
        )
        return every_s + options_realtime.SETTLES_S if every_s <= options_realtime.RETENTION_MAX_S else 0.0


class SparkDStreamPlugin(_PluginOfMode):
    """DStreams."""

    capabilities: Capabilities = options_dstream.CAPABILITIES
    mode = "DSTREAM"
    conformance = "streamgauge.engines.spark.conformance:DSTREAM"
    request_problems = staticmethod(options_dstream.request_problems)
    latency_probe = staticmethod(DStream)

    def interval(self, request: StartRequest) -> BatchInterval:
        requested = options_dstream.requested_value(request.options, options_dstream.BATCH)
        return BatchInterval(options_dstream.seconds(requested), options_dstream.BATCH)
