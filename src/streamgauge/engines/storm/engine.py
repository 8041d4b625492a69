"""The driver's side of Storm: its jars and its settings.

It is a module of its own because the plugin loads nothing of it before a start.
"""

from collections.abc import Mapping
from pathlib import Path

from streamgauge.engines.jvm.engine import JvmEngine
from streamgauge.engines.storm.options import SETTINGS, configuration
from streamgauge.system.java import JarSet

VERSIONS = ("2.8.3", "2.8.2")
"""In the order in which they are tried."""
CLIENTS = "org.apache.kafka:kafka-clients:3.9.1"
"""Storm's spout leaves the version open."""


class StormEngine(JvmEngine):
    """One start of a local cluster of Storm and its topology in one JVM."""

    name = "storm"
    main = "streamgauge.storm.Main"
    all_settings = SETTINGS

    @staticmethod
    def jar_sets() -> list[JarSet]:
        parts = ("storm-server", "storm-kafka-client")
        return [
            JarSet(f"storm-{each}", (*(f"org.apache.storm:{part}:{each}" for part in parts), CLIENTS))
            for each in VERSIONS
        ]

    def configuration(self, options: Mapping[str, str], scratch: Path, partitions: int) -> dict[str, str]:
        return configuration(options)
