"""The probe's evidence on DStream batches, which are made at their time and may wait for their turn.

As of micro-batches, but for one: what a batch reads is fixed when it is made, so what it then waits for is not its
events but the batch before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from streamgauge.engines.spark.observe import event_log
from streamgauge.studies.latency_breakdown.probes.micro_batch import Batch, BatchProbe, batches_of

if TYPE_CHECKING:
    from streamgauge.metrics.log.trial_log import TrialLog

QUEUED = "queued"


@dataclass(frozen=True)
class IntervalProbe(BatchProbe):
    """Fills the seam's `ProbeInput`."""

    def batches(self, progress: list[dict[str, Any]], trial_log: TrialLog) -> dict[int, Batch]:
        """As of micro-batches, with the time at which each was made in the place of its begin."""
        made_us = event_log.batch_times(self.logs)
        found = batches_of(progress, event_log.work(self.logs), trial_log)
        return {
            number: replace(batch, started_us=made_us[number]) for number, batch in found.items() if number in made_us
        }
