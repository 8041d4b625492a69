"""The SUT: a plain Python process with a Spark session and its streaming queries, on a lifeline to the runner."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import cloudpickle

from streamgauge.engines.seam import Edges
from streamgauge.engines.spark.blocks import PACKED, Packing
from streamgauge.engines.spark.lowering import Lowering
from streamgauge.engines.spark.queries import Query, queries
from streamgauge.engines.spark.settings import defaults, split
from streamgauge.engines.spark.source import FORMAT, StreamgaugeSource
from streamgauge.errors import EngineError
from streamgauge.flow import schema
from streamgauge.flow.nodes import Flow, Source
from streamgauge.system.children import serve


@dataclass(frozen=True)
class SparkJob:
    """What the runner hands over, by file. `native`, where given, is the query itself, by input name to frames: it
    takes the place of the flow's lowering and must give the columns that the flow gives."""

    flow: Flow
    edges: Edges
    options: dict[str, str]
    master: str
    folder: str
    checkpoint: str
    native: Callable[[dict[str, Any]], Any] | None = None


class Sut:
    """One session; one query for all sinks that can share one."""

    def __init__(self, job: SparkJob) -> None:
        self._job = job
        self._ours, self._users = split(job.options)
        self._session: Any = None
        self._queries: dict[Query, Any] = {}

    def start(self) -> dict[str, str]:
        """Start session and queries; returns the settings in force that are not Spark's defaults."""
        conf = self._configuration()
        try:
            self._session = self._open(conf)
            for query in queries(self._job.flow):
                self._queries[query] = self._run(self._session, query)
        except Exception as error:
            raise EngineError(own_reason(str(error))) from None
        return {**self._ours, **conf}

    def status(self) -> dict[str, Any]:
        """Alive where every query is; else the reason of the first that is not, named by its sinks."""
        for query, running in self._queries.items():
            error = running.exception()
            if error is not None or not running.isActive:
                reason = own_reason(str(error)) if error is not None else ""
                sinks = f"the query of {', '.join(sink.name for sink in query.sinks)}: "
                return {"alive": False, "reason": (sinks if len(self._queries) > 1 else "") + reason}
        return {"alive": True, "reason": ""}

    def evidence(self) -> list[dict[str, Any]]:
        return [json.loads(one.json) for running in self._queries.values() for one in running.recentProgress]

    def stop(self) -> None:
        for running in self._queries.values():
            with contextlib.suppress(Exception):
                running.stop()
        with contextlib.suppress(Exception):
            self._session.stop()

    def _configuration(self) -> dict[str, str]:
        local = self._job.master.startswith("local")
        conf = defaults(max(2, len(self._job.edges.inputs)), local_checkpoint=local)
        conf["spark.driver.memory"] = self._ours["driver_memory"]
        return {**conf, **self._users}

    def _open(self, conf: dict[str, str]) -> Any:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(self._job.master).appName("streamgauge")
        for name, value in conf.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("WARN")
        if not self._job.master.startswith("local"):
            session.sparkContext.addPyFile(_own_code(Path(self._job.folder)))
        session.dataSource.register(StreamgaugeSource)
        return session

    def _run(self, session: Any, query: Query) -> Any:
        choices = {
            name[len("lowering.") :]: value for name, value in self._ours.items() if name.startswith("lowering.")
        }
        read = self._reading(session, query)
        if self._job.native is not None:
            frame = self._job.native({s.name: read(s) for s in schema.sources(self._job.flow)})
        else:
            frame = Lowering(read, read, choices, int(self._ours["buckets"])).output(query)
        writer = frame.writeStream.queryName(query.name)
        writer = writer.option("checkpointLocation", f"{self._job.checkpoint}/{query.name}")
        if self._ours["trigger"] != "0 seconds":
            writer = writer.trigger(processingTime=self._ours["trigger"])
        if query.mode == "update":
            return writer.outputMode("update").foreachBatch(partial(self._write_batch, query)).start()
        return writer.outputMode("append").format(FORMAT).options(**self._output(query)).start()

    def _reading(self, session: Any, query: Query) -> Callable[..., Any]:
        """What reads a source for a query; each call is a reader of its own, numbered stream by stream."""
        numbers: dict[str, count[int]] = defaultdict(count)
        given = query.columns(self._job.flow, self._job.edges.columns)

        def read(source: Source, packing: Packing | None = None) -> Any:
            who = {"query": query.name, "reader": str(next(numbers[source.name]))}
            return self._read(session, source, given[source.name], who, packing)

        return read

    def _read(
        self, session: Any, source: Source, given: tuple[str, ...], who: dict[str, str], packing: Packing | None
    ) -> Any:
        """A source's streaming frame: the given columns, or packed blocks of them."""
        edges = self._job.edges
        types = {**source.schema.types(), **dict.fromkeys(("event_time", "ingest_time", "event_id"), "bigint")}
        columns = ", ".join(f"`{name}` {types[name]}" for name in given)
        options = {
            "stream": source.name,
            "locations": json.dumps([edge.location for edge in edges.inputs]),
            "token": edges.inputs[0].token,
            "frontier": edges.frontier,
            "columns": json.dumps(given),
            **who,
        }
        if packing is not None:
            columns, options["packing"] = PACKED, json.dumps(asdict(packing))
        return session.readStream.format(FORMAT).schema(columns).options(**options).load()

    def _output(self, query: Query) -> dict[str, str]:
        edge, sinks = self._job.edges.output, json.dumps([sink.name for sink in query.sinks])
        return {"location": edge.location, "token": edge.token, "query": query.name, "sinks": sinks}

    def _write_batch(self, query: Query, frame: Any, batch: int) -> None:
        options = {**self._output(query), "batch": str(batch)}
        frame.write.format(FORMAT).options(**options).mode("append").save()


def own_reason(text: str) -> str:
    """The engine's own last reason in one or two lines, out of the stack it comes wrapped in."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:") or re.match(r"[\w.]*(Error|Exception)\b", line)]
    chosen = [lines[0], causes[-1]] if lines and causes else lines[:2]
    return "\n".join(dict.fromkeys(line[:300] for line in chosen)) or "the engine gave no reason"


def _own_code(folder: Path) -> str:
    """streamgauge as a zip for executors on other machines."""
    import shutil

    import streamgauge

    package = Path(streamgauge.__file__).parent
    return shutil.make_archive(str(folder / "streamgauge"), "zip", package.parent, package.name)


def main() -> None:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    job: SparkJob = cloudpickle.loads(Path(sys.argv[1]).read_bytes())
    sut = Sut(job)
    serve({name: getattr(sut, name) for name in ("start", "status", "evidence", "stop")}, on_orphaned=sut.stop)


if __name__ == "__main__":
    main()
