"""The anatomy of DStreams: a result's way through a batch that is made at its time and may wait for its turn.

As of micro-batches, whose stages and checks these are but for one: what a batch reads is fixed when it is made, so what
it then waits for is not its events but the batch before it. Of Spark's own receivers nothing is taken apart: its log
has their blocks, and does not say when it was told of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge.engines.spark import event_log
from streamgauge.errors import Problem
from streamgauge.experiment import Experiment
from streamgauge.studies.micro_batch import STAGES as OF_MICRO_BATCHES
from streamgauge.studies.micro_batch import WRITTEN, Batch, ByBatch, Seen, batches_of
from streamgauge.transports.catalogue import STAMPS

if TYPE_CHECKING:
    from streamgauge.run.journal import Journal

QUEUED = "queued"
STAGES = {
    "generated": OF_MICRO_BATCHES["generated"],
    "waiting": "until the time of the next batch, which is made then and knows what it reads",
    QUEUED: "until Spark began to work on the batch",
    **{name: OF_MICRO_BATCHES[name] for name in ("scheduled", "read", WRITTEN)},
}


@dataclass(frozen=True)
class DStream:
    """Fills the seam's `Mode`."""

    stages: Mapping[str, str] = field(default_factory=lambda: STAGES)
    defaults: Mapping[str, str] = field(default_factory=dict)
    interval: str | None = "batch_interval"

    def problems(self, trial: Experiment) -> Iterator[Problem]:
        yield from event_log.taken(trial.options)
        if trial.transport not in STAMPS:
            rule = "must be flight: when a receiver's block was announced is in no log of Spark's"
            yield Problem("transport", rule, trial.transport, "--transport flight")

    def evidence(self, trial: Experiment, private: Path) -> ByInterval:
        return ByInterval(private, Seen(True, trial.load.frontier == "common"), between={QUEUED: "fixed_us"})


class ByInterval(ByBatch):
    """Batches that are made at their time, whatever the one before them does."""

    def batches(self, progress: list[dict[str, Any]], journal: Journal) -> dict[int, Batch]:
        """As of micro-batches, with the time at which each was made in the place of its begin."""
        made_us = event_log.batch_times(self.logs)
        found = batches_of(progress, event_log.work(self.logs), journal)
        return {
            number: replace(batch, begun_us=made_us[number]) for number, batch in found.items() if number in made_us
        }
