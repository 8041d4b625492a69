"""A process with a broadcast edge, for tests: every event of a key beside the sum over all of another stream."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream
from streamgauge.dataflow.operators.api import INPUT, ROW, Processor
from streamgauge.dataflow.operators.grouped_arrays import load, save

TRUTH = (
    "SELECT k, v, total, _row FROM"
    " (SELECT *, coalesce(sum(w) OVER (ORDER BY _row ROWS UNBOUNDED PRECEDING), 0) AS total FROM input)"
    " WHERE _input = 0"
)


class Totals(Processor):
    """The sum of `w` over all rows of the broadcast input so far, on every row of the other."""

    def __init__(self) -> None:
        self._total = 0

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        totals = self._total + np.cumsum(batch.column("w").fill_null(0).to_numpy().astype(np.int64))
        self._total = int(totals[-1]) if len(totals) else self._total
        rows = np.flatnonzero(batch.column(INPUT).to_numpy() == 0)
        at = pa.array(rows)
        columns = [batch.column("k").take(at), batch.column("v").take(at), pa.array(totals[rows]), at]
        return pa.RecordBatch.from_arrays(columns, names=["k", "v", "total", ROW])

    def snapshot(self) -> bytes:
        return save(total=np.array([self._total]))

    def restore(self, state: bytes) -> None:
        self._total = load(state)["total"][0].as_py()


def with_totals(stream: Stream, everyones: Stream) -> Stream:
    """`stream` (k, v), by `k`, beside the sum of `w` over all of `everyones`."""
    gives = Schema.from_types(k=stream.columns["k"], v="int", total="bigint")
    return stream.process(
        Totals, keys="k", reads=("v", "w"), gives=gives, broadcast=everyones, truth=TRUTH, name="totals"
    )
