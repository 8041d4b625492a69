"""A latency breakdown as a document: the stages of each trial, and how consistent their evidence is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamgauge.core.formatting import NONE, format_count, format_digits, format_percent, format_us
from streamgauge.report.charts import breakdown
from streamgauge.report.charts.breakdown import heading
from streamgauge.report.document_blocks import (
    Document,
    Drawing,
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

Found = Mapping[str, Any]


def document(found: Found) -> Document:
    """Each trial's mean latency in its stages; what the stages are; what each trial was."""
    trials = found["trials"]
    chunks = format_us(trials[0]["chunk_us"]) if trials else NONE
    parts = (
        found["start_time"],
        f"chunks of {chunks}",
        found["folder"],
        *([] if found["finished"] else ["not finished"]),
    )
    nothing = None if any(one["stages"] for one in trials) else Paragraph("- (no trial could be taken apart)", "none")
    stages = blocks(
        Drawing(lambda: breakdown.waterfall(trials)),
        nothing,
        _stages(found),
        Drawing(lambda: breakdown.by_window(trials)),
        Drawing(lambda: breakdown.spread(trials)),
    )
    published = "The study whose question this is found, with DStreams and on machines of its own:"
    return Document(
        name=found["workload"],
        on=f"anatomy on {found['engine']} ({found.get('tuning', 'tuned')}), over {found['transport']}",
        title=f"{found['workload']}, anatomy",
        headline="",
        meta=(" · ".join(parts),),
        sections=(
            Section("stages-section", "Where a record's time goes", stages, "Stages"),
            Section("trials", "Trials", tuple(line for one in trials for line in _trial(one)), "Trials"),
            Section(
                "published",
                "Published",
                (Paragraph(published), *(Paragraph(f"{line}.") for line in found["published"])),
                "Published",
            ),
            Section("environment", "Environment", (environment_table(found["environment"]),), "Environment"),
        ),
    )


def _stages(found: Found) -> Table:
    columns = (*texts("stage, mean"), *numbers(*map(heading, found["trials"])))
    rows = ((name, *cells) for name, cells in _rows(found))
    notes = tuple(f"{name}: {meaning}" for name, meaning in _meanings(found))
    caption = "Mean of each stage, and its share of the mean latency"
    return table(caption, columns, rows, notes=notes, terminal=True)


def _trial(trial: Found) -> Iterator[Paragraph]:
    yield Paragraph(heading(trial), "heading", terminal=True)
    for line in _remarks(trial):
        yield Paragraph(f"{line}.", terminal=True)


def _meanings(found: Found) -> list[tuple[str, str]]:
    """Every stage that any trial has, in their order, and what its time is spent on."""
    there = {stage["name"] for trial in found["trials"] for stage in trial["stages"]}
    return [(name, meaning) for name, meaning in found["stages"].items() if name in there]


def _rows(found: Found) -> Iterator[tuple[str, list[str]]]:
    """Every stage that any trial has, with each trial's mean and share; then the whole."""
    for name, _ in _meanings(found):
        yield name, [_mean(trial, name) for trial in found["trials"]]
    for key, label in (("mean_us", "latency, mean"), ("p50_us", "p50"), ("p99_us", "p99")):
        yield label, [format_us(trial["latency"].get(key)) for trial in found["trials"]]
    if any(trial["first_of_batch"] for trial in found["trials"]):
        firsts = [format_us(trial["first_of_batch"].get("p50_us")) for trial in found["trials"]]
        yield "p50 of the first record of each batch", firsts
    if any(trial["tasks_share"] is not None for trial in found["trials"]):
        published = f"published: useful work at most {format_digits(found['published_work_share'])} of the time"
        ratios = [
            NONE if trial["tasks_share"] is None else format_digits(trial["tasks_share"]) for trial in found["trials"]
        ]
        yield f"all tasks' time / their batches' time ({published})", ratios


def _remarks(trial: Found) -> Iterator[str]:
    """What a trial was, and how well its stages are known."""
    yield "; ".join(part for part in (labels.VERDICTS[trial["verdict"]], trial["run"]) if part)
    if trial["reason"]:
        yield f"not taken apart: {trial['reason']}: {trial['sentence']}"
        return
    yield from (f"DOUBTFUL: {doubt}" for doubt in trial["doubts"])
    yield _how_many(trial)
    remainder = trial["remainder_share"]
    apart = (
        ""
        if remainder is None
        else f"the stages' sum is {format_percent(100 * remainder)} from the mean latency measured; "
    )
    contradicted = format_percent(100 * trial["latency"]["contradicted_share"])
    yield f"{apart}a result's moments contradict each other by {contradicted} of it"
    yield from _consistency(trial)
    if trial["commit_after_us"] is not None:
        yield f"a batch was committed {format_us(trial['commit_after_us'])} after its results, on average"


def _how_many(trial: Found) -> str:
    """Results, batches, and of how many results the stages are."""
    results, batches = trial["latency"]["results"], trial["batches"]
    of = "" if batches is None else f" of {format_count(batches)} batches"
    sampled, left_out = trial["sampled"], trial["left_out"]
    some = f"; stages of {format_count(sampled)} of them, by chance and evenly" if sampled + left_out < results else ""
    lost = f", {format_count(left_out)} without a known moment left out" if left_out else ""
    return f"{format_count(results)} results{of}{some}{lost}"


def _consistency(trial: Found) -> Iterator[str]:
    """How often others' moments contradict the driver's: Spark's of batches, a broker's of results."""
    for key, whose, what in (("batches", "Spark's", "batches"), ("results", "the broker's", "results")):
        if (count := trial[f"contradicting_{key}"]) is not None:
            by = f", by {format_us(trial['contradiction_us_max'])} at most" if count else ""
            yield f"{whose} moments contradict the driver's in {format_count(count)} {what}{by}"


def _mean(trial: Found, name: str) -> str:
    stage = next((one for one in trial["stages"] if one["name"] == name), None)
    if stage is None:
        return NONE
    return f"{format_us(stage['mean_us'])} ({format_percent(100 * stage['share'])})"
