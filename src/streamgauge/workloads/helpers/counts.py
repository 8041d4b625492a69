"""Counts of all events so far, or of those of a window: the state of the second has an end."""

from __future__ import annotations

from streamgauge.dataflow.builder import Names, Stream, tumble

MEANING = "count in windows of so long, so that the state has an end; 0: since the beginning, as the thesis does"


def counted(rows: Stream, window_s: float, *, keys: Names, column: str, name: str) -> Stream:
    """How many rows each key had, as updates; with a window one row for each of its keys, when it closes."""
    if window_s:
        return rows.window(tumble(window_s), keys=keys).aggregate({column: "count(*)"}, name=name)
    return rows.running({column: "count(*)"}, keys=keys, name=name)
