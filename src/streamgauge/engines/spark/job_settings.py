"""What a job's options mean: Spark's configuration, each query's trigger, and the settings in force for the result."""

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import ClassVar

from streamgauge.core.plugin_options import TUNED, Setting
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import RunningAggregate, Source, UserJobNode, WindowAggregate, WindowJoin
from streamgauge.engines.spark import options_dstream, options_realtime
from streamgauge.engines.spark.cluster.master import executor_defaults
from streamgauge.engines.spark.io.spi import TransportAdapter
from streamgauge.engines.spark.launch import SparkJob
from streamgauge.engines.spark.lowering.queries import Query, queries
from streamgauge.engines.spark.lowering.windows import NO_DELAY, lowering_of
from streamgauge.engines.spark.options import (
    JVM_OPTIONS,
    LOWERING,
    ROW_COUNT_SETTINGS,
    SETTINGS,
    UNCHECKED_OPERATIONS,
    chosen_lowerings,
    defaults,
    effective_lowerings,
    keeps_first_rows,
    needs_rocksdb,
    reads_blocks,
    sends_all_columns,
    split,
    with_rocksdb,
)
from streamgauge.engines.spark.parallelism import SETTING, executor_cores, tasks_unless_set
from streamgauge.engines.spark.session.masters import HOST, is_local
from streamgauge.engines.spark.session.python_workers import UNCHANGED, VARIABLE
from streamgauge.engines.spark.watermark_and_interval import delay_of, interval_of

JARS = "spark.jars"
SHUFFLE = {"spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1"}
"""The longest time that a row waits in an exchange buffer; Spark's default is 50 ms."""


class JobSettings:
    """The settings of one job in micro-batch mode.

    `options` are the engine's, `users` the part of Spark's configuration that the user gave.
    """

    declared: tuple[Setting, ...] = SETTINGS
    adapters: ClassVar[Mapping[str, str]] = {"memory": "flight:FlightAdapter", "kafka": "kafka:KafkaAdapter"}
    """Transport to its adapter, as module of `io` and class."""
    in_order = False
    """Whether one task per operator gets all rows in event order."""
    packs = True
    """Whether joins can be packed; false over a broker, and with a free frontier."""
    structured = True
    """Whether Structured Streaming runs the job."""

    def __init__(self, job: SparkJob) -> None:
        self.job = job
        self.packs = self.packs and reads_blocks(job.edges.transport, job.edges.frontier)
        self.options, self.users = split(job.options, self.declared)
        adapter = resolve_name(f"streamgauge.engines.spark.io.{self.adapters[job.edges.transport]}")
        self.adapter: TransportAdapter = adapter(job.edges, self.options)

    @property
    def local(self) -> bool:
        """Whether Spark runs in this process's machine and JVM alone."""
        return is_local(self.job.master)

    @property
    def counts_rows(self) -> bool:
        """Whether the rows of operators are counted."""
        return self.options.get("probes") == "on"

    @property
    def user_job(self) -> UserJobNode | None:
        """The job's user function, if it has one."""
        return next((node for node in graph.operators(self.job.flow) if isinstance(node, UserJobNode)), None)

    @property
    def watermark_delay(self) -> str:
        """In Spark's format."""
        requested = self.options.get("watermark_delay", NO_DELAY)
        return delay_of(requested, self.job.edges.transport, len(self.job.edges.inputs), self.job.flow)

    def is_uneven(self, query: Query) -> bool:
        """Whether a batch of a query reads partitions or streams up to different event times."""
        sources = {node for sink in query.sinks for node in graph.walk(sink.input) if isinstance(node, Source)}
        return not self.adapter.reads_evenly and (len(self.job.edges.inputs) > 1 or len(sources) > 1)

    @property
    def lowerings(self) -> dict[str, str]:
        """Operator to its lowering, where it is not the one of every transport."""
        return effective_lowerings(list(graph.operators(self.job.flow)), self.options, self.packs)

    def columns(self, query: Query) -> dict[str, tuple[str, ...]]:
        """The columns of each stream that a query reads."""
        available = self.job.edges.columns
        needed = query.columns(self.job.flow, available)
        return {stream: available[stream] for stream in needed} if sends_all_columns(self.options) else needed

    def trigger(self, query: Query) -> str:
        """The interval of a query, in Spark's format."""
        return interval_of(query.sinks, self.options, self.packs)

    def trigger_arguments(self, query: Query) -> dict[str, str]:
        """Arguments of Spark's `trigger`; empty for its default, back-to-back batches."""
        interval = self.trigger(query)
        return {"processingTime": interval} if interval != "0 seconds" else {}

    def configuration(self) -> dict[str, str]:
        """Spark's configuration, the user's part included."""
        # Remote executors reach Spark's driver at the address of streamgauge's endpoints.
        host = HOST if self.local else self.job.edges.bind
        conf = executor_cores(self.job.master, self.job.parallelism, self.users)
        conf |= defaults(
            tasks_unless_set(self.job.parallelism, len(self.job.edges.inputs)),
            local_checkpoint=self.local,
            raw_files=self.user_job is None,
            host=host,
            options=self.options,
        )
        if not self.local and self.options.get("python_workers") == UNCHANGED:
            conf[f"spark.executorEnv.{VARIABLE}"] = UNCHANGED
        tuned_state = self.options.get("state_store", TUNED) == TUNED
        if needs_rocksdb(self.job.flow, tuned_state) or self._slides:
            conf = with_rocksdb(conf, tuned_state)
        conf |= UNCHECKED_OPERATIONS if keeps_first_rows(self.job.flow) and not self.in_order else {}
        conf |= ROW_COUNT_SETTINGS if self.counts_rows else {}
        conf["spark.driver.memory"] = self.options["driver_memory"]
        conf |= executor_defaults(self.job.master, self.users)
        conf |= self.adapter.configuration()
        conf |= self.users
        if self.job.jars:  # those of the user come beside them
            conf[JARS] = ",".join(filter(None, (*self.job.jars, self.users.get(JARS))))
        return conf

    def effective_settings(self) -> dict[str, str]:
        """The options in force. Values chosen by streamgauge are marked `(auto)`."""
        settings = {name: value for name, value in self.options.items() if not name.startswith(LOWERING)}
        settings.pop("lowering", None)  # each operator's own follows
        if not (needs_rocksdb(self.job.flow) or self._slides):
            settings.pop("state_store", None)
        if self.local:
            settings["driver_memory"] += ", full size from the start" if settings.get("heap") != "grows" else ""
            settings["jit"] = " ".join((settings["jit"], *JVM_OPTIONS[settings["jit"]]))
        else:
            settings["jit"] = "jvm (remote executors are started with their own options)"
        settings = self.adapter.effective_settings(settings)
        if "trigger" in self.options:
            settings["trigger"] = _with_choice(self._triggers(), self.options["trigger"])
        if "watermark_delay" in self.options:
            settings["watermark_delay"] = _with_choice(self.watermark_delay, self.options["watermark_delay"])
        operators, lowerings = list(graph.operators(self.job.flow)), self.lowerings
        chosen = chosen_lowerings(operators, self.options)
        for node in operators:
            if isinstance(node, WindowAggregate | WindowJoin):
                used = lowering_of(node, lowerings, self.structured)
                settings[LOWERING + node.name] = _with_choice(used, chosen.get(node.name, "auto"))
        return settings

    @property
    def _slides(self) -> bool:
        """Whether a window aggregate is a keyed process, whose state Spark keeps in RocksDB only."""
        lowerings = self.lowerings
        windows = (node for node in graph.operators(self.job.flow) if isinstance(node, WindowAggregate))
        return any(lowering_of(node, lowerings, self.structured) == "sliding" for node in windows)

    def _triggers(self) -> str:
        """The interval in force; one per query if they differ."""
        intervals = {query.name: self.trigger(query) for query in queries(self.job.flow)}
        several = len(set(intervals.values())) > 1
        return "; ".join(dict.fromkeys(f"{name}: {at}" if several else at for name, at in intervals.items()))


