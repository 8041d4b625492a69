"""Splits each result's latency into stages, from its event time to the recorder.

A stage ends at a timestamp: the driver's, by its own clock, or the engine's of the batch. The timestamps of one result
ascend. One that lies before its predecessor, or after the result, is moved there, and the distance is reported: by that
much the timestamps contradict each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]
"""Microseconds since the epoch (n,)."""


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
        total: Times = self.spent_us.sum(axis=1)
        return total

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
    borders.append(emission_us)
    names = (*(moment.name for moment in moments), last)
    spent: Times = np.diff(np.stack(borders, axis=1), axis=1)  # type: ignore[assignment]
    return StageTimes(names, spent, contradicted)


def first_of_each(batches: NDArray[np.int64], event_us: Times) -> NDArray[np.int64]:
    """Places of the results whose event came first in its batch, which the published study tracked."""
    order = np.lexsort((event_us, batches))
    _, places = np.unique(batches[order], return_index=True)
    firsts: NDArray[np.int64] = order[places]
    return firsts
