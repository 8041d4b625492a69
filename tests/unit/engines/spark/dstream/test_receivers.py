"""What Spark's receivers have brought, by Spark's own words."""

from __future__ import annotations

from streamgauge.engines.spark.dstream.receivers import ReceivedBlocks, blocks_in


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
    assert ReceivedBlocks((((10, 50), (20, 10)), (), ((10, 7),))).lines == (60, 0, 7)
