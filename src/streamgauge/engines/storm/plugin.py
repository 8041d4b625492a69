"""The plugin of Storm."""

from collections.abc import Mapping

from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.reach import reach_us, slide_us
from streamgauge.engines.jvm.plugin import JvmPlugin
from streamgauge.engines.storm.options import CAPABILITIES, COUNTS, LEAST_S


class StormPlugin(JvmPlugin):
    """Storm's spouts and bolts."""

    capabilities = CAPABILITIES
    conformance = "streamgauge.engines.storm.conformance:CONF"
    engine = "streamgauge.engines.storm.engine:StormEngine"
    least_s = LEAST_S
    counts = COUNTS

    def unseen_us(self, flow: Flow, options: Mapping[str, str]) -> int:
        """Its own windows acknowledge a tuple when a window closes that no longer has it."""
        slides_us = (slide_us(sink.input) or 0 for sink in flow.sinks)
        in_windows_us = (reach_us(flow) or 0) + max(slides_us) if options.get("windows") == "storm" else 0
        return super().unseen_us(flow, options) + in_windows_us
