"""An anatomy in the terminal: a line for each stage and a column for each trial, and below them what else is known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from streamgauge import labels
from streamgauge.report.terminal import console, say
from streamgauge.units import NONE, format_count, format_digits, format_rate, format_us

Found = Mapping[str, Any]


def show_anatomy(found: Found, on: Console | None = None) -> None:
    """Each trial's mean latency in its stages; what the stages are; where the page is."""
    to = on or console()
    say(to, (f"{found['workload']}   ", "bold"), f"{found['engine']}, over {found['transport']}")
    say(to, "")
    to.print(_table(found))
    say(to, "")
    for name, meaning in meanings(found):
        say(to, (f"  {name}: {meaning}", "dim"))
    for trial in found["trials"]:
        say(to, (heading(trial), "bold"))
        for line in remarks(trial):
            say(to, f"  {line}")
    say(to, f"report  {found['folder']}/report.html")


def heading(trial: Found) -> str:
    """`20 k events/s, 0 s, undecided`: rate, interval of batches, the size of a record where the workload has
    one, and the verdict where the rate is not sustained.
    """
    verdict = f", {labels.VERDICTS[trial['verdict']]}" if trial["verdict"] != "sustained" else ""
    window = f", {_short(trial['batch_window'])}" if trial["batch_window"] else ""
    return f"{load(trial, window)}{verdict}"


def _short(interval: str) -> str:
    """Spark's words for an interval with the unit as ever, so that it has room above a bar on a small screen."""
    return re.sub(r" (m?)(illi)?seconds?", r" \1s", interval)


def load(trial: Found, window: str = "") -> str:
    """`20 k events/s, 25 bytes`: what was offered."""
    size = f", {trial['record_bytes']} bytes" if trial["record_bytes"] is not None else ""
    return f"{format_rate(trial['rate_per_s'], 'events/s')}{window}{size}"


def meanings(found: Found) -> list[tuple[str, str]]:
    """Every stage that any trial has, in their order, and what its time is spent on."""
    there = {stage["name"] for trial in found["trials"] for stage in trial["stages"]}
    return [(name, meaning) for name, meaning in found["stages"].items() if name in there]


def rows(found: Found) -> Iterator[tuple[str, list[str]]]:
    """Every stage that any trial has, with each trial's mean and share; then the whole."""
    for name, _ in meanings(found):
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


def remarks(trial: Found) -> Iterator[str]:
    """What a trial was, and how well its stages are known."""
    yield "; ".join(part for part in (labels.VERDICTS[trial["verdict"]], trial["run"]) if part)
    if trial["reason"]:
        yield f"not taken apart: {trial['reason']}: {trial['sentence']}"
        return
    yield from (f"DOUBTFUL: {doubt}" for doubt in trial["doubts"])
    yield _how_many(trial)
    remainder = trial["remainder_share"]
    apart = "" if remainder is None else f"the stages' sum is {_percent(remainder)} from the mean latency measured; "
    yield f"{apart}a result's moments contradict each other by {_percent(trial['latency']['contradicted_share'])} of it"
    yield from _held_against(trial)
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


def _held_against(trial: Found) -> Iterator[str]:
    """How often others' moments contradict the driver's: Spark's of batches, a broker's of results."""
    for key, whose, what in (("batches", "Spark's", "batches"), ("results", "the broker's", "results")):
        if (count := trial[f"contradicting_{key}"]) is not None:
            by = f", by {format_us(trial['contradiction_us_max'])} at most" if count else ""
            yield f"{whose} moments contradict the driver's in {format_count(count)} {what}{by}"


def _percent(share: float) -> str:
    return f"{format_digits(100 * share)} %"


def _mean(trial: Found, name: str) -> str:
    stage = next((one for one in trial["stages"] if one["name"] == name), None)
    if stage is None:
        return NONE
    return f"{format_us(stage['mean_us'])} ({_percent(stage['share'])})"


def _table(found: Found) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("stage, mean", overflow="fold")
    for trial in found["trials"]:
        table.add_column(heading(trial), justify="right")
    for name, cells in rows(found):
        table.add_row(*(Text(cell) for cell in (name, *cells)))
    return table
