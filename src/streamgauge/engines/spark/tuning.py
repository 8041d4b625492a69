"""What the tuning profiles set on Spark, as data; loads no Spark."""

from streamgauge.core.plugin_options import IDIOMATIC, TUNED
from streamgauge.engines.spark.session.session import SHUFFLE_PARTITIONS, STATE_STORE, WAREHOUSE
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
    "json_parser": "from_json",
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
    WAREHOUSE,
)
"""What PySpark sets for every session."""
OF_SPARK = {
    "driver_memory": "1g",
    "max_per_trigger": "none",
    "spark.driver.memory": "1g",
    "spark.rdd.compress": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.cache.maxEntries": "100",
    "spark.sql.execution.arrow.maxBytesPerBatch": "64MB",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "128",
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "true",
    SHUFFLE_PARTITIONS: "200",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "100",
    "spark.sql.streaming.numRecentProgressUpdates": "100",
    f"{STATE_STORE}rocksdb.changelogCheckpointing.enabled": "false",
    f"{STATE_STORE}rocksdb.trackTotalNumberOfRows": "true",
    "spark.sql.streaming.unsupportedOperationCheck": "true",
    "spark.ui.enabled": "true",
    # Of DStreams, with our options for them.
    "block_interval": "200ms",
    "spark.streaming.blockInterval": "200ms",
    "back_pressure": "off",
    "spark.streaming.backpressure.enabled": "false",
}
"""Defaults of Spark 4.3 for what streamgauge or a user may set. A value that was given and is the same changes nothing.
`spark.ui.showConsoleProgress` is not among them: PySpark's start makes it true."""
_BY_CLIENTS = ("Spark's own for Kafka: Kafka's own defaults", "Spark's own for sockets")
"""How values begin that are what Spark's own source, sink or receiver does by itself."""
NOT_IN_FORCE = " (set aside)"
"""The end of a name that only says which variable was kept from Spark."""


def is_own_default(name: str, value: str) -> bool:
    """Whether a setting in force is what Spark does by itself."""
    value = value.removesuffix(" (auto)")
    if name.startswith("lowering."):
        return value in PLAIN
    if name in _WITHOUT_EFFECT:
        return value in _WITHOUT_EFFECT[name]
    if name == "jit":
        value = value.partition(" (")[0]  # a remote JVM starts with its own options
    named = name in _OF_PYSPARK or name.endswith(NOT_IN_FORCE) or value.startswith(_BY_CLIENTS)
    return named or value in (BY_SPARK.get(name), OF_SPARK.get(name))
