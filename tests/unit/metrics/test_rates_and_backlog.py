"""Rates, backlog and consumer lag over the measured span, by hand for trials made by rule."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from streamgauge.core.clock import US
from streamgauge.metrics.rates_and_backlog import backlog_of, lag_of, lags, rates_of, rows_per_s
from streamgauge.metrics.time_series import series_table
from streamgauge.verdict.driver_check import SCHEDULE_DELAY_US_MAX

START = 1_700_000_000 * US


def test_rates_are_over_the_measured_span(make: Any) -> None:
    """Planned, offered, ingested and committed of a steady trial are all the rate; the shares are the plan's."""
    rates = rates_of(make.story(plan=make.plan(streams=2)).record(), 5e6, SCHEDULE_DELAY_US_MAX)
    per_s = (rates.planned_per_s, rates.offered_per_s, rates.ingested_per_s, rates.achieved_per_s)
    assert per_s == pytest.approx((1000, 1000, 1000, 1000))
    assert rates.generator_ceiling_per_s == 5e6
    assert rates.shares == {"purchases": 0.75, "ads": 0.25}


def test_the_deviation_is_that_of_the_page(make: Any) -> None:
    """Of the seconds that the series has, which the page draws; of a steady trial it is 0."""
    record = make.story().record()
    assert rates_of(record, None, SCHEDULE_DELAY_US_MAX).ingested_std_per_s == 0
    log = record.trial_log
    log.deliveries = [[part for part in parts if part.when_us < START + 9.5 * US] for parts in log.deliveries]
    seconds = series_table(record, None)["handed_out"].to_pylist()[5:15]
    assert seconds == 5 * [1000] + 5 * [0]
    assert rates_of(record, None, SCHEDULE_DELAY_US_MAX).ingested_std_per_s == pytest.approx(np.std(seconds, ddof=1))


def test_results_of_the_span_count(make: Any) -> None:
    """Ten rows with each commit, once a second; a trial that ended in its warm-up has no rate."""
    assert rows_per_s(make.story().record()) == pytest.approx(10)
    assert rows_per_s(make.story(seconds=2).record(early_stop="stopped")) is None


def test_each_rate_has_its_own_records(make: Any) -> None:
    """Reads stop 6 s before the span's end, and commits 8 s before it: of 10 s they are 4 and 2 and a part."""
    record = make.story().record()
    log = record.trial_log
    log.deliveries = [[part for part in parts if part.when_us < START + 9.5 * US] for parts in log.deliveries]
    log.commits = [commit for commit in log.commits if commit.committed_us < START + 7.5 * US]
    rates = rates_of(record, None, SCHEDULE_DELAY_US_MAX)
    assert (rates.planned_per_s, rates.offered_per_s) == (1000, 1000)
    assert (rates.ingested_per_s, rates.achieved_per_s) == pytest.approx((400, 240), abs=1)


@pytest.mark.parametrize(("hopeless", "maximum_per_s"), [("", None), ("the backlog grows", 240)])
def test_only_a_trial_that_went_on_under_overload_has_a_maximum(
    make: Any, hopeless: str, maximum_per_s: float | None
) -> None:
    """What was committed, not what was read."""
    record = make.story().record()
    record.hopeless = hopeless
    record.trial_log.commits = [one for one in record.trial_log.commits if one.committed_us < START + 7.5 * US]
    rates = rates_of(record, None, SCHEDULE_DELAY_US_MAX)
    assert rates.maximum_per_s == (None if maximum_per_s is None else pytest.approx(maximum_per_s, abs=1))


@pytest.mark.parametrize(("story", "changes", "per_s"), [
    ({"schedule_delay_us": SCHEDULE_DELAY_US_MAX + US}, {}, (1000, 0, 1000)),  # well after its second's end
    ({}, {"deadline_us": START + 10 * US}, (1000, 1000, 1000)),  # the time there was, not the time there should be
    ({"seconds": 2}, {"deadline_us": START + 3 * US}, (1000, 0, 0)),  # in the warm-up: no division by nothing
], ids=["late", "early end", "no span"])  # fmt: skip
def test_rates_of_late_drivers_and_short_trials(
    make: Any, story: dict[str, int], changes: dict[str, int], per_s: tuple[float, ...]
) -> None:
    rates = rates_of(make.story(**story).record(**changes), None, SCHEDULE_DELAY_US_MAX)
    assert (rates.planned_per_s, rates.offered_per_s, rates.ingested_per_s) == pytest.approx(per_s, abs=1)
    assert rates.achieved_per_s <= rates.ingested_per_s


