"""The result of one trial, with the evidence behind it."""

from __future__ import annotations

from dataclasses import dataclass

from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.results.run import Result
from streamgauge.verification.sink_comparison import VerificationResult


@dataclass
class TrialResult:
    """A trial's result with its record and verification."""

    result: Result
    record: TrialRecord
    verified: VerificationResult | None
