"""What the terminal shows: progress, one trial's end, a search as it goes, refusals. All of it goes to stderr.

On a terminal the progress is one line rewritten in place; elsewhere it is a plain line every few seconds of the run.
Under NO_COLOR nothing is styled. Nothing here decides anything.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from streamgauge import labels
from streamgauge.errors import InputError, JobError, SettingError
from streamgauge.progress import TrialSnapshot
from streamgauge.report import sentences, words
from streamgauge.result import STATISTICS, Check, Latencies, Latency, Rates, Result, TrialSummary
from streamgauge.units import (
    NONE,
    format_count,
    format_duration,
    format_percent,
    format_quantity,
    format_rate,
    format_us,
    format_value,
)

PLAIN_EVERY_S = 5.0
"""Seconds between two plain lines; of a run, a change of phase or a new note is always told."""

STYLES = {
    "sustained": "bold green",
    "not_sustained": "bold red",
    "undecided": "bold yellow",
    "invalid": "bold magenta",
    "interrupted": "bold",
}
_INDENT = "  "
_LATENCIES = {"processing_time": "processing", "until_counted": "counted"}
"""What has to be shorter here than on the page, to stand in its column."""
_PRINTED = tuple(name for name in STATISTICS if name not in ("min", "mean", "p95"))
RULE_CHARACTERS = 100
"""Of a rule of malformed records, about so much is shown."""
_WITHOUT_FIGURES = ("start", "verification")
"""Phases in which nothing is offered."""
_COLUMNS = (("trial", 7), ("offered", 13), ("verdict", 15), ("p50 / p99 event time", 22), ("backlog", 11), ("why", 0))


class _Console(Console):
    """Goes quiet where nobody reads any more (`2>&1 | head`): Rich itself would end the trial that is told of."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        with suppress(OSError, ValueError):  # no descriptor, or none that is open
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.file.fileno())  # else what is still buffered fails at the process's end
            os.close(nowhere)


def console() -> Console:
    """The console on stderr; NO_COLOR (set to anything but nothing) takes colour and weight away."""
    if os.environ.get("NO_COLOR"):
        return _Console(stderr=True, highlight=False, color_system=None)
    return _Console(stderr=True, highlight=False)


def tell(text: str) -> None:
    """A line on stderr."""
    say(console(), text)


