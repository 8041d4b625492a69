"""A comparison as one HTML file: both sides, the interval of each difference, the gates, and what is not the same."""

from __future__ import annotations

from pathlib import Path

from streamgauge.artifacts.run_folder import Place, write_text
from streamgauge.report import difference_plot, words
from streamgauge.report.templates import template
from streamgauge.result import Comparison
from streamgauge.units import format_percent

HTML = Place("--html", "--html NAME.html")


def write_comparison(path: Path, comparison: Comparison) -> None:
    """Writes the page to `path`, whole or not at all; `InputError` where that is no place to write to."""
    write_text(path, render(comparison), HTML)


def render(comparison: Comparison) -> str:
    """The page as text."""
    figures, gates = comparison.figures, comparison.gates
    return template("comparison.html.j2").render(
        c=comparison,
        picture=difference_plot.differences(figures, gates),
        sides=(("A", comparison.a), ("B", comparison.b)),
        headline=words.compared(comparison),
        failures=words.compared_failures(comparison),
        sentences=words.compared_sentences(comparison),
        confidence=format_percent(100 * comparison.confidence),
        several=max(len(comparison.a.runs), len(comparison.b.runs)) > 1,
    )
