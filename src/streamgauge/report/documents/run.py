"""The report of a run or of a search: its answer, and a section for everything that its folder holds."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamgauge.artifacts.atomic_write import OUT, OutputLocation, write_text
from streamgauge.artifacts.hlog import Counts
from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.artifacts.series_files import TABLES, read_table
from streamgauge.config import reproduce
from streamgauge.core.errors import Problem, attempt
from streamgauge.core.formatting import (
    NONE,
    format_count,
    format_digits,
    format_duration,
    format_percent,
    format_rate,
    format_size,
    format_us,
    format_value,
)
from streamgauge.report.charts import capacity, engine_batches, flow_graph, latency_curve, over_time
from streamgauge.report.document_blocks import (
    Block,
    Cell,
    Column,
    Document,
    Figure,
    Paragraph,
    Section,
    Table,
    blocks,
    environment_table,
    grouped,
    numbers,
    table,
    texts,
)
from streamgauge.report.documents import run_summary
from streamgauge.report.page import render
from streamgauge.results import labels
from streamgauge.results.latency import LATENCY_KINDS, STATISTICS
from streamgauge.results.run import FAULTS, DriverResult, Result, Verification
from streamgauge.results.text import narrative, phrases
from streamgauge.results.text.sentences import counts_in_words

EXAMPLES_MAX = 20
_ROLES = {"sut": "system under test", "sut_part": "part of it", "driver": "driver", "broker": "broker"}
_COMPARED = ("expected", "matched", *FAULTS, "uncommitted")
_OPERATORS_NOTE = (
    "Rows in of a source are the rows that it gave, so it has no selectivity. A 5th percentile is over seconds and "
    "needs 20 of them. Rows lost are known at sources and before sinks, where driver and engine both count every "
    "batch. A loss between two operators does not show here, but in the verification of the answers."
)
_VERIFICATION_NOTE = (
    "Expected results are those of warm-up and measured span; latencies are those of the span alone. Results from the "
    "tail may be missing. Unexpected or duplicate results from the tail still count as errors."
)


def write_page(
    folder: RunFolder, flow: Sequence[Mapping[str, Any]] | None, place: OutputLocation = OUT,
    damage: list[Problem] | None = None,
) -> Path:  # fmt: skip
    """Makes report.html from the folder's files. `flow` describes the nodes (flow_graph.py); None for user jobs.

    `damage` gets the problems of damaged files, which the page names and leaves out.
    """
    path = folder.path / "report.html"
    write_text(path, render(whole(folder, flow, damage)), place)
    return path


def whole(folder: RunFolder, flow: Sequence[Mapping[str, Any]] | None, damage: list[Problem] | None = None) -> Document:
    """The whole report, with the charts that the folder has data for. `damage`: as in `write_page`."""
    result, damage = folder.read_result(), [] if damage is None else damage
    seconds, batch_table = (_table(folder, name, damage) for name in ("series.parquet", "engine/batches.parquet"))
    series = over_time.from_series(seconds, batch_table)
    batches = engine_batches.batches_of(batch_table, series.start_us if series else None)
    durations = engine_batches.durations(batches)
    own_series = over_time.engine_series(series, _table(folder, "engine/series.parquet", damage))
    curves = _curves(result, attempt(partial(_histograms, folder, result), damage) or {})
    attempt(folder.read_verification, damage)  # its figures are in the result, its examples only there
    brief = run_summary.brief(result)
    remarks = (*(Paragraph(f"{one.rule}. Use {one.way_out}.", "warning", "damaged") for one in damage), *brief.remarks)
    sections = (
        _search(result, folder),
        _over_time(result, over_time.over_time(series)),
        _latency(result, latency_curve.percentiles(curves, narrative.missing_results(result))),
        _flow(result, flow_graph.picture(flow, result)),
        _resources(result, over_time.resources(series)),
        _reported("batches", "The engine's batches", "Batches", durations, engine_batches.waterfall(batches)),
        _reported("engine", "The engine's own series", "Engine", own_series),
        _checks(result),
        _verification(result),
        _environment(result, folder),
    )
    return replace(brief, remarks=remarks, sections=tuple(filter(None, sections)))


def _table(folder: RunFolder, name: str, damage: list[Problem]) -> pa.Table:
    """A table of the folder; without rows if it is damaged."""
    found = attempt(partial(read_table, folder.path, name), damage)
    return TABLES[name].empty_table() if found is None else found


def _search(result: Result, folder: RunFolder) -> Section | None:
    if result.search is None:
        return None
    reports = {int(trial.name): f"trials/{trial.name}/report.html" for trial in folder.trials()}
    trials = Table(
        "Trials, in the order in which they ran",
        run_summary.TRIAL_COLUMNS,
        tuple(run_summary.trial_row(trial, reports.get(trial.number, "")) for trial in result.search.trials),
        (
            '"-": the trial was not judged or gave no such figure. The column "why" and the report of the trial give '
            "the reason.",
        ),
    )
    found = blocks(capacity.closing(result.search), trials if trials.rows else None)
    return Section("search", "The search", found, "Search")


def _over_time(result: Result, figure: Figure | None) -> Section | None:
    if figure is None and result.search is not None:
        return None
    rows = (
        (
            phase.name,
            format_duration((phase.start_us - result.phases[0].start_us) / 1e6),
            format_duration((phase.end_us - phase.start_us) / 1e6),
        )
        for phase in result.phases
    )
    phases = table("Phases of the run, by planned time", (*texts("phase"), *numbers("begins", "lasts")), rows)
    drawn = figure or Paragraph("- (no second of this run was recorded)", "none")
    found = blocks(drawn, phases if result.phases else None, _rates(result), _waiting(result))
    return Section("time", "Over time", found, "Over time" if figure else "")


def _rates(result: Result) -> Table | None:
    """The rate at which the system read, and how much it varied; the results of each sink."""
    if (rate := result.rate) is None or rate.ingested_std_per_s is None:
        return None
    rows: list[tuple[str, float | None, float | None]] = [
        ("events ingested", rate.ingested_per_s, rate.ingested_std_per_s),
        *((f"results of {sink.name}", sink.rows_per_s, None) for sink in result.sinks),
    ]
    columns = (*texts("what"), *numbers("mean", "standard deviation of seconds"))
    shown = ((name, format_rate(mean), format_rate(deviation)) for name, mean, deviation in rows)
    return table("Rates over the measured span", columns, shown)


def _waiting(result: Result) -> Table | None:
    """The backlog, and the consumer lag; of several partitions also the mean, and the one with most at the end."""
    if (backlog := result.backlog) is None:
        return None
    rows: list[tuple[str, float, float]] = [("backlog", backlog.end, backlog.max)]
    if (lag := result.lag) is not None:
        rows.append(("consumer lag", lag.sum.end, lag.sum.max))
        if len(lag.partitions) > 1:
            most = max(lag.partitions, key=lambda each: each.end)
            rows.append((f"mean of {len(lag.partitions)} partitions", lag.mean.end, lag.mean.max))
            rows.append((f"partition {most.partition} of {most.stream}, the most", most.end, most.max))
    return table(
        f"Events that waited, {'before' if narrative.measured_s(result) is None else 'over'} the measured span",
        (*texts("what"), *numbers("at the end", "at most")),
        ((name, format_rate(end, "events"), format_rate(most, "events")) for name, end, most in rows),
        notes=(f"The most backlog is {format_us(1e6 * backlog.max_s)} of the rate.",),
    )


def _histograms(folder: RunFolder, result: Result) -> dict[str, Counts]:
    """The histograms of the slowest sink by kind; none without a log. Raises InputError if any sink's are not whole."""
    text = folder.read_hlog()
    if text is None:
        return {}
    sinks = [(one.name, one.latency) for one in result.sinks] if len(result.sinks) > 1 else [("", result.latency)]
    with folder.whole("latency.hlog"):
        by_sink = {sink: latency_curve.histograms(text, sink) for sink, _ in sinks}
        for sink, latencies in sinks:
            for kind in LATENCY_KINDS:
                one, counts = latencies.by_kind(kind), by_sink[sink].get(kind)
                found = 0 if counts is None else int(counts.sum())
                if one is not None and one.max is not None and found < one.count - one.lower_bounds:
                    raise ValueError(f"{found:,} of {one.count:,} results for {kind}")
    return by_sink[result.slowest_sink]


