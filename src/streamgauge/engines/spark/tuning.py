"""What the tuning profiles set on Spark, as data; loads no Spark."""

from __future__ import annotations

from streamgauge.core.plugin_options import IDIOMATIC, TUNED
from streamgauge.engines.spi import TuningProfile

BY_SPARK = {
    "trigger": "0 seconds",
    "source": "rows",
    "columns": "all",
    "nullable": "all",
    "lowering": "plain",
    "jit": "jvm",
    "heap": "grows",
    "spark_settings": "spark",
    "state_store": "spark",
    "file_system": "spark",
    "worker_start": "zip",
    "python_workers": "spark",
    "kafka_clients": "kafka",
}
"""Our options, each with the value that leaves it to Spark, the JVM or Kafka's clients."""
PROFILES = {
    TUNED: TuningProfile(),
    IDIOMATIC: TuningProfile(BY_SPARK, {"kafka": {"encoding": "json"}}),
}
PLAIN = ("window", "stream_stream")
"""The lowerings that a user writes: `groupBy(window(...))`, and Spark's own join of two streams."""
_WITHOUT_EFFECT = {"buckets": ("8",), "probes": ("progress", "off")}
"""Options that are not of Spark, with the values at which they change nothing of it."""
_OF_PYSPARK = (
    "spark.serializer.objectStreamReset",
    "spark.sql.artifact.isolation.enabled",
    "spark.sql.warehouse.dir",
)
"""What PySpark sets for every session."""
NOT_IN_FORCE = " (set aside)"
"""The end of a name that only says which variable was kept from Spark."""


def is_own_default(name: str, value: str) -> bool:
    """Whether a setting in force is what Spark does by itself."""
    value = value.removesuffix(" (auto)")
    if name.startswith("lowering."):
        return value in PLAIN
    if name in _WITHOUT_EFFECT:
        return value in _WITHOUT_EFFECT[name]
    return name in _OF_PYSPARK or name.endswith(NOT_IN_FORCE) or BY_SPARK.get(name) == value
