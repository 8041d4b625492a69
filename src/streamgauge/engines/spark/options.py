"""The options of the Spark engine, its Spark configuration with reasons, and how user settings override it."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from streamgauge.core.errors import Rule
from streamgauge.core.plugin_options import TUNED, Setting, with_defaults
from streamgauge.dataflow import graph, schema
from streamgauge.dataflow.nodes import (
    Distinct,
    Explode,
    Flow,
    IntervalJoin,
    Lookup,
    Node,
    Process,
    RunningAggregate,
    Select,
    SessionAggregate,
    Source,
    TopN,
    Union,
    UserJobNode,
    Where,
    WindowAggregate,
    WindowJoin,
)
from streamgauge.engines.spark.session.environment import AVRO_FETCH, KAFKA_FETCH
from streamgauge.engines.spark.session.masters import HOST
from streamgauge.engines.spark.session.reports import BATCH_STEPS
from streamgauge.engines.spark.session.session import FILE_MANAGER, SHUFFLE_PARTITIONS, STATE_STORE, WAREHOUSE
from streamgauge.engines.spark.tuning import PROFILES
from streamgauge.engines.spi import Capabilities, NearLimit, node_names
from streamgauge.system.machine import at_most_half, memory_bytes

KINDS: tuple[type[Node], ...] = (
    Source, Select, Where, WindowAggregate, SessionAggregate, RunningAggregate, WindowJoin, IntervalJoin, Distinct,
    TopN, Explode, Lookup, Union, Process, UserJobNode,
)  # fmt: skip
"""The node kinds that Spark runs. The conformance suite compares them with `lowering.dataframe`, which loads Spark."""
LOWERING = "lowering."
LOWERINGS: dict[type[Node], tuple[str, ...]] = {
    WindowAggregate: ("auto", "panes", "sliding", "window"),
    WindowJoin: ("auto", "stream_stream", "packed"),
}
"""The lowerings of each node kind, default first; `--option lowering.<operator>` chooses."""
PLAIN: dict[type[Node], str] = {WindowAggregate: "window", WindowJoin: "stream_stream"}
"""The way in which a user would write an operator of a kind."""

_LOCAL_FILES = "org.apache.hadoop.fs.RawLocalFileSystem"
_FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

SETTINGS = (
    Setting(
        "trigger",
        "auto",
        "how often a batch begins, at least: 1 second; 0 seconds: back to back. auto: 1400 milliseconds for windows, "
        "2 seconds for Spark's own join of them, else 0",
    ),
    Setting(
        "watermark_delay",
        "auto",
        "how far behind the latest event the watermark stays; auto: 1 second over a broker with several partitions "
        "or a union of streams, else 0 seconds",
    ),
    Setting(
        "max_per_trigger",
        "none",
        "the most events that a batch reads: in memory of all streams together, over Kafka of each; none: all that are "
        "there",
    ),
    Setting(
        "source",
        "bundles",
        "how events enter; bundles: some thousand as a row of arrays, unpacked by a native expression; rows: singly",
        ("bundles", "rows"),
    ),
    Setting(
        "columns",
        "read",
        "which columns of an event are sent; read: those that the job reads; all: every declared one",
        ("read", "all"),
    ),
    Setting(
        "nullable",
        "declared",
        "in memory, which columns may be null; declared: as the stream declares, which saves checks; all: every one",
        ("declared", "all"),
    ),
    Setting(
        "lowering",
        "auto",
        "how operators are done whose lowering.NAME is auto; auto: the fastest way; plain: as a user would write them, "
        "with groupBy(window) and Spark's own join of streams",
        ("auto", "plain"),
    ),
    Setting("buckets", "8", "how many parts a packed lowering or a process cuts its keys into"),
    Setting(
        "lowering.aggregate",
        "auto",
        "how the windowed aggregate of that name is done; panes: Spark adds up parts and joins them; sliding: by a "
        "process in Python; window: Spark's own; auto: sliding from 100 windows of an event, panes if possible, unless "
        "lowering is plain",
        LOWERINGS[WindowAggregate],
    ),
    Setting(
        "lowering.join",
        "auto",
        "how the windowed join of that name is done; stream_stream: Spark's own join; packed: rows stay Arrow blocks "
        "until their window ends; auto: packed in memory with integer keys, unless lowering is plain, watermark_delay "
        "is set, or frontier is free",
        LOWERINGS[WindowJoin],
    ),
    Setting("driver_memory", "4g", "heap of the JVM in local mode; unless given, at most half of the machine's memory"),
    Setting(
        "jit",
        "late",
        "when a local JVM compiles to its fastest code; late: only what is called very often; jvm: as it would",
        ("late", "jvm"),
    ),
    Setting(
        "heap",
        "whole",
        "whole: a local JVM's heap has its whole size from the start; grows: as the JVM sees fit, up to that size",
        ("whole", "grows"),
    ),
    Setting(
        "spark_settings",
        TUNED,
        "tuned: streamgauge also changes settings of Spark that make it faster; spark: only those without which "
        "nothing could be measured",
        (TUNED, "spark"),
    ),
    Setting(
        "state_store",
        TUNED,
        "tuned: RocksDB for distinct without a window, and RocksDB writes only changes; spark: Spark's default store, "
        "and RocksDB only for a process with keys",
        (TUNED, "spark"),
    ),
    Setting(
        "file_system",
        TUNED,
        "how a local Spark writes checkpoints; tuned: without checksums and without a process for each file; spark: as "
        "Spark does",
        (TUNED, "spark"),
    ),
    Setting(
        "python_workers",
        TUNED,
        "how Python workers run; tuned: over Unix sockets, with the garbage collector spared; spark: as Spark does",
        (TUNED, "spark"),
    ),
    Setting(
        "worker_start",
        "unpacked",
        "where Python workers import PySpark from; unpacked: the installed package; zip: Spark's archive, which takes "
        "seconds longer and changes the start only",
        ("unpacked", "zip"),
    ),
    Setting(
        "kafka_clients",
        TUNED,
        "tuned: Kafka's clients get settings that suit the job; kafka: Kafka's own defaults",
        (TUNED, "kafka"),
    ),
    Setting(
        "json_parser",
        "arrow",
        "what parses the messages of encoding=json over Kafka; arrow: Arrow in Python, thousands at once, for streams "
        "without texts, and from_json for all others and for unusual messages; from_json: Spark's function",
        ("arrow", "from_json"),
    ),
    Setting(
        "probes",
        "progress",
        "progress: keep the engine's own progress as extra series; on: also count the rows of each operator, which "
        "keeps Spark from moving conditions across operators; off: neither",
        ("progress", "on", "off"),
    ),
)

JVM_OPTIONS = {
    # Spark's planner calls thousands of methods per batch. Compiling them took 20 % of two processors for two minutes,
    # and made a fresh engine look slower. Loops over rows are compiled by loop counts, which this does not change.
    "late": (
        "-XX:Tier4InvocationThreshold=200000",
        "-XX:Tier4MinInvocationThreshold=50000",
        "-XX:Tier4CompileThreshold=500000",
        "-XX:Tier3DelayOn=0",
    ),
    "jvm": (),
}
"""JVM options for each value of the option `jit`."""

NEAR_LIMIT = NearLimit(
    full=0.93, over=0.98, keeping_rows=0.9, sure=0.82, fixed=0.15, drain_factor=1.1, drain_factor_keeping_rows=1.4,
    heap_share=1 / 8,
)  # fmt: skip
"""Measured on Spark:

