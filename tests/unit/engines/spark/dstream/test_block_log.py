"""Spark's log of the blocks that it was told of: each with its time, and nothing else that is logged."""

from __future__ import annotations

from pathlib import Path

from streamgauge.engines.spark.dstream.block_log import BLOCKS_REPORTED, JAVA, blocks_stored, conflicts, options


def test_a_block_was_told_of_at_the_time_of_its_line(tmp_path: Path) -> None:
    """As Spark 4.3 writes it; half a line, and lines of anything else, are passed over."""
    lines = [
        "1795565482616 Stream 0 received block input-0-1795565482500",
        "1795565482618 Stream 1 received block input-1-1795565482500",
        "1795565482700 Deleting batches: 1795565482000 ms",
        "1795565482764 Stream 0 received bl",
    ]
    (tmp_path / "blocks.log").write_text("\n".join(lines))
    assert blocks_stored(tmp_path) == {(0, 1795565482500): 1795565482616000, (1, 1795565482500): 1795565482618000}


def test_spark_is_told_where_it_finds_how(tmp_path: Path) -> None:
    """Beside its own configuration, in the folder that takes the log."""
    asked = options(tmp_path)
    assert asked[BLOCKS_REPORTED]
    own, ours = asked[JAVA].removeprefix("-Dlog4j2.configurationFile=").split(",")
    assert own.endswith("log4j2-defaults.properties")
    how = Path(ours.removeprefix("file://")).read_text()
    assert f"appender.blocks.fileName = {tmp_path / 'blocks.log'}" in how


def test_what_it_sets_is_not_to_be_given(tmp_path: Path) -> None:
    """Each by name, and nothing else."""
    given = {**options(tmp_path), "spark.driver.memory": "1g"}
    assert {problem.setting for problem in conflicts(given)} == {f"option {BLOCKS_REPORTED}", f"option {JAVA}"}
