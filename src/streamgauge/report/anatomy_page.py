"""An anatomy as one HTML file: where a record's time goes, trial beside trial, and how well that is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamgauge.report import anatomy_plots
from streamgauge.report.anatomy_terminal import heading, meanings, remarks, rows
from streamgauge.report.templates import template
from streamgauge.units import flatten

Found = Mapping[str, Any]


def render(found: Found) -> str:
    """The page as text."""
    return template("anatomy.html.j2").render(
        a=found,
        waterfall=anatomy_plots.waterfall(found["trials"]),
        spread=anatomy_plots.spread(found["trials"]),
        windows=anatomy_plots.by_window(found["trials"]),
        headings=[heading(trial) for trial in found["trials"]],
        rows=list(rows(found)),
        meanings=meanings(found),
        remarks=[(heading(trial), list(remarks(trial))) for trial in found["trials"]],
        environment=flatten(found["environment"]),
    )
