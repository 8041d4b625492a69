"""Trials of user jobs without an engine: what arrives is made from the reference."""

from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.schema import EMISSION_TIME, EVENT_TIME
from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.metrics.delivery_times import ingest_times
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.results.run import Verification
from streamgauge.verification.regenerated_input import RegeneratedInput
from streamgauge.verification.sink_comparison import VerificationResult
from streamgauge.verification.user_job_truth import verify_user_job
from tests.unit.helpers_duckdb import duckdb_session

HEAD = """
from streamgauge.jobs import Integer, Key, job, stream


@job(stream("purchases", Key("user_id", 100), Integer("price", 1, 100)), {})
def user_job(spark, inputs):
    raise AssertionError("no engine runs here")
"""
ROWS = "SELECT user_id, price / 3 AS third, event_time, ingest_time, event_id FROM purchases"
WINDOWS = """
    SELECT make_timestamp(event_time // 2000000 * 2000000) AS window_start,
           make_timestamp(event_time // 2000000 * 2000000 + 2000000) AS window_end, user_id,
           CAST(sum(price) AS BIGINT) AS spent, max(event_time) AS event_time
    FROM purchases GROUP BY ALL
"""
UPDATES = "SELECT user_id, count(*) AS n, max(event_time) AS event_time FROM purchases GROUP BY user_id"
LATE_US = 1_000_000
_INPUTS: dict[str, pa.Table] = {}
_ANSWERS: dict[tuple[str, int], pa.Table] = {}


@dataclass
class Case:
    """A user job's trial: 2 partitions at 1000 events/s for 20 s, a batch a second."""

    resolved: ResolvedExperiment
    record: TrialRecord
    folder: Path

    def input(self, before_us: int = FAR_FUTURE_US) -> pa.Table:
        """The events before a time. Trials with equal logs and columns offer the same, so these are made once."""
        end_us = min(before_us, self.record.spans.end_us)
        log = self.record.trial_log
        key = repr((log.plan.streams, log.deliveries, self.record.spans, end_us, self.resolved.columns))
        if key not in _INPUTS:
            source = RegeneratedInput(log.plan, ingest_times(log), self.resolved.columns)
            _INPUTS[key] = source.readers(self.record.spans.start_us, end_us)["purchases"].read_all()
        return _INPUTS[key]

    def answer(self, query: str, before_us: int = FAR_FUTURE_US) -> pa.Table:
        """A query's rows over the input."""
        events = self.input(before_us)
        if (key := (query, id(events))) not in _ANSWERS:
            with duckdb_session() as connection:
                connection.execute("SET TimeZone = 'UTC'")
                connection.register("purchases", events)
                _ANSWERS[key] = connection.sql(query).to_arrow_table()
        return _ANSWERS[key]

    def receive(self, *batches: pa.Table) -> None:
        """Let these rows be what the sink committed, batch by batch."""
        trial_log, commits = self.record.trial_log, []
        for commit, rows in zip(trial_log.commits, batches, strict=False):
            path = self.folder / f"{commit.batch}.arrow"
            table = rows
            if EMISSION_TIME not in rows.schema.names:
                emitted = pc.add(pc.fill_null(rows.column(EVENT_TIME), 0), LATE_US)
                table = rows.append_column(EMISSION_TIME, emitted.cast(pa.int64()))
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            commits.append(replace(commit, rows=rows.num_rows, paths=[str(path)] if rows.num_rows else []))
        trial_log.commits = commits + trial_log.commits[len(commits) :]

    def result(self, *batches: pa.Table) -> VerificationResult:
        """What verification finds, after these batches if any are given."""
        self.receive(*batches)
        return verify_user_job(self.resolved, self.record, self.folder / "batch.log")

    def verify(self, *batches: pa.Table) -> Verification:
        return self.result(*batches).verification


def faults(found: Verification) -> dict[str, int]:
    assert found.judged, found.sentence
    names = ("missing", "extra", "duplicate", "wrong", "late")
    return {name: getattr(found, name) for name in names if getattr(found, name)}
