"""The plugin of Storm."""

import math
from collections.abc import Iterable, Mapping

from streamgauge.core.clock import US
from streamgauge.core.errors import Problem, Rule, broken
from streamgauge.core.plugin_options import with_defaults
from streamgauge.dataflow.graph import inputs, operators, sources, walk
from streamgauge.dataflow.nodes import Explode, Flow, InWindows, Lookup, Node, Select, Source, Where, Window
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

ROW_BY_ROW = (Source, Select, Where, Explode, InWindows, Lookup)
"""The kinds that leave rows in the task that has them."""
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
        for _, one in _windows(request.flow):
            rule = "must be own where a range is no multiple of its slide, because Storm's own windows end at those"
            shown = f"storm with a range of {one.range_us / US:g} s and a slide of {one.slide_us / US:g} s"
            yield from broken(Rule(one.range_us % one.slide_us == 0, "option windows", rule, shown, "leave it out"))
        if chosen["ackers"] == "0":
            return
        seconds = kept_us / US + ON_THE_WAY_S
        # Each stream has its share of the limit, and nothing says how many of the events are its own.
        streams = len(sources(request.flow))
        needed, limit = math.ceil(request.rate_per_s * seconds) * streams, pending(chosen)
        if needed > limit:
            memory = f"memory={math.ceil(needed * PENDING_BYTES / 2**20)}MiB"
            more = memory if chosen["pending"] == "auto" else f"pending={needed}"
            each = f", any of {streams} streams may have them all" if streams > 1 else ""
            rule = (
                f"must be at least {needed:,} at {request.rate_per_s:,.0f} events/s, because Storm's own windows hold "
                f"the tuples of {seconds:g} s{each}, and its spouts would stop for good"
            )
            yield Problem("option pending", rule, f"{limit:,}", f"--option {more}, or a lower rate, or shorter windows")

    def watermark_delay_us(self, request: StartRequest) -> int:
        """Its own windows close late where tuples may be apart, and windows of windows when the next ones close."""
        if request.flow is None or not _in_windows_us(request.flow, request.options):
            return 0
        windows = _windows(request.flow)
        apart = sum(request.partitions > 1 or _is_apart(node) for node, _ in windows)
        next_us = max(one.slide_us for _, one in windows) if len(windows) > 1 else 0
        return round(SKEW_S * US) * apart + next_us

    def kept_us(self, request: StartRequest) -> int:
        in_windows_us = _in_windows_us(request.flow, request.options) if request.flow else 0
        return in_windows_us + self.watermark_delay_us(request)

    def unseen_us(self, request: StartRequest) -> int:
        """Its own windows acknowledge a tuple when a window closes that no longer has it."""
        return super().unseen_us(request) + self.kept_us(request)


def _windows(flow: Flow) -> list[tuple[Node, Window]]:
    """The nodes that have windows, with them."""
    found = ((node, getattr(node, "window", None)) for node in operators(flow))
    return [(node, window) for node, window in found if isinstance(window, Window)]


def _is_apart(node: Node) -> bool:
    """Whether its rows come from several tasks, of one partition too; the lowering says the same."""
    before = inputs(node)
    return len(before) > 1 or not all(isinstance(each, ROW_BY_ROW) for each in walk(*before))


def _in_windows_us(flow: Flow, options: Mapping[str, str]) -> int:
    """For how long Storm's own windows hold a tuple; 0 if they do not run."""
    return max(_held_us(sink.input) for sink in flow.sinks) if options.get("windows") == "storm" else 0


def _held_us(node: Node) -> int:
    """A window gives a tuple away when the first one closes that no longer has it."""
    window = getattr(node, "window", None)
    own_us = window.range_us + window.slide_us if isinstance(window, Window) else 0
    return own_us + max(map(_held_us, inputs(node)), default=0)
