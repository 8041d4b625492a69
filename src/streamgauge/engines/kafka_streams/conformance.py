"""What Kafka Streams states for the conformance suite."""

from __future__ import annotations

from streamgauge.engines.conformance import Gap, TestConf
from streamgauge.engines.jvm.conformance import NO_PYTHON, lowered

CONF = TestConf(
    options={"watermark_delay": "5s"},  # on a machine that other tests use too, partitions are far apart
    gaps=NO_PYTHON,
    restart=Gap("notimpl", "rows since the last commit are added twice, because it promises at least once only"),
    counts_late_rows=True,
    lowered=lowered("kafka_streams/scala/Streams.scala"),
)
