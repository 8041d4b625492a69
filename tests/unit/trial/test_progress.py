"""What progress shows of a trial that runs."""

from dataclasses import replace
from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.transports.spi import Chunk
from streamgauge.trial.progress import snapshot
from tests.unit.helpers_trials import START, done_of
from tests.unit.trial.helpers_phases import SPANS


@pytest.fixture
def record(make: Any) -> TrialRecord:
    return TrialRecord(make.story().trial_log(), SPANS)


@pytest.mark.parametrize("chunk_us", [10_000, 50_000, 100_000])
def test_progress_shows_the_rate_of_whole_chunks(record: TrialRecord, chunk_us: int) -> None:
    """Of a steady plan it is the rate at any moment, wherever in a chunk that is; of two generators the sum."""
    for now_us in range(200_000, 8 * US, 333_000):
        record.trial_log.chunks = [chunks_until(now_us, chunk_us) for _ in range(2)]
        assert snapshot(record, START + now_us, "measured").offered_per_s == pytest.approx(1000), now_us


def test_progress_shows_that_a_generator_stands_still(record: TrialRecord) -> None:
    """Nothing for three seconds, of the five that are looked at; then for longer than these."""
    record.trial_log.chunks = [chunks_until(6 * US, 50_000)]
    assert snapshot(record, START + 9 * US, "measured").offered_per_s == pytest.approx(1000 / (5.0 - 0.05 - 0.3))
    assert snapshot(record, START + 12 * US, "measured").offered_per_s == 0


@pytest.mark.parametrize("late_us", [0, 300_000, 8 * US])
def test_progress_shows_what_a_late_generator_sends(record: TrialRecord, late_us: int) -> None:
    """By the time of sending: all that it sends may have been due long ago, as on a busy machine. A burst counts as
    that of the five seconds.
    """
    chunks = [replace(chunk, published_us=chunk.published_us + late_us) for chunk in chunks_until(8 * US, 50_000)]
    now_us = START + 7 * US + late_us
    record.trial_log.chunks = [[chunk for chunk in chunks if chunk.published_us <= now_us]]
    assert snapshot(record, now_us, "measured").offered_per_s == pytest.approx(500)
    burst = [replace(chunk, published_us=now_us - US // 2) for chunk in chunks[1:100]]
    record.trial_log.chunks = [[replace(chunks[0], published_us=START), *burst]]
    assert snapshot(record, now_us, "measured").offered_per_s == pytest.approx(99 * 25 / (5.0 - 0.3))


def test_progress_shows_the_events_due_and_not_delivered_as_the_backlog(make: Any) -> None:
    """As the series and Prometheus do: what the generators have not offered yet waits too, until the plan ends."""
    record = make.story(seconds=10).record()
    record.trial_log.chunks = []
    assert snapshot(record, START + 12 * US, "measured").backlog_events == 2000
    end_us = record.spans.end_us
    assert snapshot(record, end_us + US, "tail").backlog_events == (end_us - START) // US * 1000 - 10_000


def chunks_until(now_us: int, chunk_us: int) -> list[Chunk]:
    """Those of 500 events/s that were whole by then."""
    ends = range(chunk_us, now_us + 1, chunk_us)
    return [Chunk(START + end - chunk_us, START + end, chunk_us // 2000, START + end) for end in ends]


def test_progress_says_why_a_trial_takes_longer(record: TrialRecord) -> None:
    """Longer warm-up, extended span, Ctrl-C."""

    def note() -> str:
        return snapshot(record, START + US, "measured").note

    assert note() == ""
    record.prolong_warmup(10 * US, "the engine had committed nothing yet")
    record.prolong_warmup(5 * US, "the engine's backlog was still draining")
    assert note() == "warm-up 15 s longer, because the engine's backlog was still draining"
    record.extend_span(10 * US, "evidence")
    assert note().endswith("; extended, because evidence was undecided")
    record.extend_span(10 * US, "backlog trend and output trend")
    assert note().endswith("; extended, because backlog trend and output trend were undecided")
    record.interrupted = True
    assert note().startswith("stopping")


def test_progress_says_that_the_rate_still_rises(make: Any) -> None:
    """To what, as long as it is a warm-up and below that; else it looks as if the generators failed."""
    record = done_of(make, profile="ramp:9k")
    reported = [snapshot(record, START + second * US, "measured").note for second in (1, 10)]
    assert reported[0].startswith("rising to 1.")
    assert reported[1] == ""
    assert snapshot(done_of(make), START + US, "measured").note == ""


def test_progress_shows_the_median_of_the_latest_batch(record: TrialRecord, make: Any) -> None:
    """A few batches carry no p99, so none is shown that the result would not print."""
    record.trial_log.commits = [
        make.commit(batch, START + 2 * US, latency_us_p50=late_us) for batch, late_us in enumerate((3e5, 9e5, None))
    ]
    assert snapshot(record, START + 3 * US, "measured").event_time_p50_us == 9e5


@pytest.mark.parametrize(
    ("ended", "note"),
    [
        ({"early_stop": "the queue was full"}, "the queue was full"), ({"engine_failed": "it died\nat 3"}, "it died"),
        ({"driver_failed": "no answer"}, "no answer"), ({"interrupted": True}, "stopping; the measurements are kept"),
    ],
)  # fmt: skip
def test_progress_says_that_a_trial_ends_early(record: TrialRecord, ended: dict[str, Any], note: str) -> None:
    """With the reason; else it would seem to go on to the end of its plan."""
    assert not snapshot(record, START + US, "measured").ends_early
    shown = snapshot(replace(record, **ended), START + US, "measured")
    assert (shown.ends_early, shown.note) == (True, note)
