"""How a window operator is lowered, decided before Spark starts. Does not load Spark.

- By panes: each event is aggregated once, and panes are merged to windows. Only for mergeable aggregates.
- Sliding: a keyed process, for windows that overlap many times. Spark's own window, and also the merge of panes, make a
  row for each window: 6000 of each event. The process keeps panes and reduces each window once
  (`dataflow.operators.sliding_window`).
- Else Spark's own window.

Partials of panes, batches or stored state can be merged only if every aggregate is mergeable.
"""

from collections.abc import Mapping
from math import gcd

from streamgauge.core.errors import InputError
from streamgauge.core.schema import LINEAGE_TIMES, WINDOW_END, WINDOW_START
from streamgauge.dataflow import count_window, schema
from streamgauge.dataflow.expressions import check
from streamgauge.dataflow.nodes import Process, RunningAggregate, Window, WindowAggregate, WindowJoin
from streamgauge.dataflow.operators.sliding_window import REDUCED_BY, SlidingWindow

NO_DELAY = "0 seconds"
"""The watermark delay if no event can be late."""
MERGE_FUNCTIONS = ("sum", "min", "max")
"""The functions that merge partials."""
WINDOWS_FROM = 100
"""Windows of an event from which the process is faster than merging panes."""


def lowering_of(node: WindowAggregate | WindowJoin, choices: Mapping[str, str], structured: bool = True) -> str:
    """The lowering of an operator: the one requested by its name, else the best one.

    `structured`: whether Structured Streaming runs it, which can close panes and keep a process's state.
    """
    if (choice := choices.get(node.name, "auto")) != "auto":
        return choice
    if isinstance(node, WindowJoin):
        return "stream_stream"
    if structured and node.window.panes >= WINDOWS_FROM and sliding(node) is not None:
        return "sliding"
    return "panes" if not non_mergeable(node) or (structured and node.window.panes == 1) else "window"


def pane_width_us(window: Window) -> int:
    """The longest time span that lies in a window either whole or not at all."""
    return gcd(window.range_us, window.slide_us)


def merge_functions(node: WindowAggregate | RunningAggregate) -> dict[str, str | None]:
    """Aggregate name to the function that merges its partials; None without one."""
    available = schema.columns(node.input)
    return {name: check.checked(text, available, node.name).combine for name, text in node.aggregates}


def non_mergeable(node: WindowAggregate | RunningAggregate) -> list[str]:
    """The aggregates of a node that cannot be merged from partials."""
    return [name for name, how in merge_functions(node).items() if how not in MERGE_FUNCTIONS]


def sliding(node: WindowAggregate) -> Process | None:
    """The node as a keyed process; None if it has other aggregates than sums, counts, minima and maxima of columns."""
    available = schema.columns(node.input)
    columns = tuple(pair for pair in node.aggregates if pair[0] not in LINEAGE_TIMES)
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
        lineage=tuple((name, name) for name, _ in node.aggregates if name in LINEAGE_TIMES),
        name=node.name,
    )
