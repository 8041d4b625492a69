"""How many records of the input are malformed, by the workload's own rule.

They are counted by DuckDB in the input that is made again for verification, so the count owes nothing to the system
under test.
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
    """A count of the records before `until_us` of each stream that has a rule."""
    import duckdb

    # Of its own: what it is shown may be on its way into another connection.
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield MalformedCount(connection, plan, rules, until_us)


class MalformedCount:
    """Counts each record once, however often and in whatever pieces it is made: `see` is for what is made anyway."""

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
        self._seen = dict.fromkeys(self._ends, 0)
        self._malformed: Counter[int] = Counter()

    def see(self, stream: int, partition: int, first: int, batch: pa.RecordBatch) -> None:
        """Looks at events of a stream (by number) from sequence `first` on.

        What was counted before is passed over, and so is what has not all that the rule asks for, or comes after a gap.
        """
        seen, end = self._seen.get((stream, partition), 0), self._ends.get((stream, partition), 0)
        last = min(first + batch.num_rows, end)
        if not first <= seen < last or not self._rules[stream].columns <= set(batch.schema.names):
            return
        records = pa.Table.from_batches([batch.slice(seen - first, last - seen)])
        self._connection.register("records", records)
        asked = f"SELECT count(*) FILTER (WHERE {self._rules[stream].duckdb}) FROM records"
        ((found,),) = self._connection.execute(asked).fetchall()
        self._connection.unregister("records")
        self._malformed[stream] += found
        self._seen[stream, partition] = last

    def found(self) -> dict[str, MalformedRecords]:
        """What each stream with a rule has; records that nobody made so far are made for it."""
        for (stream, partition), end in self._ends.items():
            columns = sorted(self._rules[stream].columns)
            for low in range(self._seen[stream, partition], end, ROWS_MAX):
                batch = self._plan.batch(stream, partition, low, min(low + ROWS_MAX, end), columns)
                self.see(stream, partition, low, batch)
        return {self._plan.streams[stream].name: self._of(stream) for stream in self._rules}

    def _of(self, stream: int) -> MalformedRecords:
        records = sum(end for (number, _), end in self._ends.items() if number == stream)
        rule = self._texts[self._plan.streams[stream].name]
        return MalformedRecords(rule=rule, malformed=self._malformed[stream], records=records)
