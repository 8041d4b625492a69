"""The lines of a histogram log."""

import pytest

from streamgauge.artifacts.hlog import Interval, read

LOG = """#[Histogram log format version 1.3]
#[StartTime: 1767323045.000000 (seconds since epoch)]
"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
Tag=event_time/dear,1767323045.000,1.000,5.120,HISTFAAA+/=
1767323046.500,20.000,7.000,HISTFBBB

"""


def test_intervals_are_read_and_all_else_passed_over() -> None:
    """With a tag and without; comments and the legend are no intervals."""
    assert list(read(LOG)) == [
        Interval("event_time/dear", 1767323045.0, "HISTFAAA+/="),
        Interval("", 1767323046.5, "HISTFBBB"),
    ]


def test_half_a_line_is_refused() -> None:
    with pytest.raises(ValueError, match="no interval"):
        list(read(LOG + "Tag=event_time,1767323046.000"))


@pytest.mark.parametrize("encoded", ["HISTnonsense", "HIST", "HISTFAAAAJ54nC1Luw3CQAw9v"])
def test_half_a_histogram_is_refused(encoded: str) -> None:
    """Whatever its decoder raises."""
    with pytest.raises(ValueError, match="decoded"):
        Interval("event_time", 0.0, encoded).counts()
