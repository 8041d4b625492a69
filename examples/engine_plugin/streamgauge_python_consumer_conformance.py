"""What the example engine states for the conformance suite: `pytest --streamgauge-engine python-consumer`."""

from __future__ import annotations

from streamgauge.engines.conformance import Gap, TestConf, gaps

CONF = TestConf(
    gaps=gaps(
        "notimpl", "it only filters",
        "select", "null and edge values", "explode", "lookup", "union", "tumbling window", "hopping window",
        "session window", "window after session",
        "window by count", "running aggregate", "distinct", "distinct in a window", "top",
        "aggregate of aggregate", "windowed join", "interval join", "interval join of equal times",
        "interval join of earlier rows", "interval join of later rows",
        "stateless process", "keyed process", "several sinks", "sinks of several modes",
        "edge rows", "every function", "every aggregate", "null and odd keys",
    ),
    restart=Gap("notimpl", "it does not keep how far it was"),
)  # fmt: skip
