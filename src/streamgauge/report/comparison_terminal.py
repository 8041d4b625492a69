"""A comparison in the terminal: each figure on both sides with its difference, the gates, and what is not the same."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamgauge import labels
from streamgauge.report import words
from streamgauge.report.terminal import console, say
from streamgauge.result import Comparison, Difference
from streamgauge.units import format_percent, format_quantity, format_signed

SAYS_STYLES = {"better": "green", "worse": "red", "no_difference": "dim", "unknown": "yellow"}
_SAYS = {"better": "better", "worse": "worse", "no_difference": "none shown", "unknown": "unknown"}
"""`words.SAYS`, as short as its column."""
_PERCENTILES = "percentiles: each side's is the mean of the runs' own (p99: mean of the runs' p99)"
STATE_STYLES = {"passed": "bold green", "failed": "bold red", "unknown": "bold yellow"}


def show_comparison(comparison: Comparison, page: Path | None = None, on: Console | None = None) -> None:
    """The whole comparison, and where its page is; nothing here decides anything."""
    to = on or console()
    say(to, (words.compared(comparison), "bold"))
    for failure in words.compared_failures(comparison):
        say(to, (failure, "bold red"))
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        say(to, (f"{name}  ", "bold"), words.side(side, comparison.kind))
    for one in comparison.not_the_same:
        say(to, (f"{'not the same':<14}", "yellow"), words.not_the_same(one))
    say(to, "")
    to.print(_figures(comparison))
    if any(labels.OF_THE_RUNS in figure.label for figure in comparison.figures):
        say(to, (f"  {_PERCENTILES}", "dim"))
    for reason, figures in _reasons(comparison).items():
        say(to, (f"  {', '.join(figures)}: {reason}", "dim"))
    say(to, "")
    for warning in comparison.warnings:
        say(to, f"{'warning':<14}{warning}")
    if not comparison.not_the_same:
        say(to, f"{'the same':<14}workload, parameters, settings, isolation and machine")
    for gate in comparison.gates:
        say(to, (f"{gate.state:<14}", STATE_STYLES[gate.state]), (gate.rule, "bold"), f"   {gate.sentence}")
    if page is not None:
        say(to, f"{'page':<14}{page}")


def _figures(comparison: Comparison) -> Table:
    """Everything that fits 80 columns; reasons, which do not, stand below it."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    interval = f"{format_percent(100 * comparison.confidence)} interval"
    for place, heading in enumerate(("", "A", "B", "B to A", interval, "B is")):
        table.add_column(heading, justify="right" if 0 < place < 5 else "left", no_wrap=place != 4)
    for figure in comparison.figures:
        table.add_row(*_cells(figure))
    return table


def _cells(figure: Difference) -> tuple[Text, ...]:
    plain = (
        _label(figure),
        format_quantity(figure.a, figure.unit).replace(" events/s", "/s"),
        format_quantity(figure.b, figure.unit).replace(" events/s", "/s"),
        format_signed(figure.difference, figure.share, figure.unit),
        labels.difference_interval(figure),
    )
    return (*(Text(cell) for cell in plain), Text(_SAYS[figure.says], SAYS_STYLES[figure.says]))


def _label(figure: Difference) -> str:
    return words.short_label(figure).replace(labels.LATENCIES["processing_time"], "processing")


def _reasons(comparison: Comparison) -> dict[str, list[str]]:
    """Each reason once, with the figures it holds for."""
    found: dict[str, list[str]] = {}
    for figure in comparison.figures:
        if figure.reason:
            found.setdefault(figure.reason, []).append(_label(figure))
    return found