def _curves(result: Result, histograms: Mapping[str, Counts]) -> dict[str, list[latency_curve.Point]]:
    return {
        kind: latency_curve.points(one, histograms.get(kind))
        for kind in latency_curve.CURVES
        if (one := result.latency.by_kind(kind)) is not None
    }


def _latency(result: Result, figure: Figure | None) -> Section:
    slowest = f"The figures at the top, the curve and the series are those of the slowest sink, {result.slowest_sink}."
    found = blocks(
        figure,
        _latency_table(result) or Paragraph(f"- ({narrative.no_latency(result)})", "none"),
        Paragraph(slowest, "note") if result.slowest_sink else None,
        (Paragraph(note, "note") for note in result.latency.notes),
    )
    return Section("latency", "Latency", found, "Latency")


def _latency_table(result: Result) -> Table | None:
    """Every kind of latency, for each sink if there are several."""
    several = len(result.sinks) > 1
    sinks = [(sink.name, sink.latency) for sink in result.sinks] if several else [("", result.latency)]
    rows: list[Iterable[Cell | str]] = []
    reasons = []
    for sink, among in sinks:
        for kind in LATENCY_KINDS:
            if (one := among.by_kind(kind)) is None:
                continue
            figures = [phrases.latency(one, name) for name in STATISTICS]
            name = phrases.latency_name(kind, among)
            reasons.append((name, f"{narrative.missing_percentile(one)}." if NONE in figures else ""))
            counts = format_count(one.count), format_count(one.effective_count)
            rows.append((Cell(name, phrases.MEANINGS[kind]), *([sink] if several else []), *figures, *counts))
    if not rows:
        return None
    counted = numbers(*map(labels.statistic, STATISTICS), "results of the span", "independent")
    columns = (*texts("latency", *(["sink"] if several else [])), *counted)
    notes = tuple(f'"-" in {reason}' for reason in grouped(reasons))
    return table("Latency over the measured span", columns, rows, notes=notes)


