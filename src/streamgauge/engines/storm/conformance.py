"""What Storm states for the conformance suite."""

from streamgauge.engines.conformance import Gap, TestConf
from streamgauge.engines.jvm.conformance import NO_PYTHON, lowered

CONF = TestConf(
    # Its tasks look for tuples in turns and wake each other, and in these trials it has up to sixty on two cores.
    options={"watermark_interval": "100ms"},
    gaps=NO_PYTHON,
    restart=Gap("never", "state is in the heap of its workers, and lost with them"),
    counts_late_rows=True,  # there are none: each partition has a watermark of its own
    lowered=lowered("storm"),
)
