"""When events were delivered first; up to which event times batches read; how far apart partitions were."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import US
from streamgauge.metrics.delivery_times import cuts, ingest_times, read_skew_us
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.transports.spi import Delivery
from tests.unit.helpers_trials import START, journal_of, part


def committed(make: Any, batches: int) -> tuple[Any, ...]:
    return tuple(make.commit(batch, START + (batch + 2) * US) for batch in range(batches))


def test_a_batch_without_one_end_is_no_cut(make: Any) -> None:
    """It is counted; a batch that read nothing, or was not committed, is neither."""
    one = [part("purchases", 0, 1, 5, 1.1, 0), part("purchases", 1, 2, 5, 2.1, 1), part("purchases", 2, 3, 5, 3.1, 2)]
    other = [part("purchases", 0, 1, 5, 1.1, 0), part("purchases", 1, 1.5, 5, 2.1, 1)]
    commits = (*committed(make, 2), make.commit(7, START + 9 * US))
    assert cuts(journal_of(make, one, other, commits=commits)) == ([START + US], 1)


def test_how_far_apart_partitions_were_read(make: Any) -> None:
    """After each batch of the span, by what each had read so far; one that a batch passes over stands where it was. An
    event a partition comes every 2 ms.
    """
    reads = [
        [part("purchases", 0, 1, 5, 1.1, 0), part("purchases", 1, 3, 5, 3.1, 1), part("purchases", 3, 4, 5, 4.1, 2)],
        [part("purchases", 0, 0.5, 5, 1.1, 0), part("purchases", 0.5, 2.75, 5, 3.1, 1)],
    ]
    trial_log = TrialLog(make.plan(partitions=2))
    trial_log.add(make.tick([[], []], reads, []))
    skews = [read_skew_us(trial_log, START, START + until_s * US) for until_s in (2, 4, 5)]
    assert skews == pytest.approx([US // 2, US // 2, US * 5 // 4], abs=2000)
    assert read_skew_us(journal_of(make, reads[0]), START, START + 5 * US) == 0
    others = [[*reads[0], part("ads", 0, 9, 5, 4.1, 2)], reads[1]]
    several = read_skew_us(journal_of(make, *others, streams=2), START, START + 5 * US)
    assert several == pytest.approx(US * 5 // 4, abs=3000)
    across = read_skew_us(journal_of(make, *others, streams=2), START, START + 5 * US, across_streams=True)
    assert across == pytest.approx(US * 25 // 4, abs=9000)
    even = [[part("purchases", 0, 1, 5, 1.1, 0)], [part("purchases", 0, 1, 5, 1.1, 0)]]
    assert read_skew_us(journal_of(make, *even), START, START + 5 * US) == 0


def test_ingest_times_are_those_of_the_first_hand_out(make: Any) -> None:
    """By stream, partition and event time; a re-read changes nothing; what was never delivered has none."""
    trial_log = journal_of(
        make,
        [
            part("purchases", 0, 1, 5, 1.1, 0),
            part("purchases", 0, 1, 5, 9.9, 1, True),
            part("purchases", 1, 2, 5, 2.2, 1),
        ],
        [part("purchases", 0, 2, 5, 3.3, 1), part("ads", 0, 2, 5, 4.4, 1)],
        streams=2,
    )
    times = START + np.array([0, US - 1, US, 2 * US - 1, 2 * US])
    ingest = ingest_times(trial_log)

    def seconds(stream: str, partition: int) -> list[float]:
        return [(one - START) / US if one else 0.0 for one in ingest(stream, partition, times).tolist()]

    assert seconds("purchases", 0) == [1.1, 1.1, 2.2, 2.2, 0.0]
    assert seconds("purchases", 1) == [3.3, 3.3, 3.3, 3.3, 0.0]
    assert seconds("ads", 1) == [4.4, 4.4, 4.4, 4.4, 0.0]
    assert seconds("ads", 0) == [0.0] * 5
    assert seconds("unknown", 0) == [0.0] * 5


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20), st.lists(st.integers(0, 1000), max_size=50).map(sorted))
def test_ingest_times_agree_with_a_plain_search(make: Any, widths: list[int], events: list[int]) -> None:
    """For any cuts and any event times that never fall: the stamp of the one range that holds the event."""
    cuts = np.concatenate([[0], np.cumsum(widths)])
    log = [
        Delivery("purchases", START + int(low), START + int(high), 0, 1000 + index, index, False)
        for index, (low, high) in enumerate(pairwise(cuts))
    ]
    stamps = ingest_times(journal_of(make, log))("purchases", 0, START + np.array(events, np.int64))
    for event, stamp in zip(events, stamps.tolist(), strict=True):
        holders = [one.ingest_us for one in log if one.from_us <= START + event < one.to_us]
        assert stamp == (holders[0] if holders else 0)
