"""The SUT: a plain Python process with a Spark session and one streaming query, on a lifeline to the runner."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle

from streamgauge.engines.seam import Edges
from streamgauge.engines.spark.blocks import PACKED, Packing
from streamgauge.engines.spark.bundles import bundle_schema, row_schema, unbundled
from streamgauge.engines.spark.lowering import Lowering
from streamgauge.engines.spark.native import Native, load
from streamgauge.engines.spark.process import needs_state
from streamgauge.engines.spark.session import open_session
from streamgauge.engines.spark.settings import defaults, split, trigger, with_python_state
from streamgauge.engines.spark.source import FORMAT, StreamgaugeSource
from streamgauge.errors import EngineError, InputError
from streamgauge.flow import schema
from streamgauge.flow.nodes import Flow, NativeJob, Node, Source, WindowAggregate, WindowJoin
from streamgauge.system.children import serve

QUERY = "q"


@dataclass(frozen=True)
class SparkJob:
    """What the runner hands over, by file."""

    flow: Flow
    edges: Edges
    options: dict[str, str]
    master: str
    folder: str
    checkpoint: str


class Sut:
    """One session, one query."""

    def __init__(self, job: SparkJob) -> None:
        self._job = job
        self._ours, self._users = split(job.options)
        windowed = any(isinstance(node, WindowAggregate | WindowJoin) for node in schema.walk(job.flow.sink.input))
        self._ours["trigger"] = trigger(self._ours["trigger"], windowed)
        self._session: Any = None
        self._query: Any = None
        self._native: Native | None = None

    def start(self) -> dict[str, str]:
        """Start session and query; returns the settings in force that are not Spark's defaults."""
        conf = self._configuration()
        try:
            self._native = load(self._asked) if isinstance(self._asked, NativeJob) else None
            self._session = open_session(self._job.master, conf, Path(self._job.folder))
            self._session.dataSource.register(StreamgaugeSource)
            self._query = self._run(self._session)
        except InputError:
            raise
        except Exception as error:
            raise EngineError(own_reason(str(error))) from None
        return {**self._ours, **conf}

    def status(self) -> dict[str, Any]:
        error = self._query.exception()
        reason = self._reason(str(error)) if error is not None else ""
        return {"alive": bool(self._query.isActive) and error is None, "reason": reason}

    def evidence(self) -> list[dict[str, Any]]:
        return [json.loads(progress.json) for progress in self._query.recentProgress]

    def stop(self) -> None:
        with contextlib.suppress(Exception):
            self._query.stop()
        with contextlib.suppress(Exception):
            self._session.stop()

    def _configuration(self) -> dict[str, str]:
        local = self._job.master.startswith("local")
        raw_files = not isinstance(self._asked, NativeJob)
        conf = defaults(max(2, len(self._job.edges.inputs)), local_checkpoint=local, raw_files=raw_files)
        if needs_state(self._asked):
            conf = with_python_state(conf)
        conf["spark.driver.memory"] = self._ours["driver_memory"]
        return {**conf, **self._users}

    @property
    def _asked(self) -> Node:
        return self._job.flow.sink.input

    def _reason(self, text: str) -> str:
        """Why the query ended: the user's own lines where an own job raised, else the engine's own words."""
        trace = self._native.trace_in(text) if self._native is not None else None
        return trace or own_reason(text)

    def _run(self, session: Any) -> Any:
        sink = self._job.flow.sink
        choices = {
            name[len("lowering.") :]: value for name, value in self._ours.items() if name.startswith("lowering.")
        }
        if self._native is not None:
            frame = self._native.streaming(session, [self._read(session, each) for each in self._native.job.inputs])
        else:
            read = partial(self._read, session)
            frame = Lowering(read, read, choices, int(self._ours["buckets"])).sink(self._job.flow)
        writer = frame.writeStream.queryName(QUERY).option("checkpointLocation", self._job.checkpoint)
        if self._ours["trigger"] != "0 seconds":
            writer = writer.trigger(processingTime=self._ours["trigger"])
        with self._native.refusals() if self._native is not None else contextlib.nullcontext():
            return self._start(writer, sink.mode)

    def _start(self, writer: Any, mode: str) -> Any:
        if mode == "update":
            return writer.outputMode("update").foreachBatch(self._write_batch).start()
        return writer.outputMode("append").format(FORMAT).options(**self._output()).start()

    def _read(self, session: Any, source: Source, packing: Packing | None = None) -> Any:
        """A source's streaming frame: its columns, or packed blocks of them."""
        from pyspark.sql.types import _parse_datatype_string

        edges = self._job.edges
        types = {**source.schema.types(), **dict.fromkeys(("event_time", "ingest_time", "event_id"), "bigint")}
        columns = {name: _parse_datatype_string(types[name]) for name in edges.columns[source.name]}
        nullable = [field.name for field in source.schema.fields if field.nullable]
        options = {
            "stream": source.name,
            "locations": json.dumps([edge.location for edge in edges.inputs]),
            "token": edges.inputs[0].token,
            "frontier": edges.frontier,
            "columns": json.dumps(edges.columns[source.name]),
            "nullable": json.dumps(nullable),
        }
        stream = session.readStream.format(FORMAT)
        if packing is not None:
            return stream.schema(PACKED).options(**options, packing=json.dumps(asdict(packing))).load()
        if self._ours["source"] == "rows":
            return stream.schema(row_schema(columns, nullable)).options(**options).load()
        return unbundled(stream.schema(bundle_schema(columns, nullable)).options(**options, bundled="yes").load())

    def _output(self) -> dict[str, str]:
        return {"location": self._job.edges.output.location, "token": self._job.edges.output.token, "query": QUERY}

    def _write_batch(self, frame: Any, batch: int) -> None:
        options = {**self._output(), "batch": str(batch)}
        frame.write.format(FORMAT).options(**options).mode("append").save()


def own_reason(text: str) -> str:
    """The engine's own last reason in one or two lines, out of the stack it comes wrapped in."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:") or re.match(r"[\w.]*(Error|Exception)\b", line)]
    chosen = [lines[0], causes[-1]] if lines and causes else lines[:2]
    return "\n".join(dict.fromkeys(line[:300] for line in chosen)) or "the engine gave no reason"


def main() -> None:
    job: SparkJob = cloudpickle.loads(Path(sys.argv[1]).read_bytes())
    sut = Sut(job)
    serve({name: getattr(sut, name) for name in ("start", "status", "evidence", "stop")}, on_orphaned=sut.stop)


if __name__ == "__main__":
    main()
