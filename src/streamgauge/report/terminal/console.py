"""Terminal output: answers on stdout; progress and searches on stderr.

On a terminal the progress is one line rewritten in place; elsewhere, a plain line every few seconds of the run.
NO_COLOR turns styles off. This module decides nothing.
"""

import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Self

import rich.table
from rich.console import Console
from rich.live import Live
from rich.text import Text

from streamgauge.core.formatting import NONE, format_rate, format_us
from streamgauge.core.output import print_answer
from streamgauge.core.trial import TrialSnapshot
from streamgauge.report.document_blocks import GLOSSARY, Block, Document, Drawing, Figure, Table
from streamgauge.report.documents import run_summary
from streamgauge.report.terminal.lines import AnswerConsole, console, say
from streamgauge.results.run import Result
from streamgauge.results.search import TrialSummary

PLAIN_EVERY_S = 5.0
"""Seconds between two plain lines. A new phase or note of a run is always shown."""

STYLES = {
    "sustained": "bold green",
    "not_sustained": "bold red",
    "undecided": "bold yellow",
    "invalid": "bold magenta",
    "interrupted": "bold",
}
_INDENT = "  "
_LABEL = 12
"""Width of a name, in characters, before its text."""
_CELLS = {"sustained": "green", "not_sustained": "red", "undecided": "yellow"}
_KINDS = {"heading": "bold", "note": "dim", "warning": ""}
_LISTED = [(n, column) for n, column in enumerate(run_summary.TRIAL_COLUMNS) if column.short != ""]
"""The columns of a search's trials that fit the terminal."""
_TIMED = ("start", "verification")
"""Phases without load whose time is known."""


def progress_console(quiet: bool) -> Console:
    """The console for progress, which shows nothing if `quiet`."""
    return Console(quiet=True, force_terminal=False) if quiet else console()


class _Progress:
    """A context manager for progress: one line rewritten in place, or plain lines if that is impossible."""

    _live: Live | None = None
    _about: tuple[str, ...] = ()
    _shown_s = 0.0

    def __init__(self, on: Console | None = None) -> None:
        self._console = on or console()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def show(self, line: str, at_s: float, *about: str) -> None:
        """Shows `line`; a plain line only every few seconds, except one `about` something else."""
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            if self._live is None:
                self._live = Live(console=self._console, auto_refresh=False, transient=True)
                self._live.start()
            self._live.update(Text(line, no_wrap=True, overflow="ellipsis"), refresh=True)
        elif about != self._about or not 0 <= at_s - self._shown_s < PLAIN_EVERY_S:
            self._about, self._shown_s = about, at_s
            say(self._console, line)

    def close(self) -> None:
        """Removes the progress line, so that the next output replaces it."""
        if self._live is not None:
            self._live.stop()
            self._live = None


