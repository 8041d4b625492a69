"""The report of a run: one HTML file that holds all it shows, needs no network and no script, and prints.

Charts are static SVG that takes its colours from the page's CSS, so one drawing serves light and dark.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge import labels, reproduce
from streamgauge.artifacts.run_folder import OUT, Place, RunFolder
from streamgauge.report import batch_plots, curve, flow_picture, plots, search_plot, sentences, timeline, words
from streamgauge.report.draw import Figure
from streamgauge.report.templates import template
from streamgauge.result import (
    LATENCY_KINDS,
    STATISTICS,
    DriverResult,
    Latencies,
    Latency,
    Result,
    TrialSummary,
    Verification,
)
from streamgauge.units import NONE, flatten, format_count, format_percent, format_rate, format_us

BYTES_MAX = 3_000_000
EXAMPLES_MAX = 20


@dataclass(frozen=True)
class LatencyRow:
    """One kind of latency of one sink as a table row; `cells` follow `STATISTICS`."""

    kind: str
    meaning: str
    sink: str
    cells: tuple[str, ...]
    count: str
    effective_count: str
    reason: str


@dataclass(frozen=True)
class TrialRow:
    """One trial of a search; `link` is empty where the trial left no folder."""

    trial: TrialSummary
    link: str


def write_page(folder: RunFolder, flow: Sequence[Mapping[str, Any]] | None, asked: Place = OUT) -> Path:
    """Makes report.html from what the folder holds; `flow` describes the nodes (flow_picture.py), None for own jobs."""
    return folder.write_page(render(folder, flow), asked)


def render(folder: RunFolder, flow: Sequence[Mapping[str, Any]] | None) -> str:
    """The page as text."""
    result = folder.read_result()
    series = timeline.of(folder.read_series())
    batches = batch_plots.batches_of(folder.read_batches(), series.start_us if series else None)
    figures = {
        "time": plots.over_time(series),
        "percentiles": plots.percentiles(_curves(folder, result), sentences.not_come(result)),
        "flow": flow_picture.picture(flow, result),
        "resources": plots.resources(series),
        "durations": batch_plots.durations(batches),
        "waterfall": batch_plots.waterfall(batches),
        "bracket": search_plot.closing(result.search) if result.search else None,
    }
    return template("page.html.j2").render(_context(folder, result, figures))


def _context(folder: RunFolder, result: Result, figures: dict[str, Figure | None]) -> dict[str, Any]:
    latency_rows = _latency_rows(result)
    asked = _asked(result)
    return {
        "result": result,
        "figures": figures,
        "answer": sentences.answer(result),
        "bounds": sentences.bounds(result),
        "sentences": sentences.three(result),
        "unusable": sentences.unusable(result),
        "no_latency": sentences.no_latency(result),
        "deciding": sentences.deciding(result),
        "key_figures": _key_figures(result),
        "latency_columns": [labels.statistic(name) for name in STATISTICS],
        "latency_rows": latency_rows,
        "latency_reasons": _reasons(latency_rows),
        "several_sinks": len(result.sinks) > 1,
        "verifications": _verifications(result),
        "trials": _trial_rows(folder, result),
        "verified": sentences.capital(words.verified(result.verification)),
        "examples": result.verification.examples[:EXAMPLES_MAX] if result.verification else (),
        "environment": flatten(result.environment),
        "asked": reproduce.settings(asked),
        "command": reproduce.command(asked),
        "experiment_file": shlex.quote(str((folder.path / "experiment.toml").absolute())),
    }


def _asked(result: Result) -> dict[str, Any]:
    """What was asked; a search's trial can be repeated by itself."""
    is_trial = result.experiment.get("command") == "sustain" and result.search is None
    return reproduce.of_trial(result.experiment) if is_trial else result.experiment


def _key_figures(result: Result) -> list[tuple[str, str, str]]:
    """(name, figure, remark) of what a reader compares between runs, most wanted first."""
    found: list[tuple[str, str, str]] = []
    if result.rate is not None and sentences.measured_s(result) is not None:
        found.append(
            (
                "offered",
                format_rate(result.rate.offered_per_s, "events/s"),
                f"planned {format_rate(result.rate.planned_per_s, 'events/s')}",
            )
        )
        found.append(("ingested", format_rate(result.rate.ingested_per_s, "events/s"), "at first hand-out"))
    found += _latency_figures(result.latency)
    if result.backlog is not None:
        backlog = result.backlog
        most = f"at most {format_rate(backlog.max, 'events')}, {format_us(1e6 * backlog.max_s)} of the rate"
        found.append(("backlog at the end", format_rate(backlog.end, "events"), most))
    found += _cpu_figures(result)
    if result.driver is not None:
        slip = result.driver.slip_us
        found.append(("driver slip p99", format_us(slip.p99), f"at most {format_us(slip.max)}"))
        if (append := result.driver.append_latency_us) is not None:
            found.append(("append latency p99", format_us(append.p99), f"at most {format_us(append.max)}"))
        found.append(_waited_for(result.driver))
    return found