- `full`, `over`: trials of windowed aggregations with 1.4 s between batches held at shares up to 0.94, and were
  undecided from 0.97.
- `keeping_rows`: trials of windowed joins held at shares up to 0.90, and most were undecided above.
- `sure`: a join was undecided at 0.74, and its limit was half as high again.
- `fixed`: batches of a windowed aggregation needed 0.77 of the time at 8.9 M/s, 0.91 at 11.4, 0.94 at 11.9, and 0.98
  at 12.5: 0.24 and 0.06 per M/s.
- `drain_factor_keeping_rows`: five searches of a windowed join drained 1.15, 1.30, 1.39, 1.60, and 1.67 times what they
  sustained.
- `heap_share`: state has two versions, and batches are copied. Spark ran out of memory at 43 %, in a packed join at
  6.4 M/s.
"""

CAPABILITIES = Capabilities(
    name="spark",
    summary="Spark Structured Streaming, micro-batch",
    nodes=node_names(KINDS),
    sink_modes=("append", "update"),
    transports=("memory", "kafka"),
    encodings=("compact", "json", "avro"),
    fetches=(KAFKA_FETCH, AVRO_FETCH),
    several_sinks=True,
    needs_java=True,
    settings=SETTINGS,
    location_settings=(WAREHOUSE,),
    batch_steps=BATCH_STEPS,
    near_limit=NEAR_LIMIT,
    profiles=PROFILES,
    sets_parallelism=True,
)


ROW_COUNT_SETTINGS = {"spark.sql.ui.retainedExecutions": "2000", "spark.sql.adaptive.enabled": "false"}
"""What row counts also need: they are read from executions that Spark keeps. It keeps a thousand, and three queries of
short batches forget the first of those within minutes. Counts are found by the nodes of a plan, which an adaptive plan
changes under way.
"""


TUNED_SETTINGS = {
    # Larger than Spark's 10 000: each batch crosses to Python and to the recorder as one piece.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
    # Without a limit in bytes beside the one in rows: Spark adds up a batch's size anew after every row.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "100000",
    "spark.sql.adaptive.enabled": "false",
    # Of code that Spark makes for a plan it keeps a hundred classes. Several queries in turn have more, and then
    # every batch has code made, and compiled by the JVM, anew.
    "spark.sql.codegen.cache.maxEntries": "2000",
}
"""Spark configuration that only makes it faster."""
LOCAL_CHECKPOINT = {
    # Hadoop's checksummed local files fork a chmod per file: 60 ms of every batch.
    FILE_MANAGER: _FILE_MANAGER,
    # Both are for disks and executors that fail. Here the checkpoint ends with the run, and no executor is lost.
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
}
RAW_FILES = {
    "spark.hadoop.fs.file.impl": _LOCAL_FILES,
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}


def defaults(
    partitions: int,
    local_checkpoint: bool,
    raw_files: bool = True,
    host: str = HOST,
    options: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Spark configuration that streamgauge sets unless the user sets it; every one stands in the result.

    `raw_files`: False for a job that may keep its state in RocksDB, which insists on Hadoop's checksummed local files.
    `host`: the address at which executors find Spark's driver. `options`: those of the engine; `spark_settings` and
    `file_system` among them leave settings to Spark.
    """
    settings = options or {}
    conf = {
        SHUFFLE_PARTITIONS: str(partitions),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Retained until the end of a trial, when they are read once.
        "spark.sql.streaming.numRecentProgressUpdates": "10000",
        "spark.driver.host": host,
        "spark.driver.bindAddress": host,
    }
    conf |= TUNED_SETTINGS if settings.get("spark_settings", TUNED) == TUNED else {}
    if local_checkpoint and settings.get("file_system", TUNED) == TUNED:
        conf |= LOCAL_CHECKPOINT | (RAW_FILES if raw_files else {})
    return conf


