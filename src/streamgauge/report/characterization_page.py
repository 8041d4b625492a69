"""A characterization as one HTML file: what each operator does and takes, the instances it follows from, the memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamgauge.report import characterization_plots
from streamgauge.report.characterization_terminal import FORMULA, cells, change, reasons, second_weights, thesis, ways
from streamgauge.report.templates import template
from streamgauge.units import flatten, format_size

Found = Mapping[str, Any]


def render(found: Found) -> str:
    """The page as text."""
    second = second_weights(found)
    return template("characterization.html.j2").render(
        c=found,
        second=second,
        size="{slices:,} slices of {slice_events:,} events".format(**found["input"]),
        rows=[(row["type"], cells(row, found["weights"], second)) for row in found["operators"]],
        reasons=reasons(found["operators"]),
        times=characterization_plots.times(found["operators"]),
        memory=characterization_plots.memory(found["memory"]),
        memory_figures=_memory_figures(found["memory"]),
        ways=ways(found),
        thesis=thesis(found),
        formula=FORMULA,
        compared=any(row["thesis"] for row in found["operators"]),
        applied=change(found["applied"]) if found["applied"] else None,
        environment=flatten(found["environment"]),
    )


def _memory_figures(memory: Found | None) -> list[tuple[str, str]]:
    labels = characterization_plots.MEMORY
    return [(label, format_size(memory[name])) for name, label in labels.items()] if memory else []