def _waited_for(driver: DriverResult) -> tuple[str, str, str]:
    """What the system may have waited for in the driver."""
    shares = (driver.hand_out_share, driver.receive_share, driver.disk_share)
    handing, receiving, writing = (format_percent(100 * share) for share in shares)
    return "driver at work", f"hand-outs {handing} of the time", f"results {receiving}, their disk {writing}"


def _latency_figures(latency: Latencies) -> list[tuple[str, str, str]]:
    return [
        (
            f"{words.latency_name(kind, latency)} p50 / p99",
            f"{words.latency(one, 'p50')} / {words.latency(one, 'p99')}",
            f"max {words.latency(one, 'max')}",
        )
        for kind in ("event_time", "until_counted", "processing_time")
        if (one := latency.of(kind)) is not None
    ]


def _cpu_figures(result: Result) -> list[tuple[str, str, str]]:
    by_role = {
        role: [use.cpu_percent_mean for use in result.processes if use.role == role] for role in ("sut", "driver")
    }
    if not by_role["sut"]:
        return []
    driver = f"driver {format_percent(sum(by_role['driver']))}" if by_role["driver"] else "driver not known"
    others = f", others {format_percent(result.others_cpu_percent)}" if result.others_cpu_percent is not None else ""
    found = [("CPU of the system", f"{format_percent(sum(by_role['sut']))} of a core", driver + others)]
    if result.reference_work_us is not None:
        found.append(("reference work", format_us(result.reference_work_us), "the machine's own speed, median"))
    return found


def _curves(folder: RunFolder, result: Result) -> dict[str, list[curve.Point]]:
    histograms = curve.histograms(folder.read_hlog() or "", result.slowest_sink)
    kinds = {kind: result.latency.of(kind) for kind in plots.CURVES}
    return {kind: curve.points(one, histograms.get(kind)) for kind, one in kinds.items() if one is not None}


def _latency_rows(result: Result) -> list[LatencyRow]:
    """Every kind of latency there is; per sink where there are several."""
    sinks = [("", result.latency)] if len(result.sinks) < 2 else [(sink.name, sink.latency) for sink in result.sinks]
    return [
        _latency_row(kind, sink, one, all_)
        for sink, all_ in sinks
        for kind in LATENCY_KINDS
        if (one := all_.of(kind)) is not None
    ]


def _verifications(result: Result) -> list[tuple[str, Verification]]:
    """(sink, what the comparison found); where there are several, all of them together stand last."""
    if result.verification is None:
        return []
    each = [(sink.name, sink.verification) for sink in result.sinks if sink.verification is not None]
    return [*(each if len(each) > 1 else []), ("all", result.verification)]


def _latency_row(kind: str, sink: str, one: Latency, among: Latencies) -> LatencyRow:
    cells = tuple(words.latency(one, name) for name in STATISTICS)
    reason = sentences.missing_percentile(one) if NONE in cells else ""
    counts = format_count(one.count), format_count(one.effective_count)
    return LatencyRow(words.latency_name(kind, among), words.MEANINGS[kind], sink, cells, *counts, reason)


def _reasons(rows: list[LatencyRow]) -> list[str]:
    """Why some cells are "-", each reason once with the kinds it holds for."""
    reasons = dict.fromkeys(row.reason for row in rows if row.reason)
    kinds = {reason: dict.fromkeys(row.kind for row in rows if row.reason == reason) for reason in reasons}
    return [f"{', '.join(kinds[reason])}: {reason}" for reason in reasons]


def _trial_rows(folder: RunFolder, result: Result) -> list[TrialRow]:
    there = {int(trial.name): f"trials/{trial.name}/report.html" for trial in folder.trials()}
    return [TrialRow(trial, there.get(trial.number, "")) for trial in (result.search.trials if result.search else ())]