class _Progress:
    """One line that is rewritten in place, or, where it cannot be, plain lines: a context manager."""

    def __init__(self, on: Console | None) -> None:
        self._console = on or console()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def show(self, line: str, due: Callable[[], bool]) -> None:
        """Shows `line`; as a plain one only where it is `due`."""
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._rewrite(line)
        elif due():
            say(self._console, line)

    def close(self) -> None:
        """Takes the progress line away; what is printed next stands in its place."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _rewrite(self, line: str) -> None:
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(Text(line, no_wrap=True, overflow="ellipsis"), refresh=True)


class _EveryFewSeconds(_Progress):
    """Plain lines come every few seconds, so what is short has none."""

    def __init__(self, on: Console | None = None, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__(on)
        self._now_s = now_s
        self._told_s = now_s()

    def _due(self) -> bool:
        if self._now_s() - self._told_s < PLAIN_EVERY_S:
            return False
        self._told_s = self._now_s()
        return True


class InputView(_EveryFewSeconds):
    """The progress of an input that is written."""

    def update(self, written: int, planned: int) -> None:
        """So many events of so many."""
        self.show(f"written {format_rate(written, 'events')} of {format_rate(planned, 'events')}", self._due)


class StepView(_EveryFewSeconds):
    """The progress of a study that goes on step by step."""

    def update(self, step: str) -> None:
        """Where it stands, in a line."""
        self.show(step, self._due)


class ProofView(_EveryFewSeconds):
    """The self-test as it goes: a line for each trial and proof, and between them how the trial that runs stands."""

    def line(self, text: str) -> None:
        """A line that stays."""
        self.close()
        say(self._console, text)
        self._told_s = self._now_s()

    def trial(self, snapshot: TrialSnapshot) -> None:
        self.show(_INDENT + progress(snapshot), self._due)


class TrialView(_Progress):
    """The progress of one trial; `update` as often as there is something new."""

    def __init__(self, on: Console | None = None, indent: str = "") -> None:
        super().__init__(on)
        self._indent = indent
        self._told: TrialSnapshot | None = None

    def update(self, snapshot: TrialSnapshot) -> None:
        """Shows `snapshot`, or passes it over where a plain line has just been written."""
        self.show(self._indent + progress(snapshot), lambda: self._due(snapshot))

    def _due(self, snapshot: TrialSnapshot) -> bool:
        told = self._told
        same = told is not None and (told.phase, told.note) == (snapshot.phase, snapshot.note)
        if told is not None and same and 0 <= snapshot.elapsed_s - told.elapsed_s < PLAIN_EVERY_S:
            return False
        self._told = snapshot
        return True


class SearchView:
    """A search as a table that grows: a context manager; each trial's line replaces its progress."""

    def __init__(self, on: Console | None = None, verbose: bool = False) -> None:
        self._console, self._verbose = on or console(), verbose
        self._progress = TrialView(self._console, _INDENT)

    def __enter__(self) -> SearchView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.close()

    def header(self, text: str) -> None:
        """What is asked, on what machine; then the names of the columns."""
        say(self._console, text)
        say(self._console, "")
        say(self._console, (_INDENT + "".join(name.ljust(width) for name, width in _COLUMNS), "bold"))

    def trial_progress(self, snapshot: TrialSnapshot) -> None:
        self._progress.update(snapshot)

    def trial(self, trial: TrialSummary) -> None:
        """One finished trial as a line of the table."""
        self._progress.close()
        cells = [
            cell.ljust(width - 1) + " " if width else cell
            for cell, (_, width) in zip(_cells(trial), _COLUMNS, strict=True)
        ]
        style = STYLES.get(trial.verdict or "", "")
        say(self._console, _INDENT + "".join(cells[:2]), (cells[2], style), "".join(cells[3:]))

    def finish(self, result: Result) -> None:
        """The answer with its bounds, whether it is right, what limits it, where to look further."""
        self._progress.close()
        say(self._console, "")
        show_result(result, self._verbose, self._console)


def progress(snapshot: TrialSnapshot) -> str:
    """One line: `measured   24 s of 60 s in all   offered 200 k events/s   ingested ...   backlog ...   p50 ...`.

    A note comes right after the phase: a terminal cuts a line off at its end.
    """
    if snapshot.phase in _WITHOUT_FIGURES:
        told = f"{snapshot.phase} {snapshot.elapsed_s:.0f} s"
        return f"{told}   {snapshot.note}" if snapshot.note else told
    whole = f"{snapshot.elapsed_s:.0f} of {snapshot.planned_s:.0f} s in all"
    parts = [f"{snapshot.phase}, {whole}", snapshot.note]
    parts.append(f"offered {format_rate(snapshot.offered_per_s, 'events/s')}")
    parts.append(f"ingested {format_rate(snapshot.ingested_per_s, 'events/s')}")
    backlog = NONE if snapshot.backlog_events is None else format_rate(snapshot.backlog_events, "events")
    parts.append(f"backlog {backlog}")
    parts.append(f"event time p50 {format_us(snapshot.event_time_p50_us)}")
    return "   ".join(part for part in parts if part)


def show_result(result: Result, verbose: bool, on: Console | None = None) -> None:
    """The end of a trial or a search: verdict, checks that matter (`verbose`: all), figures, where the report is."""
    to = on or console()
    verdict = labels.VERDICTS[result.verdict.value]
    say(to, (f"{verdict}   ", STYLES[result.verdict.value]), (_headline(result), "bold"))
    if unusable := sentences.unusable(result):
        say(to, unusable)
    if result.verdict.sentence:
        say(to, result.verdict.sentence)
    for check in result.verdict.checks if verbose else _that_matter(result):
        say(to, f"  {_check_line(check)}")
    for name, text in _facts(result):
        say(to, f"{name:<12}{text}")


def show_refusal(error: InputError, on: Console | None = None, options: Mapping[str, str] | None = None) -> None:
    """Every problem with its way out, then that nothing was started (some are found by a started engine).

    `options`: what a setting is called where it was typed, as far as that is another name.
    """
    to = on or console()
    for problem in error.problems:
        setting = (options or {}).get(problem.setting, problem.setting)
        say(to, ("error: ", "bold red"), f"{setting}: {problem.rule}")
        say(to, f"  got: {format_value(problem.got)}")
        say(to, f"  try: {problem.way_out}")
    say(to, "nothing was measured" if isinstance(error, JobError | SettingError) else "nothing was started")


