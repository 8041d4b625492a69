"""What an engine reports on its work: its batches, the rows of its operators, and the guarantee of its results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

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


@dataclass(frozen=True)
class OperatorRows:
    """The number of rows that left an operator in a batch of a query."""

    query: str
    batch: int
    operator: str
    rows: int


@dataclass(frozen=True)
class OperatorCounts:
    """The counts since the last request; `ended` is the reason if counting has stopped."""

    rows: list[OperatorRows] = field(default_factory=list)
    ended: str = ""


Delivery = Literal["exactly_once", "at_least_once", "at_most_once"]


@dataclass(frozen=True)
class Guarantee:
    """What a job promises of its results. `loss_max`: the share that `at_most_once` may lose."""

    delivery: Delivery
    loss_max: float = 0.0