def effective_lowerings(nodes: Collection[Node], options: Mapping[str, str], packs: bool) -> dict[str, str]:
    """Operator name to its lowering: the chosen one, or packed where the job `packs` and both sides allow it.

    An operator for which neither holds is not in it.
    """
    packs = packs and options.get("watermark_delay", "auto") == "auto"
    # The reader packs a side whose rows then never become Spark's.
    packed = {
        node.name: "packed"
        for node in nodes
        if packs
        and isinstance(node, WindowJoin)
        and all(schema.plain_columns(side, node.keys) for side in (node.left, node.right))
    }
    return packed | chosen_lowerings(nodes, options)


def reads_blocks(transport: str, frontier: str) -> bool:
    """Whether both streams of a join can be read as packed blocks: from memory, up to one event time."""
    return (transport, frontier) == ("memory", "common")


def chosen_lowerings(nodes: Iterable[Node], options: Mapping[str, str]) -> dict[str, str]:
    """Operator name to the lowering that `options` choose for it; an operator that is left at `auto` is not in it."""
    plain = options.get("lowering") == "plain"
    by_profile = {node.name: PLAIN[type(node)] for node in nodes if plain and type(node) in PLAIN}
    named = {name.removeprefix(LOWERING): value for name, value in options.items() if name.startswith(LOWERING)}
    return by_profile | {name: value for name, value in named.items() if value != "auto"}


ROCKSDB = {f"{STATE_STORE}providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"}
TUNED_ROCKSDB = {
    # Each batch writes only changes; the number of keys is not used.
    f"{STATE_STORE}rocksdb.changelogCheckpointing.enabled": "true",
    f"{STATE_STORE}rocksdb.trackTotalNumberOfRows": "false",
}


UNCHECKED_OPERATIONS = {"spark.sql.streaming.unsupportedOperationCheck": "false"}
"""Spark refuses every sort of a stream, even within the partitions of a batch, which `distinct` needs."""


def gives_first_rows(node: Node) -> bool:
    """Whether a node gives the first row of every key, without a window."""
    return isinstance(node, Distinct) and node.window is None


def keeps_first_rows(flow: Flow) -> bool:
    """Whether a flow keeps the first row of every key without a window. It sorts the rows of each batch, so Spark's
    check of unsupported operations must be off.
    """
    return any(gives_first_rows(node) for node in graph.operators(flow))


def needs_rocksdb(flow: Flow, tuned: bool = True) -> bool:
    """Whether a flow keeps its state in RocksDB: keyed Python processes require it. If `tuned`, also for the first row
    of every key, where Spark's default store would copy all keys in every batch.
    """
    keyed = (isinstance(node, Process) and bool(node.keys) for node in graph.operators(flow))
    return any(keyed) or (tuned and keeps_first_rows(flow))


def with_rocksdb(conf: dict[str, str], tuned: bool = True) -> dict[str, str]:
    """Configuration for RocksDB state, which needs Hadoop's default local files; if not `tuned`, with its defaults."""
    retained = {name: value for name, value in conf.items() if value != _LOCAL_FILES}
    return retained | ROCKSDB | (TUNED_ROCKSDB if tuned else {})


