"""Flows on a Spark in the process of the tests: as a stream of files, one a batch."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge.core.clock import US
from streamgauge.core.schema import Schema, arrow_type, event_id_base
from streamgauge.dataflow import schema
from streamgauge.dataflow.lineage import needed_columns
from streamgauge.dataflow.nodes import Flow, Source
from streamgauge.engines.spark.lowering.arrow_blocks import PACKED, Packing, packed_rows
from streamgauge.engines.spark.lowering.dataframe import Lowering
from streamgauge.engines.spark.lowering.windows import NO_DELAY
from streamgauge.engines.spark.options import UNCHECKED_OPERATIONS, keeps_first_rows
from streamgauge.engines.spark.session.reports import batch_progress

Parts = Mapping[str, Sequence[pa.Table]]
"""Stream to its rows in each batch."""


@dataclass(frozen=True)
class Streamed:
    """What left a query: the names and types of its columns, its rows in each batch, how many it dropped as late."""

    types: dict[str, str]
    batches: list[list[tuple[Any, ...]]]
    late_rows: int


def events(fields: Schema, stream: int, rows: list[tuple[Any, ...]]) -> pa.Table:
    """Rows of (fields..., event_time) with lineage: ingest_time is event_time + 7."""
    times = [row[-1] for row in rows]
    columns = {f.name: pa.array([row[i] for row in rows], arrow_type(f.type)) for i, f in enumerate(fields.fields)}
    ids = [event_id_base(stream, 0) + n for n in range(len(rows))]
    lineage = {"event_time": times, "ingest_time": [time + 7 for time in times], "event_id": ids}
    return pa.table(columns | {name: pa.array(values, pa.int64()) for name, values in lineage.items()})


def cut(rows: pa.Table, cuts_s: Sequence[float]) -> list[pa.Table]:
    """The rows before each of these event times, and not before the one before it."""
    spans = zip((0, *cuts_s[:-1]), cuts_s, strict=True)
    inside = [
        pc.and_(pc.greater_equal(rows["event_time"], low * US), pc.less(rows["event_time"], high * US))
        for low, high in spans
    ]
    return [rows.filter(each) for each in inside]


def lowered(
    flow: Flow, read: Any, choices: Mapping[str, str] | None = None, delay: str = NO_DELAY, cores: int = 2
) -> Any:
    names = list(schema.columns(flow.sink.input))
    return Lowering(read, read, dict(choices or {}), cores, delay).lower(flow.sink.input).select(names)


def streamed(
    spark: Any, flow: Flow, folder: Path, parts: Parts, choices: Mapping[str, str] | None = None, delay: str = NO_DELAY
) -> Streamed:
    """The flow over these batches, of which it gets the columns that it reads, as from a transport."""
    for name, columns in needed_columns(flow).items():
        _write(folder / name, [part.select(list(columns)) for part in parts[name]])
    batches: list[list[Any]] = []
    for name, value in UNCHECKED_OPERATIONS.items():
        spark.conf.set(name, value if keeps_first_rows(flow) else "true")
    cores = spark.sparkContext.defaultParallelism
    frame = lowered(flow, partial(_read, spark, folder), choices, delay, cores)
    writer = frame.writeStream.outputMode(flow.sink.mode).trigger(availableNow=True)
    query = writer.foreachBatch(lambda rows, _: batches.append(rows.collect()))
    running = query.option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        assert running.awaitTermination(240)
        assert running.exception() is None
        late = [batch_progress(json.loads(report.json)).late_rows or 0 for report in running.recentProgress]
    finally:
        running.stop()
    return Streamed(dict(frame.dtypes), [[tuple(row) for row in batch] for batch in batches], sum(late))


def _write(folder: Path, parts: Sequence[pa.Table], first: int = 0) -> None:
    """One file for each batch, the older the earlier; a file without rows where nothing happened."""
    folder.mkdir(parents=True)
    for number, part in enumerate(parts, first):
        path = folder / f"{number}.parquet"
        pq.write_table(part, path)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))


def _read(spark: Any, folder: Path, node: Source, packing: Packing | None = None) -> Any:
    if packing is not None:
        _pack(folder / node.name, packing)
        return spark.readStream.schema(PACKED).option("maxFilesPerTrigger", 1).parquet(f"{folder / node.name}-packed")
    rows = spark.read.parquet(str(folder / node.name))
    return spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / node.name))


def _pack(folder: Path, packing: Packing) -> None:
    """The same files, each as blocks, as the source packs what it has read."""
    parts = []
    for number in range(len(list(folder.iterdir()))):
        rows = pq.read_table(folder / f"{number}.parquet")
        made = list(packing.rows(rows.to_batches(), serial=number << 20))
        empty = packed_rows(packing.side, [(0, 0, b"")], 0).slice(0, 0)
        parts.append(pa.Table.from_batches(made, empty.schema))
    _write(folder.with_name(f"{folder.name}-packed"), parts)
