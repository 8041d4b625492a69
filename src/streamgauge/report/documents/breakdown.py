"""A latency breakdown as a document: the stages of each trial, and how consistent their evidence is."""

from collections.abc import Iterator, Sequence

from streamgauge.core.formatting import NONE, format_count, format_digits, format_percent, format_us
from streamgauge.report.charts import breakdown as charts
from streamgauge.report.charts.breakdown import heading
from streamgauge.report.document_blocks import (
    QUICK,
    Document,
    Drawing,
    Fact,
    Paragraph,
    Section,
    Table,
    blocks,
    environment_table,
    numbers,
    table,
    texts,
)
from streamgauge.results import labels
from streamgauge.results.breakdown import BreakdownTrial, LatencyBreakdown, StageFigures

SENTENCES_MAX = 3
"""Trials that have a sentence beside the answer."""


def document(breakdown: LatencyBreakdown) -> Document:
    """The mean latency of each trial by stage, the meaning of the stages, and the trials."""
    trials = breakdown.trials
    parts = (
        breakdown.start_time,
        f"chunks of {format_us(trials[0].chunk_us) if trials else NONE}",
        breakdown.folder,
        *([] if breakdown.finished else ["not finished"]),
    )
    stages = blocks(
        Drawing(lambda: charts.waterfall(trials)),
        _stages(breakdown),
        Drawing(lambda: charts.by_window(trials)),
        Drawing(lambda: charts.spread(trials)),
    )
    published = "The published study of this question, with DStreams on other machines, found:"
    on = f"on {breakdown.engine} ({breakdown.tuning}), over {breakdown.transport}"
    return Document(
        name=breakdown.workload,
        on=f"anatomy {on}",
        title=f"{breakdown.workload}, anatomy",
        headline=headline(trials),
        style="" if breakdown.finished else "interrupted",
        mark=QUICK if breakdown.quick else "",
        meta=(" · ".join(parts),),
        lead=tuple(map(Paragraph, _sentences(trials))),
        facts=(Fact("anatomy", (breakdown.workload, on), page=False),),
        sections=(
            Section("stages-section", "Where a record's time goes", stages, "Stages"),
            Section("trials", "Trials", tuple(line for one in trials for line in _trial(one)), "Trials"),
            Section(
                "published",
                "Published",
                (Paragraph(published), *(Paragraph(f"{line}.") for line in breakdown.published)),
                "Published",
            ),
            Section("environment", "Environment", (environment_table(breakdown.environment),), "Environment"),
        ),
    )


def headline(trials: Sequence[BreakdownTrial]) -> str:
    """`longest stage: waiting, 80 % to 90 % of the mean latency`; a trial without stages says nothing."""
    longest = [_longest(trial) for trial in trials if trial.stages]
    if not longest:
        return "no trial could be broken down"
    shares = sorted(100 * stage.share for stage in longest)
    share = " to ".join(dict.fromkeys((format_percent(shares[0]), format_percent(shares[-1]))))
    names = " or ".join(dict.fromkeys(stage.name for stage in longest))
    return f"longest stage: {names}, {share} of the mean latency"


def _longest(trial: BreakdownTrial) -> StageFigures:
    return max(trial.stages, key=lambda stage: stage.mean_us)


def _sentences(trials: Sequence[BreakdownTrial]) -> Iterator[str]:
    """A sentence for each of the first trials, and how many of all are doubtful."""
    for trial in trials[:SENTENCES_MAX]:
        if trial.latency is None or not trial.stages:
            yield f"{heading(trial)}: not broken down."
            continue
        stage, of = _longest(trial), trial.latency
        yield (
            f"{heading(trial)}: {stage.name} takes {format_us(stage.mean_us)} of {format_us(of.mean_us)}; half of the "
            f"results came within {format_us(of.p50_us)}."
        )
    if len(trials) > SENTENCES_MAX:
        yield f"{len(trials) - SENTENCES_MAX} more trials are below."
    if doubtful := sum(bool(trial.doubts) for trial in trials):
        yield f"Doubtful: {doubtful} of {len(trials)} trials, for the reasons below."


