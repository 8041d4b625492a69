"""The SUT process: a Spark session and its streaming queries, on a lifeline to the driver."""

from __future__ import annotations

import contextlib
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle

from streamgauge.core.batch_progress import BatchProgress
from streamgauge.core.errors import EngineError, InputError, MachineError, is_full
from streamgauge.core.lineage_columns import LINEAGE
from streamgauge.core.operator_rows import OperatorCounts
from streamgauge.core.plugin_options import CLIENT_FILE, TUNED, Setting
from streamgauge.dataflow import graph
from streamgauge.dataflow.lineage import added
from streamgauge.dataflow.nodes import Flow, Source, UserJobNode, WindowAggregate, WindowJoin
from streamgauge.engines.spark.batch_interval import interval_of
from streamgauge.engines.spark.error_message import error_message
from streamgauge.engines.spark.io.event_batching import packed_schema, row_schema, unpack
from streamgauge.engines.spark.io.flight_source import named
from streamgauge.engines.spark.lowering.arrow_blocks import PACKED, Packing
from streamgauge.engines.spark.lowering.dataframe import Lowering, lowering_of
from streamgauge.engines.spark.lowering.queries import Query, queries
from streamgauge.engines.spark.observe import query_progress
from streamgauge.engines.spark.observe.row_counts import RowCounters
from streamgauge.engines.spark.options import (
    JVM_OPTIONS,
    LOOPBACK,
    LOWERING,
    LOWERINGS,
    PROBE_SETTINGS,
    REDACTION,
    SETTINGS,
    UNCHECKED_OPERATIONS,
    chosen_lowerings,
    defaults,
    keeps_first_rows,
    needs_rocksdb,
    sends_all_columns,
    split,
    with_rocksdb,
)
from streamgauge.engines.spark.parallelism import unless_set
from streamgauge.engines.spark.session.environment import require_loadable_state
from streamgauge.engines.spark.session.python_workers import UNCHANGED, VARIABLE
from streamgauge.engines.spark.session.session import (
    LocalSession,
    end_session,
    inherited_settings,
    jvm_ended,
    open_checked,
)
from streamgauge.engines.spark.user_job.pyspark_job import PySparkJob, load
from streamgauge.engines.spark.user_job.user_function import UP
from streamgauge.engines.spark.watermark import NONE, delay_of
from streamgauge.engines.spi import Edges
from streamgauge.system.child_processes import announce, serve

if TYPE_CHECKING:
    from streamgauge.engines.spark.io.kafka import ClientSettings

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
Write = Callable[[Any, int], None]
"""Writes a batch's frame, given its number."""
BATCH_UNDER_WAY = ("Processing new data", "No new data but cleaning up state")
"""A query's status messages during a batch. It is also active while it looks for data."""


@dataclass(frozen=True)
class SparkJob:
    """The driver's request, passed by file."""

    flow: Flow
    edges: Edges
    options: dict[str, str]
    master: str
    folder: str
    checkpoint: str
    jars: tuple[str, ...] = ()


