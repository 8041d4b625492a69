"""Where the time of results goes: each one's way from its event's time to the recorder, cut at moments that are known.

A stage ends at a moment that somebody has stamped: the driver, by its own clock, or Spark, of its batch and to the
millisecond. Moments of one result follow each other; one that would lie before the moment that must precede it, or
after the result itself, is moved there, and by how much is told: so far the stamps contradict each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamgauge.stats.percentile import carries

Times = NDArray[np.int64]
"""Microseconds since the epoch (n,)."""

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


@dataclass(frozen=True)
class Timestamp:
    """The end of a stage, of each result: `name` says what the time up to it was spent on.

    `may_precede`: a moment that may lie before the one before it, as a batch may begin before an event is there.
    `within_us`: how exact the stamp is; so far it contradicts no other.
    """

    name: str
    when_us: Times
    may_precede: bool = False
    within_us: int = 0


@dataclass(frozen=True)
class StageTimes:
    """The ways of n results through the stages; `spent_us` has shape (n, stages), and its rows sum to the latencies.

    `contradicted_us` (n,): by how much moments were moved, where stamps do not follow each other.
    """

    names: tuple[str, ...]
    spent_us: Times
    contradicted_us: Times

    @property
    def latencies_us(self) -> Times:
        total: Times = self.spent_us.sum(axis=1)
        return total

    def of(self, chosen: NDArray[Any]) -> StageTimes:
        """Those of some results."""
        return StageTimes(self.names, self.spent_us[chosen], self.contradicted_us[chosen])


def stage_times(event_us: Times, moments: Sequence[Timestamp], emission_us: Times, last: str) -> StageTimes:
    """From event time over every moment to emission; `last` names what comes after the last moment."""
    borders, contradicted = [event_us], np.zeros(len(event_us), np.int64)
    for moment in moments:
        moved = np.minimum(np.maximum(moment.when_us, borders[-1]), emission_us)
        if moment.may_precede:
            contradicted += np.maximum(moment.when_us - emission_us, 0)
        else:
            contradicted += np.maximum(np.abs(moved - moment.when_us) - moment.within_us, 0)
        borders.append(moved)
    borders.append(emission_us)
    names = (*(moment.name for moment in moments), last)
    spent: Times = np.diff(np.stack(borders, axis=1), axis=1)  # type: ignore[assignment]
    return StageTimes(names, spent, contradicted)


def summary(found: StageTimes, independent: int) -> list[dict[str, Any]]:
    """Each stage: mean, percentiles of its own (where `independent` observations carry them), and its share of the
    mean latency.
    """
    if not len(found.spent_us):
        return []
    whole_us = float(found.latencies_us.mean())
    return [
        {"name": name, "share": float(column.mean()) / whole_us if whole_us else 0.0, **_figures(column, independent)}
        for name, column in zip(found.names, found.spent_us.T, strict=True)
    ]


def _figures(values_us: Times, independent: int) -> dict[str, Any]:
    percentiles = {
        f"{name}_us": float(np.quantile(values_us, q)) if carries(q, independent) else None
        for name, q in PERCENTILES.items()
    }
    return {"mean_us": float(values_us.mean()), **percentiles}


def latency(latencies_us: Times, independent: int) -> dict[str, Any]:
    """The same of whole ways, and how many there are."""
    return {**_figures(latencies_us, independent), "results": len(latencies_us)} if len(latencies_us) else {}


def contradicted_share(found: StageTimes) -> float:
    """How far the stamps of results contradict each other, as a share of their latency."""
    return float(found.contradicted_us.mean() / max(found.latencies_us.mean(), 1.0))


def first_of_each(batches: NDArray[np.int64], event_us: Times) -> NDArray[np.int64]:
    """The places of the results whose event came first in its batch: what [L] tracked."""
    order = np.lexsort((event_us, batches))
    _, places = np.unique(batches[order], return_index=True)
    found: NDArray[np.int64] = order[places]
    return found