class StepView(_Progress):
    """The progress of steps. Plain lines come every few seconds; short work shows none."""

    def __init__(self, on: Console | None = None, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__(on)
        self._now_s = now_s
        self._began_s = self._shown_s = now_s()

    def update(self, step: str) -> None:
        """Shows the current step in one line."""
        self.show(step, self._now_s())


class InputView(StepView):
    """The progress of writing an input."""

    def written(self, written: int, planned: int) -> None:
        """Shows how many of the planned events are written. After a plain line the last one comes too."""
        is_end = written >= planned and self._shown_s > self._began_s
        text = f"written {format_rate(written, 'events')} of {format_rate(planned, 'events')}"
        self.show(text, self._now_s(), *["end"] * is_end)


class SelfTestView(StepView):
    """The progress of a self-test: a line for each trial and check, and the state of the running trial."""

    def line(self, text: str) -> None:
        """Prints a permanent line."""
        self.close()
        say(self._console, text)
        self._shown_s = self._now_s()

    def trial(self, snapshot: TrialSnapshot) -> None:
        self.update(_INDENT + progress(snapshot))

    def item(self, text: str) -> None:
        """Prints a finished check, which is a part of the answer."""
        self.close()
        print_answer(text)
        self._shown_s = self._now_s()


class TrialView(_Progress):
    """The progress of one trial; call `update` for every news."""

    _indent = ""

    def update(self, snapshot: TrialSnapshot) -> None:
        """Shows `snapshot`; skipped if a plain line has just been written."""
        self.show(self._indent + progress(snapshot), snapshot.elapsed_s, snapshot.phase, snapshot.note)


class SearchView(TrialView):
    """A search as a table that grows: a context manager; each trial's line replaces its progress."""

    _indent = _INDENT

    def header(self, text: str) -> None:
        """The search's settings and machine, then the names of the columns."""
        say(self._console, text)
        say(self._console, "")
        headings = ((column.short or column.heading).ljust(column.width) for _, column in _LISTED)
        say(self._console, (_INDENT + "".join(headings).rstrip(), "bold"))

    trial_progress = TrialView.update

    def trial(self, trial: TrialSummary) -> None:
        """Adds a finished trial to the table."""
        self.close()
        row = run_summary.trial_row(trial).cells
        cells = [(row[n], row[n].text.ljust(column.width - 1) + " " * bool(column.width)) for n, column in _LISTED]
        say(self._console, _INDENT, *((text, STYLES.get(cell.style, "")) for cell, text in cells))


def progress(snapshot: TrialSnapshot) -> str:
    """One line: `measured   24 s of 60 s in all   offered 200 k events/s   ingested ...   backlog ...   p50 ...`.

    A note comes right after the phase, because a terminal cuts the end of a line off.
    """
    if snapshot.phase in _TIMED or not snapshot.planned_s:
        phase = f"{snapshot.phase} {snapshot.elapsed_s:.0f} s" if snapshot.phase in _TIMED else snapshot.phase
        return f"{phase}   {snapshot.note}" if snapshot.note else phase
    extent = "s, ends early" if snapshot.ends_early else f"of {snapshot.planned_s:.0f} s in all"
    backlog = NONE if snapshot.backlog_events is None else format_rate(snapshot.backlog_events, "events")
    parts = (
        f"{snapshot.phase}, {snapshot.elapsed_s:.0f} {extent}",
        snapshot.note,
        f"offered {format_rate(snapshot.offered_per_s, 'events/s')}",
        f"ingested {format_rate(snapshot.ingested_per_s, 'events/s')}",
        f"backlog {backlog}",
        f"event time p50 {format_us(snapshot.event_time_p50_us)}",
    )
    return "   ".join(filter(None, parts))


def show_result(result: Result, verbose: bool, on: Console | None = None) -> None:
    """A finished trial or search: verdict, the checks that matter (`verbose`: all), figures, path of the report."""
    show(run_summary.brief(result), page_in(result.folder), verbose, on)


def page_in(folder: str) -> str:
    """The path of the page in a folder of a run or study; empty without one."""
    path = os.path.join(folder, "report.html")
    return path if folder and os.path.exists(path) else ""


def show(document: Document, report: str = "", verbose: bool = False, on: Console | None = None) -> None:
    """The short form of a document and the path of the whole one, on stdout; `verbose`: every check."""
    to = on or AnswerConsole()
    with nullcontext() if on else to.capture() as captured:
        _show(to, document, report, verbose)
    if captured is not None:
        print_answer(captured.get(), end="", folder=os.path.dirname(report))


def _show(to: Console, document: Document, report: str, verbose: bool) -> None:
    badge = f"{document.badge}   " if document.badge else ""
    headline = "   ".join(filter(None, (document.mark, document.headline, *document.bounds)))
    say(to, (badge, STYLES.get(document.style, "")), (headline, "bold"))
    for one in document.lead:
        _show_block(to, one)
    for row in document.checks.rows if document.checks else ():
        if verbose or row.matters:
            name, outcome, number, _, limit, sentence = (cell.text for cell in row.cells)
            say(to, f"  {name:<16}{outcome:<18}{number} (limit {limit})   {sentence}".rstrip())
    for fact in document.facts:
        say(to, _labelled(fact.name, "   ".join(map(str, fact.parts))))
    sections = (block for section in document.sections for block in section.blocks)
    for block in (*sections, *document.remarks):
        _show_block(to, block)
    if verbose:
        say(to, _labelled("words", GLOSSARY))
    if report:
        say(to, _labelled("report", report))


def _show_block(to: Console, block: Block) -> None:
    if isinstance(block, Figure | Drawing) or not block.terminal:
        return
    if isinstance(block, Table):
        _show_table(to, block)
    else:
        text = block.text.replace("`", "")
        text = _labelled(block.label, text) if block.label else text
        say(to, (text, _KINDS.get(block.kind, "")))


def _labelled(name: str, text: str) -> str:
    return f"{name:<{_LABEL}}{text}" if len(name) < _LABEL else f"{name}  {text}"


_NAME = 18
"""The longest name in a first column that stays on one line."""


def _show_table(to: Console, table: Table) -> None:
    """A table between empty lines, without the columns whose short heading is empty."""
    shown = [n for n, column in enumerate(table.columns) if column.short != ""]
    made = rich.table.Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for place, n in enumerate(shown):
        column = table.columns[n]
        made.add_column(
            column.heading if column.short is None else column.short,
            justify="right" if column.number else "left",
            no_wrap=column.number if place else max((len(row.cells[n].text) for row in table.rows), default=0) <= _NAME,
            overflow="fold",
        )
    for row in table.rows:
        made.add_row(*(Text(row.cells[n].text, _CELLS.get(row.cells[n].style, "")) for n in shown))
    say(to, "")
    to.print(made)
    say(to, "")
    for note in table.notes:
        say(to, (f"  {note}", "dim"))
