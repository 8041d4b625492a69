"""Consumer lag by partition, summed and averaged, of trials made by rule."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from streamgauge.core.clock import US
from streamgauge.metrics.summary.lag import lag_of, lags
from streamgauge.metrics.summary.time_series import series_table

START = 1_700_000_000 * US


def test_an_even_lag_is_shared_by_the_partitions(make: Any) -> None:
    """Read and committed a second after it was due, at 1000 events/s in two partitions."""
    lag = lag_of(make.story().record())
    assert lag is not None
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
    lag = lag_of(record)
    assert lag is not None
    even, behind = lag.partitions
    assert (even.begin, even.end, even.max) == (500, 500, 500)
    assert (behind.begin, behind.end) == (500, (15 - 9) * 500)
    assert lag.sum.end == even.end + behind.end
    assert lag.mean.end == lag.sum.end / 2


def test_the_series_has_the_lag_of_each_partition(make: Any) -> None:
    """Their sum is the lag that it had before."""
    record = make.story(commit_after_us=US).record(deadline_us=START + 22 * US)
    rows = series_table(record, None).to_pydict()
    assert [sum(each) for each in rows["lag_by_partition"]] == rows["lag_events"]
    assert rows["lag_events_mean"] == [events / 2 for events in rows["lag_events"]]
    assert rows["lag_by_partition"][10] == [1000, 1000]


def test_without_a_span_there_is_no_lag(make: Any) -> None:
    """A trial that ended in its warm-up."""
    record = make.story().record()
    empty = replace(record, spans=replace(record.spans, measured_to_us=record.spans.measured_from_us))
    assert lag_of(empty) is None


def test_what_was_not_committed_lags(make: Any) -> None:
    """All that is due."""
    record = make.story().record()
    record.trial_log.commits.clear()
    lag = lag_of(record)
    assert lag is not None
    assert (lag.sum.begin, lag.sum.end) == (5000, 15_000)


def test_each_partition_is_due_what_its_own_keys_say() -> None:
    """Keys rarely spread evenly, so a partition's lag counts from its own events."""
    plan = SimpleNamespace(
        streams=[SimpleNamespace(name="a")],
        partitions=2,
        count_before=lambda stream, partition, when: 10**partition * when,
    )
    committed = SimpleNamespace(committed_of=lambda stream, partition, moments: np.full(len(moments), partition))
    trial_log: Any = SimpleNamespace(plan=plan, running=committed)
    found = lags(trial_log, np.array([1, 2, 9]), end_us=3)
    assert {place: lag.tolist() for place, lag in found.items()} == {("a", 0): [1, 2, 3], ("a", 1): [9, 19, 29]}