def test_the_backlog_of_a_steady_trial(make: Any) -> None:
    """Peaks of a second of the rate, no slope; at the span's end what came since the last read."""
    backlog = backlog_of(make.story(read_after_us=5000).record())
    assert (backlog.max, backlog.max_s) == (1005, pytest.approx(1.005))
    assert backlog.slope_per_s == pytest.approx(0, abs=1e-6)
    assert backlog.end == 1000


def test_a_growing_backlog_has_a_slope(make: Any) -> None:
    """5 % slower than the plan: a sample each 1.05 s, higher by 50 events."""
    assert backlog_of(make.story(growth_us=50_000).record()).slope_per_s == pytest.approx(50 / 1.05, rel=1e-3)


def test_the_backlog_of_an_engine_that_stopped_is_largest_at_the_end(make: Any) -> None:
    """Peaks are sampled at deliveries, and the last of those came long before: what waits at the end is more. Of one
    that never read, all that was due is the backlog.
    """
    for until_s, waiting in ((8, 7000), (0, 15_000)):
        record = make.story().record()
        record.trial_log.deliveries = [
            [part for part in log if part.to_us <= START + until_s * US] for log in record.trial_log.deliveries
        ]
        backlog = backlog_of(record)
        assert (backlog.max, backlog.end, until_s > 0 or backlog.slope_per_s == 0) == (waiting, waiting, True)


def test_an_even_lag_is_shared_by_the_partitions(make: Any) -> None:
    """Read and committed a second after it was due, at 1000 events/s in two partitions."""
    lag: Any = lag_of(make.story().record())
    assert lag.sum.model_dump() == {"begin": 1000, "end": 1000, "max": 1000}
    assert lag.mean.model_dump() == {"begin": 500, "end": 500, "max": 500}
    assert [(one.stream, one.partition, one.end) for one in lag.partitions] == [
        ("purchases", 0, 500), ("purchases", 1, 500),
    ]  # fmt: skip


def test_a_partition_that_is_not_read_any_more_lags_alone(make: Any) -> None:
    """Its lag grows by its share of the rate; the others' stays."""
    record = make.story().record()
    stopped = START + 9 * US
    log = record.trial_log
    log.deliveries[1] = [part for part in log.deliveries[1] if part.to_us <= stopped]
    lag: Any = lag_of(record)
    even, behind = lag.partitions
    assert (even.begin, even.end, even.max) == (500, 500, 500)
    assert (behind.begin, behind.end) == (500, (15 - 9) * 500)
    assert lag.sum.end == even.end + behind.end
    assert lag.mean.end == lag.sum.end / 2


@pytest.mark.parametrize(("ended_s", "last"), [(22, 0), (8, 4000)])
def test_the_series_has_the_lag_of_each_partition(make: Any, ended_s: int, last: int) -> None:
    """Their sum is the lag of all, in the last second of a trial that ended early too."""
    record = make.story(commit_after_us=US).record(deadline_us=START + ended_s * US)
    commits = record.trial_log.commits
    commits[:] = [commit for commit in commits if ended_s > 20 or commit.committed_us <= START + 6 * US]
    rows = series_table(record, None).to_pydict()
    assert [sum(each) for each in rows["lag_by_partition"]] == rows["lag_events"]
    assert rows["lag_events_mean"] == [events / 2 for events in rows["lag_events"]]
    assert (rows["lag_by_partition"][5], rows["lag_events"][-1]) == ([1000, 1000], last)


def test_what_was_not_committed_lags(make: Any) -> None:
    """All that is due; a trial that ended in its warm-up has no lag."""
    record = make.story().record()
    record.trial_log.commits.clear()
    lag: Any = lag_of(record)
    assert (lag.sum.begin, lag.sum.end) == (5000, 15_000)
    assert lag_of(replace(record, spans=replace(record.spans, measured_to_us=record.spans.measured_from_us))) is None


def test_each_partition_is_due_what_its_own_keys_say() -> None:
    """Keys rarely spread evenly, so a partition's lag counts from its own events."""
    plan = SimpleNamespace(
        streams=[SimpleNamespace(name="a")],
        partitions=2,
        count_before=lambda stream, partition, when: 10**partition * when,
    )
    committed = SimpleNamespace(committed_of=lambda stream, partition, moments: np.full(len(moments), partition))
    trial_log: Any = SimpleNamespace(plan=plan, running=committed)
    by_partition = lags(trial_log, np.array([1, 2, 9]), np.array([1, 2, 9]), end_us=3)
    assert {place: lag.tolist() for place, lag in by_partition.items()} == {
        ("a", 0): [1, 2, 3], ("a", 1): [9, 19, 29],
    }  # fmt: skip
