"""The plugin of Kafka Streams."""

from collections.abc import Iterable, Mapping

from streamgauge.core.clock import US
from streamgauge.core.errors import Problem
from streamgauge.core.units import parse_duration
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import (
    Distinct,
    IntervalJoin,
    Node,
    RunningAggregate,
    SessionAggregate,
    TopN,
    WindowAggregate,
    WindowJoin,
)
from streamgauge.dataflow.reach import slide_us
from streamgauge.engines.jvm.plugin import JvmPlugin
from streamgauge.engines.kafka_streams.options import ALWAYS_SET, CAPABILITIES, EMIT_S_MAX, LEAST_S, delay_s
from streamgauge.engines.spi import StartRequest

WAITING = (WindowAggregate, SessionAggregate, WindowJoin, Distinct, TopN)
"""The kinds whose results wait until a later row shows that no earlier one comes."""
OWN_TOPICS = {**dict.fromkeys((*WAITING, RunningAggregate), 1), IntervalJoin: 2}
"""Kind to the topics of the job's own that it reads: rows by its key, those of each side of an interval join. It reads
none if messages have that key already.
"""


class KafkaStreamsPlugin(JvmPlugin):
    """Kafka Streams' DSL."""

    capabilities = CAPABILITIES
    conformance = "streamgauge.engines.kafka_streams.conformance:CONF"
    engine = "streamgauge.engines.kafka_streams.engine:KafkaStreamsEngine"
    least_s = LEAST_S
    always_set = ALWAYS_SET

    def option_problems(self, options: Mapping[str, str]) -> Iterable[Problem]:
        """Also an `emit_interval` after which windows would have left their store, or the load have ended."""
        problems = list(super().option_problems(options))
        asked, setting = options.get("emit_interval", "0s"), "option emit_interval"
        if not problems and parse_duration(asked, setting) > EMIT_S_MAX:
            rule = f"must be at most {EMIT_S_MAX:g}s, or the last windows come too late"
            problems.append(Problem(setting, rule, asked, "--option emit_interval=1s"))
        return problems

    def watermark_delay_us(self, request: StartRequest) -> int:
        """Each operator that waits for later rows adds the delay."""
        levels = max((_levels(sink.input) for sink in request.flow.sinks), default=0) if request.flow else 1
        return round(delay_s(request.options, request.partitions) * US) * levels

    def closing_delay_us(self, node: Node) -> int:
        """The results of windows close other windows, so the next ones have to come."""
        before = (slide_us(each) or 0 for each in graph.inputs(node))
        return max(before, default=0) if isinstance(node, WAITING) else 0

    def unseen_us(self, request: StartRequest) -> int:
        """At most a commit interval for the input, and one for each topic of the job's own.

        The driver takes an event as processed when each of them was read once more after it.
        """
        nodes = graph.operators(request.flow) if request.flow else ()
        own_topics = sum(OWN_TOPICS.get(type(node), 0) for node in nodes)
        return super().unseen_us(request) * (own_topics + 1)


def _levels(node: Node) -> int:
    return isinstance(node, WAITING) + max(map(_levels, graph.inputs(node)), default=0)