def _stages(breakdown: LatencyBreakdown) -> Table:
    return table(
        "Mean of each stage, and its share of the mean latency",
        (*texts("stage, mean"), *numbers(*map(heading, breakdown.trials))),
        ((name, *cells) for name, cells in _rows(breakdown)),
        notes=tuple(f"{name}: {meaning}" for name, meaning in _meanings(breakdown)),
        terminal=True,
    )


def _trial(trial: BreakdownTrial) -> Iterator[Paragraph]:
    yield Paragraph(heading(trial), "heading", terminal=True)
    for line in _remarks(trial):
        yield Paragraph(f"{line}.", terminal=True)


def _meanings(breakdown: LatencyBreakdown) -> list[tuple[str, str]]:
    """Every stage of any trial, in order, with its meaning."""
    present = {stage.name for trial in breakdown.trials for stage in trial.stages}
    return [(name, meaning) for name, meaning in breakdown.stages.items() if name in present]


def _rows(breakdown: LatencyBreakdown) -> Iterator[tuple[str, list[str]]]:
    """Every stage of any trial with each trial's mean and share; then the totals."""
    trials = breakdown.trials
    for name, _ in _meanings(breakdown):
        yield name, [_mean(trial, name) for trial in trials]
    for label, figure in (("latency, mean", "mean_us"), ("p50", "p50_us"), ("p99", "p99_us")):
        yield label, [format_us(getattr(trial.latency, figure, None)) for trial in trials]
    firsts = [trial.first_of_batch for trial in trials]
    if any(firsts):
        yield "p50 of the first record of each batch", [format_us(first.p50_us if first else None) for first in firsts]
    if any(trial.tasks_share is not None for trial in trials):
        published = f"published: useful work at most {format_digits(breakdown.published_work_share)} of the time"
        ratios = [NONE if trial.tasks_share is None else format_digits(trial.tasks_share) for trial in trials]
        yield f"all tasks' time / their batches' time ({published})", ratios


def _remarks(trial: BreakdownTrial) -> Iterator[str]:
    """A trial's verdict and run, and how consistent its stages are."""
    yield "; ".join(part for part in (labels.VERDICTS[trial.verdict], trial.run) if part)
    if trial.reason or trial.latency is None:
        yield f"not broken down: {trial.reason}: {trial.sentence}"
        return
    yield from (f"DOUBTFUL: {doubt}" for doubt in trial.doubts)
    yield _how_many(trial, trial.latency.results)
    apart = (
        ""
        if trial.remainder_share is None
        else f"the stages' sum is {format_percent(100 * trial.remainder_share)} from the mean latency measured; "
    )
    contradicted = format_percent(100 * trial.latency.contradicted_share)
    yield f"{apart}a result's timestamps contradict each other by {contradicted} of it"
    yield from _consistency(trial)
    if trial.commit_after_us is not None:
        yield f"a batch was committed {format_us(trial.commit_after_us)} after its results, on average"


def _how_many(trial: BreakdownTrial, results: int) -> str:
    """The number of results, batches and sampled results."""
    of = "" if trial.batches is None else f" of {format_count(trial.batches)} batches"
    left_out = trial.left_out or 0
    sampled = results - left_out if trial.sampled is None else trial.sampled
    some = f"; stages of {format_count(sampled)} of them, sampled at random" if sampled + left_out < results else ""
    lost = f", {format_count(left_out)} left out because a timestamp is unknown" if left_out else ""
    return f"{format_count(results)} results{of}{some}{lost}"


def _consistency(trial: BreakdownTrial) -> Iterator[str]:
    """How often timestamps contradict the driver's: the engine's for batches, the broker's for results."""
    for whose, count, what in (
        ("the engine's", trial.contradicting_batches, "batches"),
        ("the broker's", trial.contradicting_results, "results"),
    ):
        if count is not None:
            by = f", by {format_us(trial.contradiction_us_max)} at most" if count else ""
            yield f"{whose} timestamps contradict the driver's in {format_count(count)} {what}{by}"


def _mean(trial: BreakdownTrial, name: str) -> str:
    stage = next((one for one in trial.stages if one.name == name), None)
    return f"{format_us(stage.mean_us)} ({format_percent(100 * stage.share)})" if stage else NONE
