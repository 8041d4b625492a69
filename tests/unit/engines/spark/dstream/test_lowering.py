"""Which windows close in a batch, what later batches need, and what Spark's receivers have brought by its own words."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.dataflow.nodes import Window
from streamgauge.engines.spark.dstream.lowering import Batch, closing
from streamgauge.engines.spark.dstream.receivers import blocks_in, lines_of

CUTS = st.lists(st.integers(1, 500), min_size=1, max_size=20, unique=True).map(sorted)


def test_windows_close_when_all_their_events_are_there() -> None:
    """At their ends, and not a microsecond earlier."""
    window = Window(range_us=8, slide_us=4)
    found = closing(window, Batch(0, 15, 16, 16))
    assert (found.first_us, found.last_us, found.open_us) == (16, 16, 12)
    assert not closing(window, Batch(0, 16, 19, 19)).any


@given(CUTS, st.integers(1, 30), st.integers(1, 30))
def test_every_window_closes_in_one_batch(cuts: list[int], range_us: int, slide_us: int) -> None:
    """However batches are cut; and one that is open begins no earlier than what is kept for it."""
    window, last_us = Window(range_us, slide_us), cuts[-1]
    closed: list[int] = []
    for number, (from_us, to_us) in enumerate(pairwise([0, *cuts])):
        found = closing(window, Batch(number, from_us, to_us, to_us))
        closed += range(found.first_us, found.last_us + 1, slide_us)
        assert found.open_us + range_us > to_us
    assert closed == [end for end in range(1, last_us + 1) if (end - range_us) % slide_us == 0]


def test_blocks_have_a_number_and_lines() -> None:
    """As Spark 4.3 prints what it keeps of them, in their order."""
    text = (
        "ReceivedBlockInfo(0,Some(50),None,BlockManagerBasedStoreResult(input-0-1795564798400,Some(50)))\n"
        "ReceivedBlockInfo(0,Some(10),None,BlockManagerBasedStoreResult(input-0-1795564798450,Some(10)))"
    )
    assert list(blocks_in(text)) == [(1795564798400, 50), (1795564798450, 10)]
    assert list(blocks_in("")) == []


def test_lines_are_those_of_all_blocks() -> None:
    """Receiver by receiver."""
    assert lines_of((((10, 50), (20, 10)), (), ((10, 7),))) == (60, 0, 7)
