"""A latency in stages: they follow each other, and together they are the latency, whatever the stamps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.engines.latency_probe import Timestamp, first_of_each, stage_times
from streamgauge.studies.latency_breakdown.decompose import contradicted_share, doubts, stage_figures


def of(*times: int) -> np.ndarray:
    return np.array(times, np.int64)


def test_a_way_is_worked_out_by_hand() -> None:
    """Two records of one batch, which began at 30: the later one was not there yet."""
    moments = [
        Timestamp("generated", of(20, 45)),
        Timestamp("waiting", of(30, 30), True),
        Timestamp("planned", of(50, 50)),
    ]
    times = stage_times(of(10, 40), moments, of(100, 110), "written")
    assert times.names == ("generated", "waiting", "planned", "written")
    assert times.spent_us.tolist() == [[10, 10, 20, 50], [5, 0, 5, 60]]
    assert (times.latencies_us.tolist(), times.contradicted_us.tolist()) == ([90, 70], [0, 0])


def test_stamps_that_contradict_each_other_are_reported() -> None:
    """Planned before it was generated, by 7; read after it was written, by 5."""
    stage_table = stage_times(
        of(0), [Timestamp("generated", of(10)), Timestamp("planned", of(3)), Timestamp("read", of(25))], of(20), "rest"
    )
    assert stage_table.spent_us.tolist() == [[10, 0, 10, 0]]
    assert stage_table.contradicted_us.tolist() == [12]
    assert contradicted_share(stage_table) == pytest.approx(12 / 20)


def test_a_stamp_contradicts_no_other_within_what_it_is_exact_to() -> None:
    """It is moved all the same, or a stage would be negative; beyond that the rest counts."""
    moments = [Timestamp("generated", of(10, 10)), Timestamp("in Kafka", of(6, 3), within_us=5)]
    stage_table = stage_times(of(0, 0), moments, of(20, 20), "rest")
    assert stage_table.spent_us.tolist() == [[10, 0, 10], [10, 0, 10]]
    assert stage_table.contradicted_us.tolist() == [0, 2]


TIMES = st.integers(0, 10**6)


@given(st.lists(st.tuples(TIMES, TIMES, TIMES, TIMES), min_size=1, max_size=20), st.booleans())
def test_stages_are_the_latency(rows: list[tuple[int, int, int, int]], may: bool) -> None:
    """To the microsecond, and none is negative, even where stamps lie."""
    event, first, second, more = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    stage_table = stage_times(event, [Timestamp("a", first), Timestamp("b", second, may)], event + more, "c")
    assert (stage_table.spent_us >= 0).all()
    assert stage_table.latencies_us.tolist() == more.tolist()


def test_percentiles_need_batches_that_carry_them() -> None:
    """A hundred for a p99; a mean needs none. Shares sum to one."""
    stage_table = stage_times(of(0, 0), [Timestamp("a", of(10, 30))], of(40, 40), "b")
    stages = stage_figures(stage_table, 10)
    assert [stage.mean_us for stage in stages] == [20.0, 20.0]
    assert sum(stage.share for stage in stages) == pytest.approx(1.0)
    assert (stages[0].p50_us, stages[0].p99_us) == (20.0, None)
    assert stage_figures(stage_table, 100)[0].p99_us is not None


def test_the_first_of_each_batch_is_its_earliest_event() -> None:
    """Wherever it stands."""
    assert first_of_each(of(7, 7, 8, 8), of(5, 4, 9, 10)).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("remainder_share", "contradicted_share", "expected"),
    [(-0.03, 0.001, "the sum of the stages differs"), (0.001, 0.03, "contradict each other")],
)
def test_what_does_not_agree_is_doubted(remainder_share: float, contradicted_share: float, expected: str) -> None:
    """And nothing else is."""
    assert list(doubts(0.001, 0.001)) == []
    (doubt,) = doubts(remainder_share, contradicted_share)
    assert expected in doubt
