"""The SUT in Spark's real-time mode: one query from topic to topic, without batches."""

from __future__ import annotations

from collections.abc import Mapping

from streamgauge.core.plugin_options import Setting
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import RunningAggregate
from streamgauge.engines.spark.io.kafka_realtime import RealTimeKafkaAdapter
from streamgauge.engines.spark.io.spi import TransportAdapter
from streamgauge.engines.spark.lowering.queries import Query
from streamgauge.engines.spark.options import with_rocksdb
from streamgauge.engines.spark.parallelism import SETTING
from streamgauge.engines.spark.structured.job_settings import JobSettings
from streamgauge.engines.spark.structured.main import Sut, run
from streamgauge.engines.spark.structured.realtime import INSTANCES, SETTINGS, trigger
from streamgauge.engines.spi import Edges

SHUFFLE = {"spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1"}
"""The longest time that a row waits in an exchange buffer; Spark's default is 50 ms."""


class RealTimeSettings(JobSettings):
    """The settings of one job in real-time mode."""

    declared: tuple[Setting, ...] = SETTINGS
    in_order = True

    def _adapter(self, edges: Edges, options: Mapping[str, str]) -> TransportAdapter:
        return RealTimeKafkaAdapter(edges, options)

    def configuration(self) -> dict[str, str]:
        conf = super().configuration() | SHUFFLE | {SETTING: INSTANCES}
        stateful = any(isinstance(node, RunningAggregate) for node in graph.operators(self.job.flow))
        return {**(with_rocksdb(conf) if stateful else conf), **self.users}

    def trigger(self, query: Query) -> str:
        """The interval of the checkpoint of positions."""
        return trigger(self.job.flow, self.options["trigger"])

    def trigger_arguments(self, query: Query) -> dict[str, str]:
        return {"realTime": self.trigger(query)}


if __name__ == "__main__":
    run(lambda job: Sut(RealTimeSettings(job)))
