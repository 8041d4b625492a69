"""Kafka Streams: capabilities, options, and what they set. Loads nothing of it."""

from collections.abc import Mapping

from streamgauge.core.clock import US
from streamgauge.core.plugin_options import Fetch, Setting, with_defaults
from streamgauge.core.units import parse_duration
from streamgauge.engines.jvm.plugin import JOB_SETTINGS, capabilities, milliseconds

SETTINGS = (
    Setting("memory", "2GiB", "the heap of the JVM"),
    Setting("state_store", "memory", "where state is kept", ("memory", "rocksdb")),
    Setting("changelog", "true", "whether state is also written to topics, which a restart reads", ("true", "false")),
    Setting("commit_interval", "1s", "how often offsets are committed, which show the progress"),
    Setting("emit_interval", "20ms", "how often closed windows are looked for, by the engine's internal setting"),
    Setting("watermark_delay", "auto", "how late rows of a window may come; auto: 0, and 2s with several partitions"),
    Setting("task_idle", "5s", "how long a task that reads several topics waits for one that has no rows"),
    *JOB_SETTINGS,
)
"""The defaults are those of the profile `tuned`."""
STREAMS_OWN = {"state_store": "rocksdb", "emit_interval": "1s"}
"""What these options are where a job sets nothing. It would commit every 30 s, which shows no progress."""
LEAST_S = {"commit_interval": 0.01, "emit_interval": 0.0, "task_idle": 0.0, "watermark_delay": 0.0}
"""The options that are times, and the least of each."""
EMIT_S_MAX = 1.0
"""The longest `emit_interval`, which is the engine's own."""
NAMES = {
    "commit_interval": "commit.interval.ms", "task_idle": "max.task.idle.ms",
    "emit_interval": "__emit.interval.ms.kstreams.windowed.aggregation__",
}  # fmt: skip
"""Option to the engine's setting, in milliseconds."""
STORES = {"memory": "InMemoryDslStoreSuppliers", "rocksdb": "RocksDBDslStoreSuppliers"}
PARTITIONS_DELAY_S = 2.0
FIXED = {
    # A partition is paused when more wait than this, else all of a fetch comes before the others, which are late then.
    "max.poll.records": "1000",
    "buffered.records.per.partition": "500",
    "auto.offset.reset": "earliest",
    "statestore.cache.max.bytes": "0",  # each update is a result
    "topic.message.timestamp.after.max.ms": str(2**63 - 1),  # times are microseconds, so they seem to be far ahead
}
ALWAYS_SET = {
    "commit_interval", NAMES["commit_interval"], "task_idle", NAMES["task_idle"],
    *FIXED.keys() - {"max.poll.records", "auto.offset.reset"},
}  # fmt: skip
"""What each profile sets to something else than the engine does by itself."""

CAPABILITIES = capabilities(
    "kafka-streams",
    "Kafka Streams, DSL",
    Fetch("Kafka Streams", 98_000_000, "--engine kafka-streams"),
    SETTINGS,
    STREAMS_OWN,
)


def delay_s(options: Mapping[str, str], partitions: int) -> float:
    """How far windows stay open behind the latest event. A partition knows nothing of the others."""
    requested = options.get("watermark_delay", "auto")
    if requested != "auto":
        return parse_duration(requested, "option watermark_delay")
    return PARTITIONS_DELAY_S if partitions > 1 else 0.0


def configuration(options: Mapping[str, str], partitions: int) -> dict[str, str]:
    """Kafka Streams' settings for these options, and ours, which begin with `streamgauge.`."""
    chosen = with_defaults(options, SETTINGS)
    times = {streams: str(milliseconds(chosen[name])) for name, streams in NAMES.items()}
    stores = f"org.apache.kafka.streams.state.BuiltInDslStoreSuppliers${STORES[chosen['state_store']]}"
    return {
        **FIXED, **times, "dsl.store.suppliers.class": stores,
        "streamgauge.delay.us": str(round(delay_s(options, partitions) * US)),
        "streamgauge.store": chosen["state_store"], "streamgauge.changelog": chosen["changelog"],
    }  # fmt: skip
