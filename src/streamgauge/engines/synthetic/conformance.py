"""What the synthetic engine states for the conformance suite."""

from streamgauge.engines.conformance import Gap, TestConf, gaps

CONF = TestConf(
    gaps=gaps(
        "never", "it is there to try the instrument on, not to run everything",
        "lookup", "union", "session window", "window after session", "window by count", "running aggregate", "distinct",
        "distinct in a window", "top", "windowed join", "interval join", "interval join of equal times",
        "interval join of earlier rows", "interval join of later rows",
        "stateless process", "keyed process", "several sinks", "sinks of several modes",
    ),
    restart=Gap("never", "it keeps no state"),
)  # fmt: skip
