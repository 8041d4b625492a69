"""The window aggregate by a keyed process, for windows that overlap many times. Does not load Spark.

Spark's own window, and also the merge of panes, make a row for each window: 6000 of each event. The process keeps panes
and reduces each window once (`dataflow.operators.sliding_window`).
"""

from __future__ import annotations

from streamgauge.core.errors import InputError
from streamgauge.core.schema import WINDOW_END, WINDOW_START
from streamgauge.dataflow import count_window, schema
from streamgauge.dataflow.nodes import Process, WindowAggregate
from streamgauge.dataflow.operators.sliding_window import REDUCED_BY, TIMES, SlidingWindow

WINDOWS_FROM = 100
"""Windows of an event from which the process is faster than merging panes."""


def sliding(node: WindowAggregate) -> Process | None:
    """The node as a keyed process; None if it has other aggregates than sums, counts, minima and maxima of columns."""
    available = schema.columns(node.input)
    columns = tuple(pair for pair in node.aggregates if pair[0] not in TIMES)
    try:
        aggregates = count_window.read(columns, node.keys, available, node.name)
    except InputError:
        return None
    if any(each.function not in REDUCED_BY for each in aggregates):
        return None
    types = schema.columns(node)
    names = (*node.keys, WINDOW_START, WINDOW_END, *(name for name, _ in columns))
    return Process(
        inputs=(node.input,),
        operator=SlidingWindow,
        reads=tuple(dict.fromkeys((*node.keys, *(each.column for each in aggregates if each.column != "*")))),
        gives=tuple((name, types[name]) for name in names),
        keys=node.keys,
        parameters=(
            ("range_us", node.window.range_us),
            ("slide_us", node.window.slide_us),
            ("keys", node.keys),
            ("aggregates", tuple((each.name, each.function, each.column) for each in aggregates)),
        ),
        identity=(*node.keys, WINDOW_START),
        reach_us=node.window.range_us,
        lineage=tuple((name, name) for name, _ in node.aggregates if name in TIMES),
        name=node.name,
    )
