"""The plugin of Flink."""

from streamgauge.engines.flink.options import CAPABILITIES, LEAST_S
from streamgauge.engines.jvm.plugin import JvmPlugin


class FlinkPlugin(JvmPlugin):
    """Flink's DataStream API."""

    capabilities = CAPABILITIES
    conformance = "streamgauge.engines.flink.conformance:CONF"
    engine = "streamgauge.engines.flink.engine:FlinkEngine"
    least_s = LEAST_S
    commits = "checkpoint_interval"
