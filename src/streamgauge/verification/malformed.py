"""Counts malformed input records by the workload's rule.

DuckDB counts them in the regenerated input, so the count is independent of the system under test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from streamgauge.dataflow.expressions.check import Checked, checked
from streamgauge.loadgen.plan import Plan
from streamgauge.results.run import MalformedRecords

ROWS_MAX = 262_144


@contextmanager
def counting(plan: Plan, rules: Mapping[str, str], until_us: int) -> Iterator[MalformedCount]:
    """Counts the records before `until_us` of each stream that has a rule."""
    import duckdb

    # A separate connection, because another one may be reading the same batch.
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield MalformedCount(connection, plan, rules, until_us)


class MalformedCount:
    """Counts each record once, no matter how often it is regenerated. Pass regenerated batches to `see`."""

    def __init__(self, connection: Any, plan: Plan, rules: Mapping[str, str], until_us: int) -> None:
        self._connection, self._plan, self._texts = connection, plan, rules
        self._rules: dict[int, Checked] = {
            number: checked(rules[stream.name], stream.schema.types(), f"malformed {stream.name}")
            for number, stream in enumerate(plan.streams)
            if stream.name in rules
        }
        self._ends = {
            (number, partition): plan.count_before(number, partition, until_us)
            for number in self._rules
            for partition in range(plan.partitions)
        }
        self._counted_to = dict.fromkeys(self._ends, 0)
        self._malformed: Counter[int] = Counter()

    def see(self, stream: int, partition: int, first: int, batch: pa.RecordBatch) -> None:
        """Counts in a batch of stream number `stream` that starts at sequence number `first`.

        Skips records that were already counted, batches that lack a column of the rule, and batches after a gap.
        """
        counted_to, end = self._counted_to.get((stream, partition), 0), self._ends.get((stream, partition), 0)
        last = min(first + batch.num_rows, end)
        if not first <= counted_to < last or not self._rules[stream].columns <= set(batch.schema.names):
            return
        records = pa.Table.from_batches([batch.slice(counted_to - first, last - counted_to)])
        self._connection.register("records", records)
        query = f"SELECT count(*) FILTER (WHERE {self._rules[stream].duckdb}) FROM records"
        ((counts,),) = self._connection.execute(query).fetchall()
        self._connection.unregister("records")
        self._malformed[stream] += counts
        self._counted_to[stream, partition] = last

    def counts(self) -> dict[str, MalformedRecords]:
        """The count of each stream with a rule. Regenerates the records that were not seen."""
        for (stream, partition), end in self._ends.items():
            columns = sorted(self._rules[stream].columns)
            for low in range(self._counted_to[stream, partition], end, ROWS_MAX):
                batch = self._plan.batch(stream, partition, low, min(low + ROWS_MAX, end), columns)
                self.see(stream, partition, low, batch)
        return {self._plan.streams[stream].name: self._of(stream) for stream in self._rules}

    def _of(self, stream: int) -> MalformedRecords:
        records = sum(end for (number, _), end in self._ends.items() if number == stream)
        rule = self._texts[self._plan.streams[stream].name]
        return MalformedRecords(rule=rule, malformed=self._malformed[stream], records=records)
