"""Rates over the measured span, which can be computed by hand for a trial made by rule."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.metrics.summary.rates import rates_of
from streamgauge.verdict.criteria.driver import SCHEDULE_DELAY_US_MAX

START = 1_700_000_000 * US


def test_rates_are_over_the_measured_span(make: Any) -> None:
    """Planned, offered, ingested and committed of a steady trial are all the rate; the shares are the plan's."""
    rates = rates_of(make.story(plan=make.plan(streams=2)).record(), 5e6, SCHEDULE_DELAY_US_MAX)
    per_s = (rates.planned_per_s, rates.offered_per_s, rates.ingested_per_s, rates.achieved_per_s)
    assert per_s == pytest.approx((1000, 1000, 1000, 1000))
    assert rates.generator_ceiling_per_s == 5e6
    assert rates.shares == {"purchases": 0.75, "ads": 0.25}


def test_each_rate_has_its_own_records(make: Any) -> None:
    """Reads stop 6 s before the span's end, and commits 8 s before it: of 10 s they are 4 and 2 and a part."""
    record = make.story().record()
    log = record.trial_log
    log.deliveries = [[part for part in parts if part.when_us < START + 9.5 * US] for parts in log.deliveries]
    log.commits = [commit for commit in log.commits if commit.committed_us < START + 7.5 * US]
    rates = rates_of(record, None, SCHEDULE_DELAY_US_MAX)
    assert (rates.planned_per_s, rates.offered_per_s) == (1000, 1000)
    assert (rates.ingested_per_s, rates.achieved_per_s) == pytest.approx((400, 240), abs=1)


def test_what_comes_too_late_is_not_offered(make: Any) -> None:
    """What a second owes and gives only well after its end counts against the driver."""
    rates = rates_of(make.story(schedule_delay_us=SCHEDULE_DELAY_US_MAX + US).record(), None, SCHEDULE_DELAY_US_MAX)
    assert (rates.planned_per_s, rates.offered_per_s) == (1000, 0)


def test_a_trial_that_ended_early_is_measured_to_its_end(make: Any) -> None:
    """Rates divide by the time there was, not by the time there should have been."""
    rates = rates_of(make.story().record(deadline_us=START + 10 * US), None, SCHEDULE_DELAY_US_MAX)
    assert (rates.planned_per_s, rates.ingested_per_s) == (1000, 1000)
    assert rates.offered_per_s == 1000


def test_a_trial_that_ended_in_its_warm_up_has_no_rates(make: Any) -> None:
    """No division by nothing, and no made-up figure."""
    rates = rates_of(make.story(seconds=2).record(deadline_us=START + 3 * US), None, SCHEDULE_DELAY_US_MAX)
    assert (rates.ingested_per_s, rates.achieved_per_s) == (0, 0)
