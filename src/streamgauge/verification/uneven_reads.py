"""Expected updates and first rows where each partition or stream is read at its own pace.

Which rows a value is of does not follow from event times then.

If the deliveries say which prefix of each partition a batch had read, it follows from the batch that read each row. So
the oracle gets an event time that sorts by batch, and by event time within a batch, and `ingest_time` holds the real
event time. Such flows have no windows.

If the engine does not say what it had read, the last value of each key is that of the whole input, and earlier ones
have bounds (`update_bounds`). Duplicates are found if a flow counts all rows, because then no two updates of a key are
equal.
"""

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from streamgauge.core.arrays import Int64s
from streamgauge.core.schema import EVENT_TIME, INGEST_TIME, LINEAGE_TIMES, quote, quoted
from streamgauge.core.units import backquote
from streamgauge.dataflow import schema
from streamgauge.dataflow.expressions.check import checked, columns_of_all
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Flow, RunningAggregate, Select, Sink
from streamgauge.engines.duckdb_oracle.lowering import SPAN, TIME, by_spans
from streamgauge.engines.duckdb_oracle.lowering import sql as oracle_sql
from streamgauge.engines.duckdb_oracle.process_operator import computed
from streamgauge.metrics.delivery_times import NO_READS, ends_and_stamps, reads_by_place, stamps_of
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.transports.spi import Delivery
from streamgauge.verification.received_results import ARRIVAL, BATCH, ReceivedResults
from streamgauge.verification.regenerated_input import PlacedInput, RegeneratedInput
from streamgauge.verification.sink_comparison import Comparison, DiffSpec
from streamgauge.verification.update_bounds import Aggregation, compare_earlier

TIME_BITS = 42
"""Bits of the event time since the plan's start: 50 days. The batch number has the 20 bits above."""
NEVER_READ = 2**20 - 1
"""The batch of events that no batch has read. Greater than every batch number."""


class BatchNumbers:
    """The number of the batch in which a query read each event, by the event's sequence in its partition."""

    def __init__(self, trial_log: TrialLog) -> None:
        self._plan = trial_log.plan
        # The batch + 1, because 0 stands for events that were never read.
        self._reads = {
            place: ends_and_stamps(
                (part for part in parts if part.reader == 0 and not part.again),
                lambda part: part.batch + 1,
                partial(self._end_of, place[1]),
            )
            for place, parts in reads_by_place(trial_log).items()
        }

    def batches_of(self, stream: str, partition: int, first: int, last: int) -> Int64s:
        """The batch of each event with sequences [first, last); `NEVER_READ` for those that no batch read."""
        numbers = stamps_of(*self._reads.get((stream, partition), NO_READS), np.arange(first, last, dtype=np.int64))
        return np.where(numbers > 0, numbers - 1, NEVER_READ)

    def _end_of(self, partition: int, part: Delivery) -> int:
        """The sequence after a read."""
        if part.to_us <= self._plan.start_us:
            return 0  # a read of an earlier plan, whose sequences are others
        if part.to_sequence is not None:
            return part.to_sequence
        return self._plan.count_before(self._plan.number_of(part.stream), partition, part.to_us)