def sends_all_columns(options: Mapping[str, str]) -> bool:
    """Whether events carry every declared column by these options, and not only those that the job reads."""
    return options.get("columns") == "all"


WINDOWED_INTERVAL = "1400 milliseconds"


def trigger(requested: str, windowed: bool, state_copied: bool = False) -> str:
    """The batch interval in Spark's format.

    Args:
        requested: the option's value.
        windowed: whether results wait for a window's end.
        state_copied: whether a batch touches the whole state, as Spark's stream-stream join does.

    Windows: after a delay, back-to-back batches recover slowly near the engine's limit, so a trend needs minutes. With
    an interval they recover soon and pay the fixed cost of a batch (a third of a second) less often. Results wait for
    the window's end anyway. With 1400 ms, a span of 30 s has the 20 batches that a verdict needs, and batches do not
    align with windows.
    Spark's stream-stream join scans its whole state in every batch, so fewer batches are better.
    """
    if requested != "auto":
        return requested
    if state_copied:
        return "2 seconds"
    return WINDOWED_INTERVAL if windowed else "0 seconds"


def value_rules(options: Mapping[str, str]) -> list[Rule]:
    """The rules of the given options that have no fixed choices."""
    interval = "[0-9]+ (millisecond|minute)s?|[0-9]+(\\.[0-9]{1,9})? seconds?"
    rule = "must be auto, or a number of milliseconds, seconds or minutes (Spark takes a fraction of seconds only)"
    intervals = {name: options[name] for name in ("trigger", "watermark_delay") if name in options}
    buckets = options.get("buckets", "8")
    limit = options.get("max_per_trigger", "none")
    are_buckets = re.fullmatch("[0-9]+", buckets) and 1 <= int(buckets) <= 4096
    return [
        *(
            Rule(
                value == "auto" or re.fullmatch(interval, value),
                f"option {name}", rule, value, f'--option {name}="1 second"',
            )
            for name, value in intervals.items()
        ),
        Rule(
            limit == "none" or re.fullmatch("[1-9][0-9]{0,17}", limit),
            "option max_per_trigger", "must be none, or a whole number of at least 1", limit,
            "--option max_per_trigger=400000",
        ),
        Rule(are_buckets, "option buckets", "must be a whole number from 1 to 4096", buckets, "--option buckets=8"),
    ]  # fmt: skip


def _heap_bytes(value: str) -> int:
    """`4g` in bytes; 0 if the format is invalid."""
    match = re.fullmatch(r"([0-9]+)([mg])", value)
    return int(match.group(1)) * {"m": 2**20, "g": 2**30}[match.group(2)] if match else 0


def _usual_heap() -> str:
    """The default of `SETTINGS`, or half of this machine's memory if that is less."""
    default = next(setting.default for setting in SETTINGS if setting.name == "driver_memory")
    usual = _heap_bytes(default)
    half = at_most_half(usual)
    return default if half == usual else f"{half // 2**20}m"


def heap_bytes(options: Mapping[str, str]) -> int:
    """The JVM's heap by these options or the default; 0 if the option is invalid."""
    return _heap_bytes(options.get("driver_memory", _usual_heap()))


def memory_rules(options: Mapping[str, str], queue_bytes: int, generators_bytes: int = 0) -> tuple[Rule, Rule]:
    """The heap has to fit into this machine's memory, by itself and beside the driver's queue.

    The suggested values leave `generators_bytes` to the generators.
    """
    heap, memory = options.get("driver_memory", _usual_heap()), memory_bytes()
    is_heap = "driver_memory" not in options or 2**28 <= _heap_bytes(heap) <= memory
    is_room = queue_bytes + _heap_bytes(heap) <= memory
    whole, half = f"this machine's memory ({memory / 2**30:.1f} GiB)", (memory - generators_bytes) // 2**21
    return (
        Rule(
            is_heap, "option driver_memory", f"must be from 256m to {whole}, with m or g",
            heap, f"--option driver_memory={_usual_heap()}",
        ),
        Rule(
            is_room or not is_heap, "option driver_memory", f"and --queue-memory must together fit into {whole}",
            f"{heap} and {queue_bytes / 2**30:.3g} GiB",
            f"--option driver_memory={half}m --queue-memory {half}MiB, or less",
        ),
    )  # fmt: skip


def split(options: dict[str, str], settings: Sequence[Setting] = SETTINGS) -> tuple[dict[str, str], dict[str, str]]:
    """(engine options with defaults, the user's Spark configuration)."""
    users = {name: value for name, value in options.items() if name.startswith("spark.")}
    own_options = {name: value for name, value in options.items() if name not in users}
    return with_defaults({"driver_memory": _usual_heap()} | own_options, settings), users
