"""The driver's side of Kafka Streams: its jars and its settings.

It is a module of its own because the plugin loads nothing of it before a start.
"""

from collections.abc import Mapping
from pathlib import Path

from streamgauge.engines.jvm.engine import JvmEngine
from streamgauge.engines.kafka_streams.options import SETTINGS, configuration
from streamgauge.system.java import JarSet

VERSIONS = ("4.2.0", "4.1.1")
"""In the order in which they are tried."""


class KafkaStreamsEngine(JvmEngine):
    """One start of an application of Kafka Streams in one JVM."""

    name = "kafka-streams"
    main = "streamgauge.kafka_streams.Main"
    all_settings = SETTINGS

    @staticmethod
    def jar_sets() -> list[JarSet]:
        return [JarSet(f"kafka-streams-{each}", (f"org.apache.kafka:kafka-streams:{each}",)) for each in VERSIONS]

    def configuration(self, options: Mapping[str, str], scratch: Path, partitions: int) -> dict[str, str]:
        return configuration(options, partitions)
