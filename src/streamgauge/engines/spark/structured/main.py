"""The SUT: a plain Python process with a Spark session and its streaming queries, on a lifeline to the runner."""

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

from streamgauge.core.errors import EngineError, InputError, MachineError
from streamgauge.core.operator_rows import OperatorCounts
from streamgauge.core.options import Setting
from streamgauge.dataflow import graph
from streamgauge.dataflow.lineage import added
from streamgauge.dataflow.nodes import Flow, NativeJob, Source, WindowAggregate, WindowJoin
from streamgauge.engines.spark.batch_interval import interval_of
from streamgauge.engines.spark.error_message import error_message
from streamgauge.engines.spark.io.event_batching import packed_schema, row_schema, unpack
from streamgauge.engines.spark.io.flight_source import named
from streamgauge.engines.spark.lowering.arrow_blocks import PACKED, Packing
from streamgauge.engines.spark.lowering.dataframe import Lowering, lowering_of
from streamgauge.engines.spark.lowering.queries import Query, queries
from streamgauge.engines.spark.observe.row_counts import RowCounters
from streamgauge.engines.spark.options import (
    JVM_OPTIONS,
    LOOPBACK,
    LOWERING,
    LOWERINGS,
    PROBED,
    REDACTED,
    SETTINGS,
    UNCHECKED,
    chosen_lowerings,
    defaults,
    keeps_first_rows,
    needs_rocksdb,
    split,
    with_rocksdb,
)
from streamgauge.engines.spark.parallelism import unless_set
from streamgauge.engines.spark.session.environment import require_loadable_state
from streamgauge.engines.spark.session.python_workers import UNCHANGED, VARIABLE
from streamgauge.engines.spark.session.session import (
    LocalSession,
    end_session,
    from_the_environment,
    jvm_ended,
    open_checked,
)
from streamgauge.engines.spark.user_job.pyspark_job import PySparkJob, load
from streamgauge.engines.spark.user_job.user_function import UP
from streamgauge.engines.spark.watermark import NONE, delay_of
from streamgauge.engines.spi import TUNED, Edges
from streamgauge.system.child_processes import announce, serve

if TYPE_CHECKING:
    from streamgauge.engines.spark.io.kafka import ClientSettings

STATE_STORE = "spark.sql.streaming.stateStore.providerClass"
Write = Callable[[Any, int], None]
"""Writes a batch's frame, given its number."""
BATCH_UNDER_WAY = ("Processing new data", "No new data but cleaning up state")
"""What a query's status says in a batch; it is active while it looks for data, too."""


@dataclass(frozen=True)
class SparkJob:
    """What the runner hands over, by file."""

    flow: Flow
    edges: Edges
    options: dict[str, str]
    master: str
    folder: str
    checkpoint: str
    jars: tuple[str, ...] = ()


