"""The plugin of Storm."""

from __future__ import annotations

from streamgauge.engines.jvm.plugin import JvmPlugin
from streamgauge.engines.storm.options import CAPABILITIES, COUNTS, LEAST_S


class StormPlugin(JvmPlugin):
    """Storm's spouts and bolts."""

    capabilities = CAPABILITIES
    conformance = "streamgauge.engines.storm.conformance:CONF"
    engine = "streamgauge.engines.storm.engine:StormEngine"
    least_s = LEAST_S
    counts = COUNTS
