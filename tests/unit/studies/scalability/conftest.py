"""Studies fit their laws again after each trial, which takes most of their time."""

from __future__ import annotations

import pytest

from streamgauge.studies.scalability import scaling_laws


@pytest.fixture(autouse=True)
def quick_fits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the replicates, except in the tests of the fits themselves."""
    if request.path.name not in ("test_scaling_laws.py", "test_fit_intervals.py"):
        monkeypatch.setattr(scaling_laws, "REPLICATES", 40)