class InputInBatchOrder(RegeneratedInput):
    """The planned input with an event time that sorts by batch, and the real event time as ingest time."""

    def __init__(self, source: RegeneratedInput, record: TrialRecord) -> None:
        """The input of the one query whose commits the record has."""
        logs = (record.trial_log.of_query(commit.query) for commit in record.trial_log.commits)
        columns = {
            stream: (*(name for name in names if name != INGEST_TIME), INGEST_TIME)
            for stream, names in source.columns.items()
        }
        super().__init__(record.trial_log.plan, None, columns)
        self._numbers = BatchNumbers(next(logs, record.trial_log))

    def _with_ingest(self, stream: int, partition: int, first: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        times = batch.column(EVENT_TIME).to_numpy()
        numbers = self._numbers.batches_of(self._plan.streams[stream].name, partition, first, first + batch.num_rows)
        ordered = numbers << TIME_BITS | (times - self._plan.start_us)
        place = batch.schema.get_field_index(EVENT_TIME)
        return batch.set_column(place, EVENT_TIME, pa.array(ordered)).append_column(INGEST_TIME, pa.array(times))


def expect_by_batch(flow: Flow, record: TrialRecord, source: RegeneratedInput, connection: Any) -> None:
    """Creates `expected`: for updates, the value of each key after each batch that read it, with `BATCH`; otherwise
    the results.

    Batches that were not committed are left out of a trial that ended early.
    """
    numbered = with_lineage(flow, ingest_time=True)
    relations = InputInBatchOrder(source, record).registered(connection, record.spans.start_us, record.offered_until())
    relations = computed(connection, numbered, relations)
    last = numbered.sink.input
    if not isinstance(last, RunningAggregate):
        names = quoted(name for name in schema.columns(last) if name not in LINEAGE_TIMES)
        rows = oracle_sql(numbered, relations)
        connection.execute(f"CREATE TABLE expected AS SELECT {names}, {INGEST_TIME} AS {EVENT_TIME} FROM ({rows})")
        return
    committed = max((commit.batch for commit in record.trial_log.commits), default=-1)
    last_batch = NEVER_READ if record.owes_all else committed
    connection.execute(
        f"CREATE TABLE expected AS SELECT * EXCLUDE ({EVENT_TIME}, {INGEST_TIME}, {SPAN}),"
        f" {INGEST_TIME} AS {EVENT_TIME}, {SPAN} AS {BATCH}"
        f" FROM ({by_spans(numbered, relations, f'{TIME} >> {TIME_BITS}')})"
        f" WHERE {SPAN} <= {last_batch}"
    )


def compare_without_batches(
    resolved: ResolvedExperiment, record: TrialRecord, received: ReceivedResults, source: RegeneratedInput,
    empty: pa.Schema, compared: Comparison,
) -> str:  # fmt: skip
    """Compares the updates of a flow with one sink; `empty`: the columns of results where none came.

    Returns in words what was compared. Of a trial that ended early no last value is owed.
    """
    last, connection = resolved.lineage_flow.sink.input, compared.connection
    placed = with_lineage(resolved.flow, ingest_time=True).sink.input
    assert isinstance(last, RunningAggregate)
    assert isinstance(placed, RunningAggregate)
    made = PlacedInput(record.trial_log.plan, None, source.columns)
    relations = made.registered(connection, record.spans.start_us, record.offered_until())
    read = sorted({*placed.keys, *columns_of_all(placed.aggregates)})
    rows = Select(placed.input, tuple((name, backquote(name)) for name in read), "counted")
    counted = Flow((Sink(rows, "counted", "append"),))
    connection.execute(f"CREATE TABLE counted AS {oracle_sql(counted, computed(connection, counted, relations))}")
    available, columns = schema.columns(last.input), tuple(schema.columns(last))
    values = {name: checked(text, available, last.name).duckdb for name, text in last.aggregates}
    results = ", ".join(f"{sql} AS {quote(name)}" for name, sql in values.items())
    connection.execute(
        f"CREATE TABLE expected AS SELECT {quoted(last.keys)}, {results} FROM counted GROUP BY {quoted(last.keys)}"
    )
    connection.from_arrow(received.numbered(empty)).project(f"* EXCLUDE ({BATCH})").create("updates")
    if record.owes_all:
        connection.execute(
            f"CREATE VIEW last_values AS SELECT * EXCLUDE ({ARRIVAL}) FROM updates"
            f" QUALIFY row_number() OVER (PARTITION BY {quoted(last.keys)} ORDER BY {ARRIVAL} DESC) = 1"
        )
        compared.add("expected", "last_values", DiffSpec(last.keys, columns, "true", due=None))
    del values[EVENT_TIME]
    aggregation = Aggregation("counted", {name: quote(name) for name in last.keys}, values, unit_us=1)
    return compare_earlier(
        compared, record, aggregation, "updates", last.keys, columns, once="COUNT(*)" in values.values()
    )
