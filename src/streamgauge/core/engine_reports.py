"""What an engine reports on its work: its batches, the rows of its operators, series of its own, and the guarantee of
its results.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

WHOLE_BATCH = "trigger"
"""The name that no step can have, because its column is that of the whole batch."""


@dataclass(frozen=True)
class BatchProgress:
    """One batch of one query: one row of engine/batches.parquet.

    - `query`: the query's name; empty if the engine has only one.
    - `batch`: the engine's number, the same as in reads and commits.
    - `start_us`, `end_us`: microseconds since the epoch, by the engine's clock. `end_us` is None if unknown.
    - `steps_us`: step to duration. Steps have the engine's own names, in lower case (`write_out`), because each has a
      column; `Capabilities.batch_steps` gives their order and labels. A step that the engine does not report is left
      out. Steps need not add up.
    - `late_rows`: the rows that operators dropped because they came behind the watermark; None if not reported.
    - `waited_us`: from when the batch was due to its start; None if unknown.

    There is no number of rows, because the driver counts what it delivers to each batch.
    """

    query: str
    batch: int
    start_us: int
    end_us: int | None = None
    steps_us: Mapping[str, int] = field(default_factory=dict)
    late_rows: int | None = None
    waited_us: int | None = None

    def __post_init__(self) -> None:
        if wrong := sorted(
            step for step in self.steps_us if not (step.isidentifier() and step.islower() and step != WHOLE_BATCH)
        ):
            rule = f"steps have names in lower case, such as write_out, and none is called {WHOLE_BATCH}"
            raise ValueError(f"steps_us of batch {self.batch}: {rule}; got {', '.join(wrong)}")


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


class SeriesSample(NamedTuple):
    """One value of a series of the engine's own: one row of engine/series.parquet.

    - `time_us`: microseconds since the epoch, by the engine's clock.
    - `name`, `unit`: what it is, in words, such as "busy share" in "%". Each has one chart, which begins at 0.
    - `operator`: its name in the flow; empty if the value is the whole job's.
    """

    time_us: int
    name: str
    unit: str
    value: float
    operator: str = ""


LATE_ROWS = "late rows"
"""The series by which an engine without batches counts the rows that it dropped as late, since its job began."""

Delivery = Literal["exactly_once", "at_least_once", "at_most_once"]


@dataclass(frozen=True)
class Guarantee:
    """What a job promises of its results.

    `loss_max`: the share that `at_most_once` may lose. `only_after_restart`: whether `at_least_once` allows repeated
    results only after a restart, as of engines, whose restarts the driver makes. It does not see those of programs.
    """

    delivery: Delivery
    loss_max: float = 0.0
    only_after_restart: bool = False
