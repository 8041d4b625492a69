"""Counts of all events so far, or of the events of a window, which bounds the state."""

from __future__ import annotations

from streamgauge.dataflow.builder import Names, Stream, tumble

MEANING = "count in windows of so long, so that the state has an end; 0: since the beginning, as the thesis does"


def count_by_key(rows: Stream, window_s: float, *, keys: Names, column: str, name: str) -> Stream:
    """The number of rows per key, as updates; with a window, one row per key when it closes."""
    if window_s:
        return rows.window(tumble(window_s), keys=keys).aggregate({column: "count(*)"}, name=name)
    return rows.running({column: "count(*)"}, keys=keys, name=name)
