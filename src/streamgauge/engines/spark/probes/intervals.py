"""The probe's evidence on DStream batches, which are made at fixed times and may wait for their turn.

One thing differs from micro-batches: a batch's input is fixed when the batch is made. So it waits for the batch before
it, not for its events.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from streamgauge.engines.latency_probe import TrialTimes
from streamgauge.engines.spark.observe import event_log
from streamgauge.engines.spark.probes.micro_batch import Batch, BatchProbe, batches_of

QUEUED = "queued"


@dataclass(frozen=True)
class IntervalProbe(BatchProbe):
    """Implements `ProbeInput`."""

    def batches(self, progress: list[dict[str, Any]], times: TrialTimes) -> dict[int, Batch]:
        """As for micro-batches, with the time at which each batch was made in place of its start."""
        made_us = event_log.batch_times(self.logs)
        found = batches_of(progress, event_log.work(self.logs), times.read_us, times.committed_us)
        return {
            number: replace(batch, started_us=made_us[number]) for number, batch in found.items() if number in made_us
        }
