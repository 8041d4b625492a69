"""When trials begin."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.events import US
from streamgauge.run.trial import START_LEAD_US, next_start

NOW = 1_700_000_000 * US + 300_000


@pytest.mark.parametrize(
    ("reached_us", "apart_us", "start_us"),
    [
        (0, 0, 1_700_000_001 * US),
        (NOW - 2 * US, 12 * US, 1_700_000_011 * US),
        (NOW - 60 * US, 12 * US, 1_700_000_001 * US),
        (NOW - 2 * US, 0, 1_700_000_001 * US),
    ],
)
def test_trials_of_a_rig_lie_a_reach_apart(reached_us: int, apart_us: int, start_us: int) -> None:
    """Else a window would hold events of two of them, and the answers of neither would be right."""
    rig: Any = SimpleNamespace(clock=SimpleNamespace(now_us=lambda: NOW), reached_us=reached_us)
    assert next_start(rig, apart_us) == start_us
    assert start_us >= NOW + START_LEAD_US
    assert start_us - reached_us >= apart_us
