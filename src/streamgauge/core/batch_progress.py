"""The engine's own report on its batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LATEST_OFFSET, WAL_COMMIT, QUERY_PLANNING = "latest_offset", "wal_commit", "query_planning"
ADD_BATCH, COMMIT_OFFSETS = "add_batch", "commit_offsets"
STEPS = (LATEST_OFFSET, WAL_COMMIT, QUERY_PLANNING, ADD_BATCH, COMMIT_OFFSETS)
"""The steps of a micro-batch in order: find what is new, log the plan to read it, plan the query, process the data,
log that it is done.
"""


@dataclass(frozen=True)
class BatchProgress:
    """One batch of one query: one row of engine/batches.parquet.

    - `query`: the query's name; empty if the engine has only one.
    - `batch`: the engine's number, the same as in reads and commits.
    - `start_us`, `end_us`: microseconds since the epoch, by the engine's clock. `end_us` is None if unknown.
    - `steps_us`: step to duration, by the names in `STEPS`. A step that the engine does not report is left out. Steps
      need not add up.
    - `late_rows`: the rows that operators dropped because they came behind the watermark; None if not reported.

    There is no number of rows, because the driver counts what it delivers to each batch.
    """

    query: str
    batch: int
    start_us: int
    end_us: int | None = None
    steps_us: Mapping[str, int] = field(default_factory=dict)
    late_rows: int | None = None

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.steps_us) - set(STEPS)):
            raise ValueError(
                f"steps_us of batch {self.batch}: steps are {', '.join(STEPS)}; got {', '.join(unknown)}\n"
                "  try: leave out other steps: reports show the time that no step explains"
            )