def _flow(result: Result, figure: Figure | None) -> Section | None:
    if figure is None and not result.operators:
        return None
    caption = "Operators over the measured span; the driver counts what enters and leaves, the SUT the rest"
    rows = (
        (
            Cell(operator.name, phrases.not_counted(operator)),
            format_rate(operator.throughput_per_s, ""),
            format_rate(operator.throughput_per_s_p5, ""),
            format_digits(operator.selectivity),
            format_count(operator.lost),
        )
        for operator in result.operators
    )
    columns = (*texts("operator"), *numbers("rows in /s", "5th percentile", "selectivity", "rows lost"))
    notes = _OPERATORS_NOTE, "`streamgauge characterize WORKLOAD` measures size, time and instances."
    found = blocks(figure, table(caption, columns, rows, notes=notes) if result.operators else None)
    return Section("flow-section", "Flow", found, "Flow")


def _resources(result: Result, figure: Figure | None) -> Section | None:
    if figure is None and not result.processes:
        return None
    rows = (
        (
            use.name,
            _ROLES[use.role],
            format_percent(use.cpu_percent_mean),
            format_percent(use.cpu_percent_max),
            format_size(use.memory_bytes_max),
        )
        for use in result.processes
    )
    columns = (*texts("process", "side"), *numbers("CPU mean", "CPU max", "memory max"))
    processes = table("Processes over the measured span; 100 % is one core", columns, rows)
    found = blocks(figure, processes if result.processes else None, _driver(result.driver), _machine(result))
    return Section("resources-section", "Resources", found, "Resources")


def _driver(driver: DriverResult | None) -> Table | None:
    """The parts of the driver that the system may have waited for."""
    if driver is None:
        return None
    delays = (("schedule delay", driver.slip_us), ("append latency", driver.append_latency_us))
    shares = (driver.hand_out_share, driver.receive_share, driver.disk_share)
    deliveries, results, disk = (format_percent(100 * share) for share in shares)
    return table(
        "Delays of the driver over the measured span",
        (*texts("delay"), *numbers("p50", "p99", "max")),
        ((name, *map(format_us, (of.p50, of.p99, of.max))) for name, of in delays if of is not None),
        notes=(f"Share of the span at work: deliveries {deliveries}, arrived results {results}, their disk {disk}.",),
    )


def _machine(result: Result) -> Paragraph | None:
    """The machine beside both sides: other programs, its own speed, and its loopback."""
    others, work, network = result.others_cpu_percent, result.reference_work_us, result.loopback_bytes_per_s
    parts = (
        f"Other programs used {format_percent(others)} of a core." if others is not None else "",
        f"The reference work took {format_us(work)} of CPU time." if work is not None else "",
        f"The traffic over the loopback was {format_size(network)}/s." if network is not None else "",
    )
    text = " ".join(filter(None, parts))
    return Paragraph(text, "note") if text else None


def _reported(name: str, title: str, short: str, *figures: Figure | None) -> Section | None:
    """What the engine says about itself."""
    if not any(figures):
        return None
    note = Paragraph("The system under test reports these. They explain a verdict, but never decide it.", "note")
    return Section(name, title, blocks(note, *figures), short)


def _checks(result: Result) -> Section:
    more = "; each trial of the search has its own checks" if result.search else ""
    nothing = Paragraph(f"- (the run was not judged{more})", "none")
    found = run_summary.checks_table(result) if result.verdict.checks else nothing
    return Section("checks", "Checks", (found,), "Checks")


