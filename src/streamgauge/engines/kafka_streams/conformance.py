"""What Kafka Streams states for the conformance suite."""

from streamgauge.engines.conformance import Gap, TestConf
from streamgauge.engines.jvm.conformance import NO_PYTHON, lowered

CONF = TestConf(
    generators=1,  # one partition: on a busy machine several are further apart than any delay
    options={"task_idle": "30s"},
    parallelisms=(1, 2),
    gaps=NO_PYTHON,
    restart=Gap("notimpl", "windows add rows since the last commit twice, because it promises at least once only"),
    counts_late_rows=True,
    lowered=lowered("kafka_streams"),
)
