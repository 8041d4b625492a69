"""A result says what the driver could not see itself."""

from __future__ import annotations

import pytest

from streamgauge.config.options_and_settings import build
from streamgauge.preflight.validate import check
from streamgauge.trial.trial_result import _not_seen


@pytest.mark.parametrize(
    ("engine", "transport", "claims"),
    [("spark", "flight", False), ("known", "flight", False), ("spark", "kafka", True), ("spark-rtm", "kafka", True),
     ("spark-dstream", "socket", True)],
)  # fmt: skip
def test_progress_that_is_the_engines_own_claim_is_called_one(engine: str, transport: str, claims: bool) -> None:
    """And a latency that is null has its reason."""
    asked = {"workload": "identity", "engine": engine, "transport": transport, "load": {"rate": "1k", "generators": 1}}
    notes = tuple(_not_seen(check(build(asked), new_folder=False)))
    if not claims:
        assert notes == ()
        return
    latency, progress = notes
    assert latency.startswith(f"processing-time latency is unknown: over {transport} the driver does not see")
    assert f"is what {engine} reports of its batches, since it commits no offsets" in progress
