"""The driver's side of Flink: its jars, its settings and its checkpoints.

It is a module of its own because the plugin loads nothing of it before a start.
"""

from collections.abc import Mapping
from pathlib import Path

from streamgauge.engines.flink.options import SETTINGS, configuration
from streamgauge.engines.jvm.engine import JvmEngine
from streamgauge.system.java import JarSet

VERSIONS = (("2.2.1", "5.0.0-2.2"), ("2.2.0", "5.0.0-2.2"))
"""Versions of Flink and its Kafka connector, in the order in which they are tried."""


class FlinkEngine(JvmEngine):
    """One start of a Flink cluster and its job in one JVM."""

    name = "flink"
    main = "streamgauge.flink.Main"
    all_settings = SETTINGS

    @staticmethod
    def jar_sets() -> list[JarSet]:
        parts = ("flink-clients", "flink-streaming-java", "flink-connector-base")
        return [
            JarSet(
                f"flink-{version}",
                (
                    *(f"org.apache.flink:{part}:{version}" for part in parts),
                    f"org.apache.flink:flink-connector-kafka:{connector}",
                ),
            )
            for version, connector in VERSIONS
        ]

    def configuration(self, options: Mapping[str, str], scratch: Path, partitions: int) -> dict[str, str]:
        return {**configuration(options), "execution.checkpointing.dir": (scratch / "checkpoints").as_uri()}

    def has_checkpoint(self) -> bool:
        return self.latest_state(self._folder) is not None

    def latest_state(self, scratch: Path) -> str | None:
        """The latest checkpoint that is whole."""
        whole = (file.parent for file in (scratch / "checkpoints").glob("*/chk-*/_metadata"))
        latest = max(whole, key=lambda folder: int(folder.name.removeprefix("chk-")), default=None)
        return None if latest is None else latest.as_uri()
