"""What Flink states for the conformance suite."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from streamgauge.dataflow import nodes
from streamgauge.dataflow.nodes import Source
from streamgauge.engines.conformance import TestConf, gaps


def _lowered() -> Iterable[type]:
    """The kinds that the job itself has a case for."""
    text = (Path(__file__).parent / "scala" / "Flink.scala").read_text()
    return [Source, *(getattr(nodes, name) for name in re.findall(r'case "(\w+)" =>', text))]


CONF = TestConf(
    gaps=gaps("notimpl", "it runs no Python yet", "stateless process", "keyed process", "window by count"),
    counts_late_rows=True,  # there are none: each partition has a watermark of its own
    lowered=_lowered,
)
