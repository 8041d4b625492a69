"""A comparison in the terminal: each figure on both sides with its difference, the gates, and what is not the same."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamgauge.report import words
from streamgauge.report.terminal import console, say, typed
from streamgauge.result import Comparison, Difference

SAYS_STYLES = {"better": "green", "worse": "red", "no_difference": "dim", "unknown": "yellow"}
STATE_STYLES = {"passed": "bold green", "failed": "bold red", "unknown": "bold yellow"}


def show_comparison(comparison: Comparison, page: Path | None = None, on: Console | None = None) -> None:
    """The whole comparison, and where its page is; nothing here decides anything."""
    to = on or console()
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        say(to, (f"{name}  ", "bold"), words.side(side, comparison.kind))
    say(to, "")
    to.print(_figures(comparison))
    say(to, "")
    for warning in comparison.warnings:
        say(to, f"{'warning':<14}{warning}")
    for one in comparison.not_the_same:
        say(to, (f"{'not the same':<14}", "yellow"), words.not_the_same(one))
    if not comparison.not_the_same:
        say(to, f"{'the same':<14}workload, parameters, settings, isolation and machine")
    for gate in comparison.gates:
        say(to, (f"{gate.state:<14}", STATE_STYLES[gate.state]), (gate.rule, "bold"), f"   {gate.sentence}")
    if page is not None:
        say(to, f"{'page':<14}{page}")


def _figures(comparison: Comparison) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    headings = ("", "A", "B", "B against A", f"{words.percent(100 * comparison.confidence)} interval", "")
    for place, heading in enumerate(headings):
        table.add_column(typed(heading), justify="right" if 0 < place < 5 else "left", no_wrap=0 <= place < 5)
    for figure in comparison.figures:
        table.add_row(*_cells(figure))
    return table


def _cells(figure: Difference) -> tuple[Text, ...]:
    plain = (
        figure.label,
        words.measured(figure.a, figure.unit),
        words.measured(figure.b, figure.unit),
        words.signed(figure.difference, figure.share, figure.unit),
        words.difference_interval(figure),
    )
    said = Text(typed(words.SAYS[figure.says]), SAYS_STYLES[figure.says])
    if figure.reason:
        said.append(typed(f": {figure.reason}"), "dim")
    return (*(Text(typed(cell)) for cell in plain), said)