class RealTimeSettings(JobSettings):
    """The settings of one job in real-time mode."""

    declared = options_realtime.SETTINGS
    adapters: ClassVar[Mapping[str, str]] = {"kafka": "kafka:RealTimeKafkaAdapter"}
    in_order = True

    def configuration(self) -> dict[str, str]:
        conf = super().configuration() | SHUFFLE | {SETTING: options_realtime.INSTANCES}
        stateful = any(isinstance(node, RunningAggregate) for node in graph.operators(self.job.flow))
        return {**(with_rocksdb(conf) if stateful else conf), **self.users}

    def trigger(self, query: Query) -> str:
        """The interval of the checkpoint of positions."""
        return options_realtime.trigger(self.job.flow, self.options["trigger"])

    def trigger_arguments(self, query: Query) -> dict[str, str]:
        return {"realTime": self.trigger(query)}


class DStreamSettings(JobSettings):
    """The settings of one job with DStreams."""

    declared = options_dstream.SETTINGS
    adapters: ClassVar[Mapping[str, str]] = {
        "memory": "flight:FlightAdapter",
        options_dstream.RECEIVERS: "flight:FlightAdapter",  # only the input comes from sockets
    }
    packs = False
    structured = False

    def configuration(self) -> dict[str, str]:
        return {
            **super().configuration(),
            **options_dstream.receiving(self.options, self.job.edges.transport),
            **self.users,
        }

    def effective_settings(self) -> dict[str, str]:
        """The settings in force, without those that do not apply to this transport."""
        settings = super().effective_settings()
        if self.job.edges.transport == options_dstream.RECEIVERS:
            count = len(self.job.edges.inputs)
            return {**settings, "receiver": f"Spark's own for sockets, {count}, blocks in memory and on disk, one copy"}
        return {
            name: value
            for name, value in settings.items()
            if name not in (options_dstream.BLOCK, options_dstream.PRESSURE)
        } | {"receiver": "queue"}


SETTINGS_BY_MODE = {"micro-batch": JobSettings, "real-time": RealTimeSettings, "dstream": DStreamSettings}
"""By the names of execution modes."""


def _with_choice(used: str, requested: str) -> str:
    return f"{used} (auto)" if requested == "auto" else used