class Sut:
    """One session; sinks share a query where possible."""

    settings: tuple[Setting, ...] = SETTINGS
    in_order = False
    """Whether one task per operator gets all rows in event order."""

    def __init__(self, job: SparkJob) -> None:
        self._job = job
        self._own_options, self._users = split(job.options, self.settings)
        self._session: Any = None
        self._queries: dict[Query, Any] = {}
        self._native: PySparkJob | None = None
        self._probes: RowCounters | None = None
        self._counting_ended = ""

    def start(self) -> dict[str, str]:
        """Starts session and queries. Returns the settings in force that are not Spark's defaults."""
        conf = self._configuration()
        try:
            self._native = load(self._user_job) if self._user_job is not None else None
            announce("starting Spark's JVM")
            folder, jvm_options = Path(self._job.folder), JVM_OPTIONS[self._own_options["jit"]]
            local = LocalSession(
                whole_heap=self._own_options.get("heap") != "grows",
                unix_sockets=self._own_options.get("python_workers") != UNCHANGED,
            )
            self._session = open_checked(self._job.master, conf, self._users, folder, jvm_options, local)
            announce(UP)
            self._probes = RowCounters(self._session, added(self._job.flow)) if self._probed else None
            for query in queries(self._job.flow):
                self._queries[query] = self._run(self._session, query)
                if self._probes is not None:
                    self._probes.started(query.name, self._queries[query])
        except (InputError, MachineError):
            raise
        except Exception as error:
            raise EngineError(error_message(str(error))) from None
        return {**self._in_force(), **inherited_settings(self._session), **conf}

    def status(self) -> dict[str, Any]:
        """Whether all queries are alive and which are busy with a batch; else the reason of the first failure."""
        for query, handle in self._queries.items():
            error = handle.exception()
            if error is not None or not handle.isActive:
                reason = self._reason(str(error)) if error is not None else ""
                sinks = f"the query of {', '.join(sink.name for sink in query.sinks)}: "
                reason = (sinks if len(self._queries) > 1 else "") + reason
                return {"alive": False, "reason": reason, "disk_full": error is not None and is_full(error)}
        self._counting(RowCounters.keep_up)
        return {"alive": True, "busy": [query.name for query, handle in self._queries.items() if _in_batch(handle)]}

    def batch_progress(self) -> list[BatchProgress]:
        reports = (json.loads(one.json) for handle in self._queries.values() for one in handle.recentProgress)
        return [query_progress.batch_progress(each) for each in reports]

    def operator_row_counts(self) -> dict[str, Any]:
        """The counts since the last call, as `OperatorCounts`."""
        self._counting(RowCounters.read)
        counts = self._probes.take() if self._probes is not None else []
        return asdict(OperatorCounts(counts, self._counting_ended))

    def _configuration(self) -> dict[str, str]:
        local = self._job.master.startswith("local")
        raw_files = self._user_job is None
        # Remote executors reach Spark's driver at the address of streamgauge's endpoints.
        host = LOOPBACK if local else self._job.edges.bind
        partitions = unless_set(len(self._job.edges.inputs))
        conf = defaults(partitions, local_checkpoint=local, raw_files=raw_files, host=host, options=self._own_options)
        if not local and self._own_options.get("python_workers") == UNCHANGED:
            conf[f"spark.executorEnv.{VARIABLE}"] = UNCHANGED
        if needs_rocksdb(self._job.flow, self._tuned_state):
            conf = with_rocksdb(conf, self._tuned_state)
        conf |= UNCHECKED_OPERATIONS if keeps_first_rows(self._job.flow) and not self.in_order else {}
        conf |= PROBE_SETTINGS if self._probed else {}
        conf["spark.driver.memory"] = self._own_options["driver_memory"]
        conf |= REDACTION if CLIENT_FILE in self._job.edges.transport_options else {}
        if self._job.jars:
            conf["spark.jars"] = ",".join(self._job.jars)
        return {**conf, **self._users}

    @property
    def _probed(self) -> bool:
        return self._own_options.get("probes") == "on"

    @property
    def _tuned_state(self) -> bool:
        return self._own_options.get("state_store", TUNED) == TUNED

    @property
    def _user_job(self) -> UserJobNode | None:
        return next((node for node in graph.operators(self._job.flow) if isinstance(node, UserJobNode)), None)

    def _reason(self, text: str) -> str:
        """Why the query ended: the user's lines if a user job raised, else Spark's reason."""
        trace = self._native.trace_in(text) if self._native is not None else None
        return trace or error_message(text)

    def _run(self, session: Any, query: Query) -> Any:
        if not self._on_kafka:
            session.dataSource.register(named(format_of(query.name)))
        read = self._reading(session, query)
        if self._native is not None:
            frame = self._native.streaming(
                session, [read(each) for each in self._native.job.inputs], Path(self._job.folder)
            )
        else:
            probe = {"probe": self._probes} if self._probes is not None else {}
            buckets = int(self._own_options.get("buckets", 1))
            lowering = Lowering(read, read, self._choices, buckets, self._delay, in_order=self.in_order, **probe)
            frame = lowering.output(query)
        require_loadable_state(session.conf.get(STATE_STORE), Path(self._job.folder))
        with self._native.refusals() if self._native is not None else contextlib.nullcontext():
            return self._start(frame, query)

    @property
    def _on_kafka(self) -> bool:
        return self._job.edges.transport == "kafka"

    def _start(self, frame: Any, query: Query) -> Any:
        writer = frame.writeStream.queryName(query.name)
        writer = writer.option("checkpointLocation", f"{self._job.checkpoint}/{query.name}")
        if (interval := self._trigger(query)) != "0 seconds":
            writer = writer.trigger(processingTime=interval)
        if self._on_kafka:
            from streamgauge.engines.spark.io.kafka import Writer

            checkpoint = Path(self._job.checkpoint) / query.name
            sinks = [sink.name for sink in query.sinks]
            kafka = Writer(self._job.edges, query.name, sinks, checkpoint, self._kafka_clients.writing)
            return writer.outputMode(query.mode).foreachBatch(partial(self._write_batch, query, kafka.write)).start()
        if query.mode == "update":
            return (
                writer.outputMode("update").foreachBatch(partial(self._write_batch, query, self._sender(query))).start()
            )
        return writer.outputMode("append").format(format_of(query.name)).options(**self._output(query)).start()

    def _trigger(self, query: Query) -> str:
        return interval_of(query.sinks, self._own_options)

    @property
    def _delay(self) -> str:
        requested = self._own_options.get("watermark_delay", NONE)
        return delay_of(requested, self._job.edges.transport, len(self._job.edges.inputs))

    @property
    def _choices(self) -> dict[str, str]:
        return chosen_lowerings(graph.operators(self._job.flow), self._own_options)

    def _in_force(self) -> dict[str, str]:
        """The options in force. Values chosen by streamgauge are marked `(auto)`."""
        told_below = ["lowering", "nullable" if self._on_kafka else "kafka_clients"]
        told_below += [] if needs_rocksdb(self._job.flow) else ["state_store"]
        settings = {name: value for name, value in self._own_options.items() if not name.startswith(LOWERING)}
        settings = {name: value for name, value in settings.items() if name not in told_below}
        if self._job.master.startswith("local"):
            settings["driver_memory"] += ", full size from the start" if settings.get("heap") != "grows" else ""
            settings["jit"] = " ".join((settings["jit"], *JVM_OPTIONS[settings["jit"]]))
        else:
            settings["jit"] = "jvm (remote executors are started with their own options)"
        if self._on_kafka:
            settings |= self._edges_in_force()
        if "trigger" in self._own_options:
            settings["trigger"] = _with_choice(self._triggers(), self._own_options["trigger"])
        if "watermark_delay" in self._own_options:
            settings["watermark_delay"] = _with_choice(self._delay, self._own_options["watermark_delay"])
        for node in graph.operators(self._job.flow):
            if isinstance(node, WindowAggregate | WindowJoin):
                requested = self._choices.get(node.name, LOWERINGS[type(node)][0])
                settings[LOWERING + node.name] = _with_choice(lowering_of(node, self._choices), requested)
        return settings

    def _edges_in_force(self) -> dict[str, str]:
        from streamgauge.engines.spark.io.kafka import in_force

        return in_force(self._kafka_clients)

    @property
    def _kafka_clients(self) -> ClientSettings:
        from streamgauge.engines.spark.io.kafka import CLIENTS

        return CLIENTS[self._own_options.get("kafka_clients", TUNED)]

    def _triggers(self) -> str:
        """The interval in force; one per query if they differ."""
        intervals = {query.name: self._trigger(query) for query in self._queries}
        if len(set(intervals.values())) == 1:
            return next(iter(intervals.values()))
        return "; ".join(f"{name}: {interval}" for name, interval in intervals.items())

    def _reading(self, session: Any, query: Query, extra_options: Mapping[str, str] = {}) -> Callable[..., Any]:
        """A function that reads a source for a query. Each call is a new reader, numbered per stream."""
        numbers: dict[str, count[int]] = defaultdict(count)
        column_names = query.columns(self._job.flow, self._job.edges.columns)
        if sends_all_columns(self._own_options):
            column_names = {stream: self._job.edges.columns[stream] for stream in column_names}

        def read(source: Source, packing: Packing | None = None) -> Any:
            who = {"query": query.name, "reader": str(next(numbers[source.name])), **extra_options}
            return self._read(session, source, column_names[source.name], who, packing)

        return read

    def _read(
        self, session: Any, source: Source, column_names: tuple[str, ...], who: dict[str, str], packing: Packing | None
    ) -> Any:
        """A source's streaming frame: the needed columns, or packed blocks of them."""
        if self._on_kafka:
            from streamgauge.engines.spark.io.kafka import read

            return read(session, source, column_names, self._job.edges, self._kafka_clients.reading)
        return self._from_queue(session.readStream, source, column_names, who, packing)

    def _from_queue(
        self, reader: Any, source: Source, column_names: tuple[str, ...], who: dict[str, str], packing: Packing | None
    ) -> Any:
        """The frame of a Spark reader (streaming or batch) on the queue."""
        from pyspark.sql.types import _parse_datatype_string

        edges = self._job.edges
        types = {**source.schema.types(), **dict.fromkeys(LINEAGE, "bigint")}
        columns = {name: _parse_datatype_string(types[name]) for name in column_names}
        all_nullable = self._own_options.get("nullable") == "all"
        nullable = [*columns] if all_nullable else [field.name for field in source.schema.fields if field.nullable]
        options = {
            "stream": source.name,
            "locations": json.dumps([edge.location for edge in edges.inputs]),
            "token": edges.inputs[0].token,
            "frontier": edges.frontier,
            "columns": json.dumps(column_names),
            "nullable": json.dumps(nullable),
            **who,
        }
        configured = reader.format(format_of(who["query"])).options(**options)
        if packing is not None:
            return configured.schema(PACKED).option("packing", json.dumps(asdict(packing))).load()
        if self._own_options["source"] == "rows":
            return configured.schema(row_schema(columns, nullable)).load()
        bundles = configured.schema(packed_schema(columns, nullable)).option("bundled", "yes").load()
        return unpack(bundles, self._probes.column(source.name)) if self._probes is not None else unpack(bundles)

    def _output(self, query: Query) -> dict[str, str]:
        edge, sinks = self._job.edges.output, json.dumps([sink.name for sink in query.sinks])
        return {"location": edge.location, "token": edge.token, "query": query.name, "sinks": sinks}

    def _sender(self, query: Query) -> Write:
        """A function that sends a batch of updates to the recorder."""

        def send(frame: Any, batch: int) -> None:
            options = {**self._output(query), "batch": str(batch)}
            frame.write.format(format_of(query.name)).options(**options).mode("append").save()

        return send

    def _write_batch(self, query: Query, write: Write, frame: Any, batch: int) -> None:
        write(frame, batch)
        if query in self._queries:
            self._counting(RowCounters.count_in, query.name, self._queries[query], batch)

    def _counting(self, count: Callable[..., None], *arguments: Any) -> None:
        """Calls a method of the probes. An error ends the counting, but neither the query nor its status."""
        if self._probes is None or self._counting_ended:
            return
        try:
            count(self._probes, *arguments)
        except Exception as error:
            self._counting_ended = error_message(str(error))
            print(f"streamgauge: stopped counting rows of operators: {error}", file=sys.stderr, flush=True)


