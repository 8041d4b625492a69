"""Trials of small flows without an engine: what arrives is made from the oracle's answer, with faults planted in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamgauge.core.clock import US
from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME, INGEST_TIME, WINDOW_END, Schema
from streamgauge.dataflow import schema
from streamgauge.dataflow.builder import source, tumble
from streamgauge.dataflow.lineage import identity
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.duckdb_oracle.lowering import sql
from streamgauge.metrics.delivery_times import ingest_times
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.results.run import Verification
from streamgauge.verification.expected import verify
from streamgauge.verification.regenerated_input import RegeneratedInput
from streamgauge.verification.sink_comparison import VerificationResult
from tests.unit.helpers_duckdb import duckdb_session

START = 1_700_000_000 * US
DEADLINE = START + 21 * US
FAULTS = ("missing", "extra", "duplicate", "wrong", "late")

FIELDS = Schema.from_types(user_id="int", price="int")
PURCHASES, ADS = source("purchases", FIELDS), source("ads", FIELDS)
ROWS = PURCHASES.where("price > 50").select(user_id="user_id", double="price * 2").sink("rows")
WINDOWS = PURCHASES.window(tumble("2s"), keys="user_id").aggregate(spent="sum(price)").sink("windows")
PAIRS = (
    PURCHASES.where("price > 90")
    .join(ADS.select(user_id="user_id", cost="price"), window=tumble("2s"), on="user_id")
    .sink("pairs")
)
UPDATES = PURCHASES.running(keys="user_id", n="count(*)").sink("updates")
VALUES = {"rows": "double", "windows": "spent", "pairs": "cost", "updates": "n"}
FLOWS = pytest.mark.parametrize("flow", [ROWS, WINDOWS, PAIRS], ids=lambda flow: flow.sink.name)


ANSWERS: dict[str, pa.Table] = {}
"""By flow and what was delivered: trials offer the same events, and no table can be changed, so each is asked once."""


@dataclass
class Case:
    """A trial of a flow: 2 partitions at 1000 events/s for 20 s, a batch a second; 5 s to 15 s are measured."""

    resolved: ResolvedExperiment
    record: TrialRecord
    folder: Path

    def answer(self, sink: str = "") -> pa.Table:
        """The oracle's rows for all that was offered, by event time; each came a second after it was due."""
        one = next(each for each in self.resolved.by_sink() if sink in ("", each.flow.sink.name))
        key = repr((one.lineage_flow, self.record.spans, self.record.trial_log.deliveries))
        if key not in ANSWERS:
            ANSWERS[key] = self._answer(one)
        return ANSWERS[key]

    def _answer(self, one: ResolvedExperiment) -> pa.Table:
        columns = schema.columns(one.lineage_flow.sink.input)
        windowed = f", epoch_us({WINDOW_END})" if WINDOW_END in columns else ""
        with duckdb_session() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            relations = self._inputs(connection, one)
            query = f"SELECT *, greatest({EVENT_TIME}{windowed}) + {US} AS {EMISSION_TIME}"
            return connection.sql(
                f"{query} FROM ({sql(one.lineage_flow, relations)}) ORDER BY {EVENT_TIME}"
            ).to_arrow_table()

    def updates(self) -> list[pa.Table]:
        """The running count of every key as it stood after each batch."""
        with duckdb_session() as connection:
            self._inputs(connection, self.resolved)
            times = f"max({EVENT_TIME}) AS {EVENT_TIME}, max({INGEST_TIME}) AS {INGEST_TIME}"
            after = f"max({EVENT_TIME}) + {US} AS {EMISSION_TIME}"
            query = f"SELECT user_id, count(*) AS n, {times}, {after} FROM input_purchases WHERE {EVENT_TIME} < "
            ends = (START + second * US for second in range(1, 21))
            return [connection.sql(f"{query} {end} GROUP BY user_id").to_arrow_table() for end in ends]

    def _inputs(self, connection: duckdb.DuckDBPyConnection, one: ResolvedExperiment) -> dict[str, str]:
        made = RegeneratedInput(self.record.trial_log.plan, ingest_times(self.record.trial_log), one.columns)
        for name, reader in made.readers(START, self.record.spans.end_us).items():
            connection.register(f"input_{name}", reader.read_all())
        return {name: f"input_{name}" for name in one.columns}

    def receive(self, make: Any, **sinks: Iterable[pa.Table]) -> Case:
        """Let these rows be what each sink committed, a table a batch."""
        trial_log = self.record.trial_log
        trial_log.sinks = tuple(sink.name for sink in self.resolved.flow.sinks)
        trial_log.commits = [
            self._commit(make, sink, batch, rows) for sink, tables in sinks.items() for batch, rows in enumerate(tables)
        ]
        return self

    def verified(self, make: Any, **sinks: Iterable[pa.Table]) -> VerificationResult:
        """What is found of these rows."""
        return verify(self.receive(make, **sinks).resolved, self.record)

    def faults(self, make: Any, **sinks: Iterable[pa.Table]) -> dict[str, int]:
        return faults(self.verified(make, **sinks).verification)

    def _commit(self, make: Any, sink: str, batch: int, rows: pa.Table) -> Any:
        path = self.folder / f"{sink}-{batch}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=1000)
        paths = [str(path)] if rows.num_rows else []
        return make.commit(batch, START + (batch + 2) * US, rows.num_rows, sink=sink, paths=paths)


def faults(found: Verification) -> dict[str, int]:
    assert found.judged
    return {name: getattr(found, name) for name in FAULTS if getattr(found, name)}


def latency_of(found: VerificationResult) -> Any:
    latency = found.sinks[0].latencies.latencies.event_time_us
    assert latency is not None
    return latency


def with_value(rows: pa.Table, column: str, place: int, value: Any) -> pa.Table:
    """The table with one value changed."""
    chosen = pa.array(np.arange(rows.num_rows) == place)
    changed = pc.if_else(chosen, pa.scalar(value, rows.schema.field(column).type), rows.column(column))
    return rows.set_column(rows.schema.get_field_index(column), column, changed)


def without(rows: pa.Table, place: int) -> pa.Table:
    return pa.concat_tables([rows.slice(0, place), rows.slice(place + 1)])


def planted(rows: pa.Table, flow: Flow, fault: str, place: int) -> pa.Table:
    """The rows with one fault at a place."""
    one, value, id_ = rows.slice(place, 1), VALUES[flow.sink.name], identity(flow)[0]
    match fault:
        case "missing":
            return without(rows, place)
        case "duplicate":
            return pa.concat_tables([rows, one])
        case "wrong":
            return with_value(rows, value, place, one.column(value)[0].as_py() + 1)
        case "late":
            return with_value(rows, EMISSION_TIME, place, DEADLINE + 1)
        case _:
            return pa.concat_tables([rows, with_value(one, id_, 0, 2**30)])


def last_before(trial: Case, end_us: int, streams: Iterable[int] = (0, 1)) -> int:
    """The greatest event time before `end_us`, by making every event."""
    plan = trial.record.trial_log.plan
    times = [
        plan.event_times(stream, partition, 0, plan.count_before(stream, partition, plan.end_us))
        for stream in streams
        for partition in range(plan.partitions)
    ]
    return max(int(each[each < end_us].max()) for each in times)
