"""What engines on a JVM state alike for the conformance suite."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from streamgauge.dataflow import nodes
from streamgauge.dataflow.nodes import Source
from streamgauge.engines.conformance import gaps
from streamgauge.engines.jvm.plugin import REFUSED

NO_PYTHON = gaps("notimpl", REFUSED["Process"], "stateless process", "keyed process", "window by count")
ENGINES = Path(__file__).parents[1]


def lowered(folder: str) -> Callable[[], Iterable[type]]:
    """The kinds that our part of every job has a case for, and those of an engine's own."""
    return partial(_cases, ("jvm/scala/Plan.scala", f"{folder}/scala/Lowering.scala"))


def _cases(files: Iterable[str]) -> list[type]:
    text = "".join((ENGINES / file).read_text() for file in files)
    return [Source, *(getattr(nodes, name) for name in re.findall(r'case "(\w+)" =>', text))]