def checked_jvm(status: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Calls `status`. Raises EngineError if the JVM has ended, because the call's own error would not say so."""
    try:
        if (reply := status())["alive"]:
            return reply
    except Exception:
        if ended := jvm_ended():
            raise EngineError(ended) from None
        raise
    if ended := jvm_ended():
        raise EngineError(ended)
    return reply


def format_of(query: str) -> str:
    """The name of a query's data source."""
    return f"streamgauge_{query}"


def _in_batch(handle: Any) -> bool:
    """Whether a batch is in progress. Spark shows it only in a status message."""
    query_status = handle.status
    return query_status["isTriggerActive"] and query_status["message"].startswith(BATCH_UNDER_WAY)


def _with_choice(used: str, requested: str) -> str:
    return f"{used} (auto)" if requested == "auto" else used


def run(kind: type[Sut]) -> None:
    """Serves the job in the file named on the command line, until the driver ends."""
    path = Path(sys.argv[1])
    sut = kind(cloudpickle.loads(path.read_bytes()))
    serve(
        {
            "start": sut.start,
            "status": partial(checked_jvm, sut.status),
            "batch_progress": lambda: [asdict(one) for one in sut.batch_progress()],
            "operator_row_counts": sut.operator_row_counts,
        },
        on_orphaned=end_session,
        scratch=path.parent,
    )


if __name__ == "__main__":
    run(Sut)
