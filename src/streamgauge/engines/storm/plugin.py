"""The plugin of Storm."""

import math
from collections.abc import Iterable, Mapping

from streamgauge.core.clock import US
from streamgauge.core.errors import Problem, Rule, broken
from streamgauge.core.plugin_options import with_defaults
from streamgauge.dataflow.graph import operators
from streamgauge.dataflow.nodes import Flow, Window, WindowJoin
from streamgauge.dataflow.reach import reach_us, slide_us
from streamgauge.engines.jvm.plugin import JvmPlugin
from streamgauge.engines.spi import StartRequest
from streamgauge.engines.storm.options import (
    ALWAYS_SET,
    CAPABILITIES,
    COUNTS,
    LEAST_S,
    PENDING_BYTES,
    SKEW_S,
    pending,
)

ON_THE_WAY_S = 1.0
"""What may be on its way to a window, beside the tuples that windows hold."""


class StormPlugin(JvmPlugin):
    """Storm's spouts and bolts."""

    capabilities = CAPABILITIES
    conformance = "streamgauge.engines.storm.conformance:CONF"
    engine = "streamgauge.engines.storm.engine:StormEngine"
    least_s = LEAST_S
    always_set = ALWAYS_SET
    counts = COUNTS

    def request_problems(self, request: StartRequest) -> Iterable[Problem]:
        """Also windows that hold more tuples than may be on their way, after which a spout sends none for good."""
        problems = list(super().request_problems(request))
        yield from problems
        if problems or request.flow is None or not (kept_us := self.kept_us(request)):
            return
        chosen = with_defaults(request.options, CAPABILITIES.settings)
        for one in _windows(request.flow):
            rule = "must be own where a range is no multiple of its slide, because Storm's own windows end at those"
            shown = f"storm with a range of {one.range_us / US:g} s and a slide of {one.slide_us / US:g} s"
            yield from broken(Rule(one.range_us % one.slide_us == 0, "option windows", rule, shown, "leave it out"))
        if chosen["ackers"] == "0":
            return
        seconds = kept_us / US + ON_THE_WAY_S
        needed, limit = math.ceil(request.rate_per_s * seconds), pending(chosen)
        if needed > limit:
            memory = f"memory={math.ceil(needed * PENDING_BYTES / 2**20)}MiB"
            more = memory if chosen["pending"] == "auto" else f"pending={needed}"
            rule = (
                f"must be at least {needed:,} at {request.rate_per_s:,.0f} events/s, because Storm's own windows hold "
                f"the tuples of {seconds:g} s, and its spouts would stop for good"
            )
            yield Problem("option pending", rule, f"{limit:,}", f"--option {more}, or a lower rate, or shorter windows")

    def watermark_delay_us(self, request: StartRequest) -> int:
        """Its own windows close late where tuples may be apart, and windows of windows when the next ones close."""
        if request.flow is None or not _in_windows_us(request.flow, request.options):
            return 0
        windows = _windows(request.flow)
        joins = any(isinstance(node, WindowJoin) for node in operators(request.flow))
        apart_us = round(SKEW_S * US) if request.partitions > 1 or len(windows) > 1 or joins else 0
        return apart_us * len(windows) + max((one.slide_us for one in windows), default=0) * (len(windows) > 1)

    def kept_us(self, request: StartRequest) -> int:
        in_windows_us = _in_windows_us(request.flow, request.options) if request.flow else 0
        return in_windows_us + self.watermark_delay_us(request)

    def unseen_us(self, request: StartRequest) -> int:
        """Its own windows acknowledge a tuple when a window closes that no longer has it."""
        return super().unseen_us(request) + self.kept_us(request)


def _windows(flow: Flow) -> list[Window]:
    return [one for node in operators(flow) if isinstance(one := getattr(node, "window", None), Window)]


def _in_windows_us(flow: Flow, options: Mapping[str, str]) -> int:
    """For how long Storm's own windows hold a tuple; 0 if they do not run."""
    slides_us = (slide_us(sink.input) or 0 for sink in flow.sinks)
    return (reach_us(flow) or 0) + max(slides_us) if options.get("windows") == "storm" else 0
