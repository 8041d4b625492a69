"""The lines of a histogram log."""

from streamgauge.artifacts.hlog import Interval, read

LOG = """#[Histogram log format version 1.3]
#[StartTime: 1767323045.000000 (seconds since epoch)]
"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"
Tag=event_time/dear,1767323045.000,1.000,5.120,HISTFAAA+/=
1767323046.500,20.000,7.000,HISTFBBB

Tag=broken,1767323046.000
"""


def test_intervals_are_read_and_all_else_passed_over() -> None:
    """With a tag and without; comments, the legend and half a line are no intervals."""
    assert list(read(LOG)) == [
        Interval("event_time/dear", 1767323045.0, "HISTFAAA+/="),
        Interval("", 1767323046.5, "HISTFBBB"),
    ]