def say(to: Console, *parts: tuple[str, str] | str) -> None:
    """Text as it is, or (text, style): `[x]` is no markup, and long lines are the terminal's to wrap."""
    pairs = [(part, "") if isinstance(part, str) else part for part in parts]
    to.print(Text.assemble(*((text, style) for text, style in pairs)), soft_wrap=True)


def _cells(trial: TrialSummary) -> tuple[str, ...]:
    known = trial.event_time_p50_us is not None or trial.event_time_p99_us is not None
    latency = f"{format_us(trial.event_time_p50_us)} / {format_us(trial.event_time_p99_us)}"
    return (
        str(trial.number),
        "overload" if trial.offered_per_s is None else _short(trial.offered_per_s),
        words.trial_verdict(trial),
        latency if known else NONE,
        words.slope(trial.backlog_slope_share),
        trial.why,
    )


def _headline(result: Result) -> str:
    if result.search is None:
        return format_rate(result.rate.planned_per_s if result.rate else None, "events/s")
    took = format_duration(result.search.seconds)
    return f"{format_rate(result.search.sustained_per_s, 'events/s')}   ({words.bracket(result.search)})   {took}"


def _that_matter(result: Result) -> tuple[Check, ...]:
    """Those that decided, and those that do not hold; where all hold, none needs reading."""
    decided = result.verdict.decided_by
    return tuple(check for check in result.verdict.checks if check.name in decided or check.state != "ok")


def _check_line(check: Check) -> str:
    number, limit = format_quantity(check.value, check.unit), format_quantity(check.limit, check.unit)
    return f"{check.name:<16}{words.state(check):<18}{number} (limit {limit})   {check.sentence}".rstrip()


def _facts(result: Result) -> list[tuple[str, str]]:
    """(name, text) lines under the verdict; what was not measured is left out, what was not judged is said."""
    found: list[tuple[str, str]] = []
    if result.rate is not None:
        parts = [_rates(result, result.rate), f"isolation: {result.isolation}", _generators(result, result.rate)]
        found.append(("rate", "   ".join(filter(None, parts))))
    found += _latency_facts(result)
    if result.search is not None and result.search.at_90_percent is not None:
        at_90 = result.search.at_90_percent
        figures = f"p50 {format_us(at_90.event_time_p50_us)}   p99 {format_us(at_90.event_time_p99_us)}"
        text = f"{words.trial_verdict(at_90)}   {figures}   event time{words.until_counted(at_90)}"
        found.append(("at 90 %", text))
    found += _answer_facts(result)
    found += _malformed_facts(result)
    found += _cpu_facts(result)
    if result.search is not None and result.search.limit:
        found.append(("limit", result.search.limit))
    found += [("warning", warning) for warning in result.warnings]
    found += [("note", note) for note in result.notes]
    if result.verdict.advice:
        found.append(("next", result.verdict.advice))
    if result.folder:
        found.append(("report", os.path.join(result.folder, "report.html")))
    return found


def _latency_facts(result: Result) -> list[tuple[str, str]]:
    """Both kinds, one under the other, so that their percentiles can be compared, and of updates how long every event
    waited; then each of several sinks.
    """
    kinds = ["event_time", "until_counted", "processing_time"]
    if result.latency.event_time_us is None or result.latency.event_time_us.p50 is None:
        kinds.append("match_time")
    there = [(kind, one) for kind in kinds if (one := result.latency.of(kind)) is not None]
    found = [
        (_LATENCIES.get(kind, labels.LATENCIES[kind]), _figures(one, _PRINTED) + _of_what(kind, result.latency))
        for kind, one in there
    ]
    if not there and result.search is None:
        found = [("latency", note) for note in result.latency.notes]
    return found + _remarks(result) + _sink_facts(result)


def _of_what(kind: str, among: Latencies) -> str:
    """Of updates, which events a latency is of."""
    counted = among.until_counted_us
    if counted is None or kind not in ("event_time", "until_counted"):
        return ""
    if kind == "event_time":
        return "   (newest event of each update)"
    return f"   ({counted.note})" if not counted.count and counted.note else "   (every event, until counted)"


