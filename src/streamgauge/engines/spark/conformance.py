"""What Spark's three execution modes state for the conformance suite."""

from collections.abc import Iterable

from streamgauge.engines.conformance import Gap, TestConf, gaps


def _lowered() -> Iterable[type]:
    from streamgauge.engines.spark.lowering.dataframe import kinds

    return kinds()


MICRO_BATCH = TestConf(counts_late_rows=True, lowered=_lowered)
REAL_TIME = TestConf(
    options={"trigger": "5 seconds"},
    generators=1,
    parallelisms=(4,),  # a shuffle needs two tasks at once
    gaps={
        **gaps(
            "notyet", "real-time mode does not support it",
            "lookup", "union", "session window", "window after session", "window by count", "distinct in a window",
            "top",
            "aggregate of aggregate", "windowed join", "interval join", "interval join of equal times",
            "interval join of earlier rows", "interval join of later rows", "stateless process", "keyed process",
        ),
        **gaps("notimpl", "it writes to one sink", "several sinks", "sinks of several modes"),
    },
    lowered=_lowered,
)  # fmt: skip
DSTREAM = TestConf(
    options={"batch_interval": "500ms"},
    gaps={
        **gaps(
            "never", "DStreams have no watermark",
            "session window", "window after session", "window by count", "distinct", "distinct in a window",
            "interval join", "interval join of earlier rows", "interval join of later rows",
            "interval join of equal times", "stateless process", "keyed process",
        ),
        **gaps("notimpl", "it writes to one sink", "several sinks", "sinks of several modes"),
    },
    restart=Gap("never", "its state is in memory"),
    lowered=_lowered,
)  # fmt: skip
