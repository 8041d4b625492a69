"""What Flink states for the conformance suite."""

from streamgauge.engines.conformance import TestConf
from streamgauge.engines.jvm.conformance import NO_PYTHON, lowered

CONF = TestConf(
    gaps=NO_PYTHON,
    counts_late_rows=True,  # there are none: each partition has a watermark of its own
    lowered=lowered("flink"),
)