def _verification(result: Result) -> Section:
    found = result.verification
    said = f"{narrative.capital(phrases.verified(found))}."
    if found is None:
        said += " No verification was made."
    elif not found.judged:
        said += f" {found.sentence}".rstrip()
    compared = _compared(result, found) if found is not None and found.judged else ()
    return Section("verification", "Verification", (Paragraph(said), *compared), "Verification")


def _compared(result: Result, found: Verification) -> tuple[Block, ...]:
    """The reference, the counts of each sink, the malformed records, and examples of wrong results."""
    independent = f"{'' if found.independent else 'not '}independent of the job under test"
    reference = f"Reference: {found.reference}, {independent}; took {format_duration(found.seconds)}, after the run."
    several = len(result.sinks) > 1
    each = [(sink.name, sink.verification) for sink in result.sinks if sink.verification is not None]
    judged = [*(each if len(each) > 1 else []), ("all", found)]
    promised = any(one.delivery for _, one in judged)
    compared = (*_COMPARED, *(["not_judged"] if found.not_judged else []))
    rows = [
        (
            *([name] if several else []),
            *(format_count(getattr(one, kind)) for kind in compared),
            *([one.delivery or NONE] if promised else []),
        )
        for name, one in judged
    ]
    allowed = f"The promised delivery guarantee allows {counts_in_words(found.allowed)}, so these rows are no faults."
    counts = numbers(*(kind.replace("_", " ") for kind in compared))
    columns = (*texts(*(["sink"] if several else [])), *counts, *(texts("promised") if promised else ()))
    return blocks(
        Paragraph(reference, "note"),
        Paragraph(_VERIFICATION_NOTE, "note"),
        table("Results compared with the reference, in rows", columns, rows, notes=(allowed,) if found.allowed else ()),
        _malformed_table(found) if found.malformed else None,
        _examples(found.examples[:EXAMPLES_MAX]) if found.examples else None,
    )


def _malformed_table(found: Verification) -> Table:
    return table(
        "Malformed records of warm-up and span, kept out of the answer",
        (*texts("stream"), *numbers("malformed", "records"), Column("rule", prose=True)),
        (
            (stream, format_count(one.malformed), format_count(one.records), Cell(one.rule, code=True))
            for stream, one in found.malformed.items()
        ),
    )


def _examples(examples: Sequence[Mapping[str, Any]]) -> Table:
    names = tuple(examples[0])
    rows = ([format_value(example.get(name)) for name in names] for example in examples)
    return table("Examples of wrong results", texts(*names), rows)


def _environment(result: Result, folder: RunFolder) -> Section:
    is_trial = result.experiment.get("command") == "sustain" and result.search is None
    experiment = reproduce.trial_experiment(result.experiment) if is_trial else result.experiment
    file = shlex.quote(str((folder.path / "experiment.toml").absolute()))
    found = blocks(
        _reproduce_block(reproduce.command(experiment), f"streamgauge experiment {file}"),
        _settings(experiment),
        _effective_settings(result),
        environment_table(result.environment) if result.environment else None,
    )
    return Section("environment", "Environment and settings", found, "Environment")


def _effective_settings(result: Result) -> Table | None:
    """The settings in force, each marked if it differs from the engine's default (if the run recorded that)."""
    caption = f"Settings of the engine and the transport in this run (tuning profile: {result.tuning})"
    if not result.settings:
        return None
    if not result.changed_settings:
        return table(caption, texts("setting", "value"), result.settings.items())
    rows = (
        (name, value, "changed" if name in result.changed_settings else "") for name, value in result.settings.items()
    )
    return table(caption, texts("setting", "value", "against the engine's default"), rows)


def _reproduce_block(command: str | None, whole: str) -> list[Paragraph]:
    """The commands that run it again; one trial of a search can be repeated alone."""
    if command is None:
        return [Paragraph("To run it again with the same settings:"), Paragraph(whole, "code")]
    exactly = Paragraph("or, with every setting:")
    return [Paragraph("To run it again:"), Paragraph(command, "code"), exactly, Paragraph(whole, "code")]


def _settings(experiment: Mapping[str, Any]) -> Block:
    settings = reproduce.settings(experiment)
    if settings:
        rows = ((setting.name, setting.value, setting.default) for setting in settings)
        return table("Every setting that is not at its default", texts("setting", "value", "default"), rows)
    if experiment:
        return Paragraph("Every setting was at its default.")
    return Paragraph("- (the run ended before it recorded its settings)", "none")