def _remarks(result: Result) -> list[tuple[str, str]]:
    """What must be known before the figures above are used."""
    remarks = (sentences.no_p99(result), sentences.not_come(result), sentences.unverified(result))
    return [("", remark) for remark in remarks if remark]


def _figures(one: Latency, statistics: tuple[str, ...]) -> str:
    return "   ".join(f"{labels.statistic(name)} {words.latency(one, name)}" for name in statistics)


def _rates(result: Result, rate: Rates) -> str:
    if sentences.measured_s(result) is None and result.search is None:
        return sentences.nothing_measured(result)
    offered, ingested = (format_rate(per_s, "events/s") for per_s in (rate.offered_per_s, rate.ingested_per_s))
    return f"offered {offered}   ingested {ingested}"


def _generators(result: Result, rate: Rates) -> str:
    """How many there were and what they could have offered, as far as it is known."""
    number, ceiling = result.environment.get("generators"), rate.generator_ceiling_per_s
    parts = [f"generators {number}"] if number is not None else []
    parts += [f"ceiling (making events) {_short(ceiling)}"] if ceiling is not None else []
    return ", ".join(parts)


def _short(per_s: float) -> str:
    """`1.54 M/s`."""
    return format_rate(per_s, "/s").replace(" /s", "/s")


def _sink_facts(result: Result) -> list[tuple[str, str]]:
    """A line for each of several sinks; the one that the figures above are those of is said to be the slowest."""
    if len(result.sinks) < 2:
        return []
    lines = []
    for sink in result.sinks:
        one = sink.latency.event_time_us or Latency()
        slowest = "   (slowest: the figures above)" if sink.name == result.slowest_sink else ""
        counted = sink.latency.until_counted_us
        until = f", until counted {_figures(counted, ('p50', 'p99'))}" if counted is not None else ""
        figures = f"{_figures(one, ('p50', 'p99'))}{until}   {format_count(sink.rows)} results with warm-up and tail"
        lines.append(("sink", f"{sink.name}   {figures}{slowest}"))
    return lines


def _answer_facts(result: Result) -> list[tuple[str, str]]:
    """What the comparison found: a line for each of several sinks."""
    each = [(sink.name, sink.verification) for sink in result.sinks]
    if len(each) < 2:
        return [("answers", words.verified(result.verification).removeprefix("answers: "))]
    return [("answers", f"{name}: {words.verified(found).removeprefix('answers: ')}") for name, found in each]


def _malformed_facts(result: Result) -> list[tuple[str, str]]:
    """What was malformed in the input: a line for each stream with a rule. A long rule is whole on the page."""
    found = result.verification.malformed if result.verification is not None else {}
    return [
        (
            "malformed",
            f"{stream} {format_count(one.malformed)} of {format_count(one.records)} kept out of the answer"
            f" (rule: {_short_rule(one.rule)})",
        )
        for stream, one in found.items()
    ]


def _short_rule(rule: str) -> str:
    """A rule with its fields; of a long one, texts such as patterns are left out, whole, and it ends with a word."""
    if len(rule) <= RULE_CHARACTERS:
        return rule
    plain = re.sub(r"'[^']*'", "'...'", rule)
    if len(plain) > RULE_CHARACTERS:
        plain = f"{plain[:RULE_CHARACTERS].rpartition(' ')[0] or plain.partition(' ')[0]} ..."
    return f"{plain}; whole in the report"


def _cpu_facts(result: Result) -> list[tuple[str, str]]:
    if not result.processes:
        return []
    totals = dict.fromkeys(("sut", "driver"), 0.0)
    for use in result.processes:
        if use.role in totals:  # parts of the system under test are in its own figure
            totals[use.role] += use.cpu_percent_mean
    text = f"system under test {format_percent(totals['sut'])}   driver {format_percent(totals['driver'])}"
    if result.others_cpu_percent is not None:
        text += f"   others {format_percent(result.others_cpu_percent)}"
    text += "   of a core"
    if result.reference_work_us is not None:
        text += f"   (reference work {format_us(result.reference_work_us)})"
    return [("cpu", text)]
