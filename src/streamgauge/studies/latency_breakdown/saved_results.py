"""Reads the results that a trial stored, those of its measured span."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from streamgauge.core.schema import EMISSION_TIME, EVENT_ID, EVENT_ORDINAL, EVENT_TIME, partitions_of
from streamgauge.engines.latency_probe import Times
from streamgauge.verification.spool import results_file

_NAMES = (EVENT_ID, EVENT_ORDINAL)
"""The columns that identify a result."""


@dataclass(frozen=True)
class SavedResults:
    """Event time, emission time and partition of n results (n,), and the columns that `names` lists."""

    event_us: Times
    emission_us: Times
    partitions: Times
    names: pa.Table

    @property
    def latencies_us(self) -> Times:
        """From each event to its result."""
        return self.emission_us - self.event_us

    def select(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> SavedResults:
        """Some of them."""
        names = self.names.filter(chosen) if chosen.dtype == np.bool_ else self.names.take(chosen)
        return SavedResults(self.event_us[chosen], self.emission_us[chosen], self.partitions[chosen], names)

    def matched(self, other_results: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Places of the results that both have: among these, and among `other_results`."""
        keys = [name for name in self.names.column_names if name in other_results.column_names]
        own_rows, other_rows = (
            table.select(keys).append_column(column, pa.array(np.arange(len(table))))
            for table, column in ((self.names, "here"), (other_results, "there"))
        )
        both = own_rows.join(other_rows, keys, join_type="inner").sort_by("here")
        return np.asarray(both["here"]), np.asarray(both["there"])


def read(folder: Path, from_us: int, to_us: int) -> SavedResults | None:
    """Results with an event time in [from_us, to_us); None if the trial stored none."""
    path = folder / results_file()
    if not path.is_file():
        return None
    columns = pq.read_schema(path).names
    rows = pq.read_table(path, columns=[EVENT_TIME, EMISSION_TIME, *(name for name in _NAMES if name in columns)])
    event_us = np.asarray(pc.cast(rows[EVENT_TIME], pa.int64()))
    rows = rows.filter((event_us >= from_us) & (event_us < to_us))
    event_us, emission_us = (np.asarray(pc.cast(rows[name], pa.int64())) for name in (EVENT_TIME, EMISSION_TIME))
    partitions = partitions_of(np.asarray(rows[EVENT_ID]))
    return SavedResults(event_us, emission_us, partitions, rows.drop_columns([EVENT_TIME, EMISSION_TIME]))
