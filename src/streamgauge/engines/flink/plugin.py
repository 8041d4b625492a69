"""The plugin of Flink."""

from streamgauge.engines.flink.options import ALWAYS_SET, CAPABILITIES, LEAST_S
from streamgauge.engines.jvm.plugin import JvmPlugin


class FlinkPlugin(JvmPlugin):
    """Flink's DataStream API."""

    capabilities = CAPABILITIES
    conformance = "streamgauge.engines.flink.conformance:CONF"
    engine = "streamgauge.engines.flink.engine:FlinkEngine"
    least_s = LEAST_S
    always_set = ALWAYS_SET
    commits = "checkpoint_interval"