class Sut:
    """One session; one query for all sinks that can share one."""

    settings: tuple[Setting, ...] = SETTINGS
    in_order = False
    """Whether rows come through one task after the other, in the order of events."""

    def __init__(self, job: SparkJob) -> None:
        self._job = job
        self._own_options, self._users = split(job.options, self.settings)
        self._session: Any = None
        self._queries: dict[Query, Any] = {}
        self._native: PySparkJob | None = None
        self._probes: RowCounters | None = None
        self._counting_ended = ""

    def start(self) -> dict[str, str]:
        """Start session and queries; returns the settings in force that are not Spark's defaults."""
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
        return {**self._in_force(), **from_the_environment(self._session), **conf}

    def status(self) -> dict[str, Any]:
        """Alive where every query is, with those that work on a batch; else the reason of the first that is not, named
        by its sinks.
        """
        for query, running in self._queries.items():
            error = running.exception()
            if error is not None or not running.isActive:
                reason = self._reason(str(error)) if error is not None else ""
                sinks = f"the query of {', '.join(sink.name for sink in query.sinks)}: "
                return {"alive": False, "reason": (sinks if len(self._queries) > 1 else "") + reason}
        self._counting(RowCounters.keep_up)
        return {"alive": True, "busy": [query.name for query, running in self._queries.items() if _works(running)]}

    def batch_progress(self) -> list[dict[str, Any]]:
        return [json.loads(one.json) for running in self._queries.values() for one in running.recentProgress]

    def operator_row_counts(self) -> dict[str, Any]:
        """What was counted since it was last asked for, as `OperatorCounts`."""
        self._counting(RowCounters.read)
        taken = self._probes.taken() if self._probes is not None else []
        return asdict(OperatorCounts(taken, self._counting_ended))

    def _configuration(self) -> dict[str, str]:
        local = self._job.master.startswith("local")
        raw_files = self._user_job is None
        # Executors elsewhere find Spark's driver where they find ours.
        host = LOOPBACK if local else self._job.edges.bind
        partitions = unless_set(len(self._job.edges.inputs))
        conf = defaults(partitions, local_checkpoint=local, raw_files=raw_files, host=host, options=self._own_options)
        if not local and self._own_options.get("python_workers") == UNCHANGED:
            conf[f"spark.executorEnv.{VARIABLE}"] = UNCHANGED
        if needs_rocksdb(self._job.flow):
            conf = with_rocksdb(conf)
        conf |= UNCHECKED if keeps_first_rows(self._job.flow) and not self.in_order else {}
        conf |= PROBED if self._probed else {}
        conf["spark.driver.memory"] = self._own_options["driver_memory"]
        conf |= REDACTED if "client" in self._job.edges.transport_options else {}
        if self._job.jars:
            conf["spark.jars"] = ",".join(self._job.jars)
        return {**conf, **self._users}

    @property
    def _probed(self) -> bool:
        return self._own_options.get("probes") == "on"

    @property
    def _user_job(self) -> NativeJob | None:
        return next((node for node in graph.operators(self._job.flow) if isinstance(node, NativeJob)), None)

    def _reason(self, text: str) -> str:
        """Why the query ended: the user's own lines where an own job raised, else the engine's own words."""
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
        """Our settings as what really runs; where we were left the choice, that stands beside it."""
        told_below = ("lowering", *(() if self._on_kafka else ("kafka_clients",)))
        found = {name: value for name, value in self._own_options.items() if not name.startswith(LOWERING)}
        found = {name: value for name, value in found.items() if name not in told_below}
        if self._job.master.startswith("local"):
            found["driver_memory"] += ", all of it from the start" if found.get("heap") != "grows" else ""
            found["jit"] = " ".join((found["jit"], *JVM_OPTIONS[found["jit"]]))
        else:
            found["jit"] = "jvm (executors elsewhere are started with options of their own)"
        if self._on_kafka:
            found |= self._edges_in_force()
        if "trigger" in self._own_options:
            found["trigger"] = _with_choice(self._triggers(), self._own_options["trigger"])
        if "watermark_delay" in self._own_options:
            found["watermark_delay"] = _with_choice(self._delay, self._own_options["watermark_delay"])
        for node in graph.operators(self._job.flow):
            if isinstance(node, WindowAggregate | WindowJoin):
                requested = self._choices.get(node.name, LOWERINGS[type(node)][0])
                found[LOWERING + node.name] = _with_choice(lowering_of(node, self._choices), requested)
        return found

    def _edges_in_force(self) -> dict[str, str]:
        from streamgauge.engines.spark.io.kafka import in_force

        return in_force(self._kafka_clients)

    @property
    def _kafka_clients(self) -> ClientSettings:
        from streamgauge.engines.spark.io.kafka import CLIENTS

        return CLIENTS[self._own_options.get("kafka_clients", TUNED)]

    def _triggers(self) -> str:
        """The interval in force; of several queries with different ones, each one's."""
        intervals = {query.name: self._trigger(query) for query in self._queries}
        if len(set(intervals.values())) == 1:
            return next(iter(intervals.values()))
        return "; ".join(f"{name}: {interval}" for name, interval in intervals.items())

    def _reading(self, session: Any, query: Query, more: Mapping[str, str] = {}) -> Callable[..., Any]:
        """What reads a source for a query, with more options; each call is a reader of its own, numbered stream by
        stream.
        """
        numbers: dict[str, count[int]] = defaultdict(count)
        given = query.columns(self._job.flow, self._job.edges.columns)

        def read(source: Source, packing: Packing | None = None) -> Any:
            who = {"query": query.name, "reader": str(next(numbers[source.name])), **more}
            return self._read(session, source, given[source.name], who, packing)

        return read

    def _read(
        self, session: Any, source: Source, given: tuple[str, ...], who: dict[str, str], packing: Packing | None
    ) -> Any:
        """A source's streaming frame: the given columns, or packed blocks of them."""
        if self._on_kafka:
            from streamgauge.engines.spark.io.kafka import read

            return read(session, source, given, self._job.edges, self._kafka_clients.reading)
        return self._from_queue(session.readStream, source, given, who, packing)

    def _from_queue(
        self, reader: Any, source: Source, given: tuple[str, ...], who: dict[str, str], packing: Packing | None
    ) -> Any:
        """What a reader of Spark's, of a stream or of a batch, makes of the queue."""
        from pyspark.sql.types import _parse_datatype_string

        edges = self._job.edges
        types = {**source.schema.types(), **dict.fromkeys(("event_time", "ingest_time", "event_id"), "bigint")}
        columns = {name: _parse_datatype_string(types[name]) for name in given}
        nullable = [field.name for field in source.schema.fields if field.nullable]
        options = {
            "stream": source.name,
            "locations": json.dumps([edge.location for edge in edges.inputs]),
            "token": edges.inputs[0].token,
            "frontier": edges.frontier,
            "columns": json.dumps(given),
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
        """What sends a batch of updates to the recorder."""

        def send(frame: Any, batch: int) -> None:
            options = {**self._output(query), "batch": str(batch)}
            frame.write.format(format_of(query.name)).options(**options).mode("append").save()

        return send

    def _write_batch(self, query: Query, write: Write, frame: Any, batch: int) -> None:
        write(frame, batch)
        if query in self._queries:
            self._counting(RowCounters.count_in, query.name, self._queries[query], batch)

    def _counting(self, count: Callable[..., None], *what: Any) -> None:
        """Lets the probes count. One that fails ends the counting, and neither the query nor what is said of it; what
        was counted before is kept.
        """
        if self._probes is None or self._counting_ended:
            return
        try:
            count(self._probes, *what)
        except Exception as error:
            self._counting_ended = error_message(str(error))
            print(f"streamgauge: the rows of operators are counted no more: {error}", file=sys.stderr, flush=True)


def of_the_jvm(status: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `status` says; EngineError where the JVM has ended: what became of a call to it says nothing of that."""
    try:
        if (said := status())["alive"]:
            return said
    except Exception:
        if ended := jvm_ended():
            raise EngineError(ended) from None
        raise
    if ended := jvm_ended():
        raise EngineError(ended)
    return said


def format_of(query: str) -> str:
    """What Spark calls the edges of a query."""
    return f"streamgauge_{query}"


def _works(running: Any) -> bool:
    """Whether a batch is under way, with data or to close windows; Spark has no other sign of it than its words."""
    said = running.status
    return said["isTriggerActive"] and said["message"].startswith(BATCH_UNDER_WAY)


def _with_choice(used: str, requested: str) -> str:
    return f"{used} (auto)" if requested == "auto" else used


def run(kind: type[Sut]) -> None:
    """Serves the job of the file that is named on the command line, until the runner ends."""
    path = Path(sys.argv[1])
    sut = kind(cloudpickle.loads(path.read_bytes()))
    serve(
        {
            "start": sut.start,
            "status": partial(of_the_jvm, sut.status),
            "batch_progress": sut.batch_progress,
            "operator_row_counts": sut.operator_row_counts,
        },
        on_orphaned=end_session,
        scratch=path.parent,
    )


if __name__ == "__main__":
    run(Sut)
