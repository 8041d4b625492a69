"""The interface by which `anatomy` breaks the latency of an engine down into stages, and the stages of each result.

A stage ends at a timestamp: the driver's, by its own clock, or the engine's of the batch. The timestamps of one result
ascend. One that lies before its predecessor, or after the result, is moved there, and the distance is reported: by that
much the timestamps contradict each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamgauge.core.engine_reports import BatchProgress
from streamgauge.core.errors import Problem

Times = NDArray[np.int64]
"""Microseconds since the epoch (n,)."""
DOUBT_SHARE = 0.02
"""The largest share of a latency, or of compared figures, that may disagree. With more, stages are doubtful."""
HALF_MS = 500
"""Microseconds."""
IN_KAFKA = "in Kafka"
MEANING = "until the broker had the event"
CONSUMED = "consumed"
CONSUMED_MEANING = "until the recorder had the result"


@dataclass(frozen=True)
class Timestamp:
    """The end of a stage, for each result; `name` says what the time before it was spent on.

    `may_be_earlier`: it may lie before its predecessor, as a batch may begin before an event is available. `within_us`:
    the resolution of the timestamp; a smaller distance is no contradiction.
    """

    name: str
    when_us: Times
    may_be_earlier: bool = False
    within_us: int = 0


@dataclass(frozen=True)
class StageTimes:
    """How long n results spent in each stage. `spent_us` has shape (n, stages); its rows sum to the latencies.

    `contradicted_us` (n,): by how much timestamps were moved because they did not ascend.
    """

    names: tuple[str, ...]
    spent_us: Times
    contradicted_us: Times

    @property
    def latencies_us(self) -> Times:
        return self.spent_us.sum(axis=1)

    def select(self, chosen: NDArray[Any]) -> StageTimes:
        """Those of some results."""
        return StageTimes(self.names, self.spent_us[chosen], self.contradicted_us[chosen])


def stage_times(event_us: Times, moments: Sequence[Timestamp], emission_us: Times, last: str) -> StageTimes:
    """Stage times from event time over every timestamp to emission; `last` names the stage after the last timestamp."""
    borders, contradicted = [event_us], np.zeros(len(event_us), np.int64)
    for moment in moments:
        moved = np.minimum(np.maximum(moment.when_us, borders[-1]), emission_us)
        if moment.may_be_earlier:
            contradicted += np.maximum(moment.when_us - emission_us, 0)
        else:
            contradicted += np.maximum(np.abs(moved - moment.when_us) - moment.within_us, 0)
        borders.append(moved)
    spent: Times = np.diff(np.stack([*borders, emission_us], axis=1), axis=1)
    return StageTimes((*(moment.name for moment in moments), last), spent, contradicted)


def first_of_each(batches: NDArray[np.int64], event_us: Times) -> NDArray[np.int64]:
    """Places of the results whose event came first in its batch, which the published study tracked."""
    order = np.lexsort((event_us, batches))
    _, places = np.unique(batches[order], return_index=True)
    return order[places]


@dataclass(frozen=True)
class ProbeRequest:
    """The trial that a probe is for: the engine's options as the user gave them, the transport, and the frontier."""

    options: Mapping[str, str]
    transport: str
    frontier: str


@dataclass(frozen=True)
class ResultTimes:
    """The driver's timestamps of n results, and where their events came from; each has shape (n,). -1 is unknown.

    - `partitions`, `sequences`: the partition of the event, and its number there.
    - `offered_us`: when its chunk was offered. `all_offered_us`: when every generator had offered that chunk.
    - `batches`, `delivered_us`: the batch that first read the event, and when.
    """

    event_us: Times
    emission_us: Times
    partitions: Times
    sequences: Times
    offered_us: Times
    all_offered_us: Times
    batches: Times
    delivered_us: Times

    @property
    def latencies_us(self) -> Times:
        """From each event to its result."""
        return self.emission_us - self.event_us

    def select(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> ResultTimes:
        """Some of them."""
        return ResultTimes(*(getattr(self, each.name)[chosen] for each in fields(self)))


@dataclass(frozen=True)
class Sample:
    """For n results, at `places` among all: when the broker had the event and the result (n,)."""

    places: NDArray[np.int64]
    event_us: Times
    result_us: Times

    def event_in_broker(self) -> Timestamp:
        """The timestamp at which the event was in the topic."""
        return Timestamp(IN_KAFKA, self.event_us, within_us=HALF_MS)

    def result_in_broker(self, stage: str) -> Timestamp:
        """The timestamp at which the result was in the topic; `stage` names the stage before it."""
        return Timestamp(stage, self.result_us, within_us=HALF_MS)


@dataclass(frozen=True)
class TrialTimes:
    """What the driver knows of one trial.

    - `read_us`, `committed_us`: batch to the first delivery to it, and to its commit.
    - `batch_table`: the rows of engine/batches.parquet.
    - `sample`: the broker's timestamps of some results; None if unknown, for the reason `no_sample`.
    - `observations`: the number of independent observations of the trial's latency.
    """

    results: ResultTimes
    read_us: Mapping[int, int]
    committed_us: Mapping[int, int]
    batch_table: pa.Table
    sample: Sample | None
    no_sample: str
    observations: int


@dataclass(frozen=True)
class Breakdown:
    """The decomposed latencies of a trial's results.

    `stage_times` covers the results whose timestamps are known, which may be a sample; `latencies_us` covers all
    results, and `firsts_us` the result of each batch whose event came first. `independent`: number of independent
    observations. `batches`: None without batches. `left_out`: results without some timestamp, except those outside the
    sample. `extra_fields`: fields of `Decomposition` that only this mode knows. `doubts`: why stages may be wrong.
    """

    stage_times: StageTimes
    latencies_us: Times
    firsts_us: Times
    independent: int
    batches: int | None
    left_out: int
    extra_fields: Mapping[str, Any]
    doubts: tuple[str, ...]


class ProbeInput(ABC):
    """Evidence about one trial beyond the driver's own timestamps: collected during it, read after it."""

    @property
    def options(self) -> Mapping[str, str]:
        """Engine options that make it log what the probe reads."""
        return {}

    def collect(self, batch_progress: Callable[[], list[BatchProgress]]) -> None:  # noqa: B027
        """Called after the trial, before its processes end; `batch_progress` asks the engine for its report.

        By default nothing is collected, because the table of batches has that report.
        """

    @abstractmethod
    def break_down(self, trial: TrialTimes) -> Breakdown | str:
        """The decomposed results; or why they cannot be decomposed."""


class LatencyProbe(ABC):
    """A probe for one execution mode of an engine. The defaults are those of a mode without batches."""

    stages: Mapping[str, str]
    """Stage to what its time is spent on, in order."""
    interval: str | None = None
    """The option that sets the batch interval; None without batches."""

    def seconds(self, interval: str) -> float:
        """The seconds of an interval as that option writes it; 0 if it is not an interval."""
        return 0.0

    def option_value(self, interval_s: float) -> str:
        """An interval as that option writes it."""
        return ""

    def problems(self, request: ProbeRequest) -> Iterator[Problem]:
        """Why a requested trial cannot be decomposed; by default each one can."""
        return iter(())

    @abstractmethod
    def evidence(self, request: ProbeRequest, private: Path) -> ProbeInput:
        """The evidence of one trial; `private` is its own folder, which is removed afterwards."""
