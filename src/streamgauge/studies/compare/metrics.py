"""The metrics of a comparison: each one's value in a run, and its error by the run's seconds."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from streamgauge.results import labels
from streamgauge.results.latency import PERCENTILES
from streamgauge.stats.ratio import Estimate, mean_over
from streamgauge.studies.compare.groups import Kind, RunData

KINDS = {kind: label for kind, label in labels.LATENCIES.items() if kind != "uncorrected"}
"""The latencies that belong to the system under test."""


@dataclass(frozen=True)
class Comparable:
    """One figure: `value_of` gives a run's value (None: see `missing`), `within` its error within a single run.

    `share`: compared relative to A's, else as a count. `bound`: whether a run's figure is only a lower bound, for the
    reason `bound_because`. `label_over_runs`: name of its mean over several runs, if that is another kind of figure (a
    mean of percentiles is not a percentile).
    """

    name: str
    label: str
    unit: str
    better: Literal["higher", "lower"]
    value_of: Callable[[RunData], float | None]
    within: Callable[[RunData, float], Estimate] | None = None
    missing: Callable[[RunData], str] = lambda _: "the run has no such figure"
    bound: Callable[[RunData], bool] = lambda _: False
    bound_because: str = ""
    share: bool = True
    label_over_runs: str = ""


def comparables() -> dict[str, Comparable]:
    """Every figure by its name, in display order."""
    throughput = [
        Comparable(
            "sustained", "sustained", "events/s", "higher", partial(_figure, "search.sustained_per_s"),
            missing=lambda _: "a single run has no highest sustained rate", bound=_never_refused,
            bound_because="no higher rate was shown to fail (an undecided one bounds nothing)",
        ),
        Comparable(
            "ingested", "ingested", "events/s", "higher", partial(_figure, "rate.ingested_per_s"),
            partial(_column_mean, "handed_out"),
        ),
    ]  # fmt: skip
    latencies = [_latency(kind, name) for kind in KINDS for name in ("mean", *PERCENTILES)]
    resources = [
        Comparable(
            "cpu", "CPU of the system", "%", "lower", partial(_of_role, "sut", "cpu_percent_mean"),
            partial(_column_mean, "sut_cpu_percent"), _not_recorded,
        ),
        Comparable(
            "cpu_broker", "CPU of the broker", "%", "lower", partial(_of_role, "broker", "cpu_percent_mean"),
            partial(_column_mean, "broker_cpu_percent"), lambda _: "there was no broker of ours",
        ),
        Comparable(
            "memory", "memory, mean", "bytes", "lower", _memory, partial(_column_mean, "sut_memory_bytes"),
            _not_recorded,
        ),
        Comparable(
            "memory_max", "memory, most", "bytes", "lower", partial(_of_role, "sut", "memory_bytes_max"),
            missing=_not_recorded,
        ),
        Comparable(
            "backlog_max", "backlog, most", "s", "lower", partial(_figure, "backlog.max_s"), missing=_not_recorded
        ),
        Comparable(
            "wrong_answers", "wrong answers", "rows", "lower", _wrong_answers,
            missing=lambda _: "its answers were not judged", share=False,
        ),
    ]  # fmt: skip
    return {one.name: one for one in (*throughput, *latencies, *resources)}


def resolve(name: str, kind: Kind) -> str:
    """The figure for a name as typed: `rate` is the headline's, `p99` and `p99.9` are of event time."""
    plain = name.replace("p99.9", "p99_9")
    if plain == "rate":
        return "sustained" if kind == "search" else "ingested"
    return f"event_time_{plain}" if plain in ("mean", *PERCENTILES) else plain


def names() -> tuple[str, ...]:
    """Every accepted name."""
    return ("rate", "mean", *map(labels.statistic, PERCENTILES), *comparables())


def choices() -> str:
    """The accepted names in one line."""
    percentiles = ", ".join(map(labels.statistic, PERCENTILES))
    others = ", ".join(name for name in comparables() if not name.startswith(tuple(KINDS)))
    return f"rate, {percentiles}, mean (of event time, or KIND_p99 with KIND one of {', '.join(KINDS)}), {others}"


def _latency(kind: str, name: str) -> Comparable:
    shown = labels.statistic(name)
    return Comparable(
        f"{kind}_{name}", f"{KINDS[kind]} {shown}", "us", "lower",
        value_of=partial(_figure, f"latency.{kind}_us.{name}"),
        within=partial(_latency_within, kind, name) if kind in ("event_time", "processing_time") else None,
        missing=partial(_no_latency, kind, shown),
        bound=partial(_is_bound, kind, name),
        bound_because="results that never came count as at least this late",
        label_over_runs=f"{KINDS[kind]}{labels.OF_THE_RUNS} {shown}" if name in PERCENTILES else "",
    )  # fmt: skip


def _latency_within(kind: str, statistic: str, run: RunData, value: float) -> Estimate:
    resampled = run.resampled.get(kind)
    if resampled is None:
        return Estimate(value, float("inf"), 0.0)
    return resampled.mean(value) if statistic == "mean" else resampled.quantile(value, PERCENTILES[statistic])


def _no_latency(kind: str, statistic: str, run: RunData) -> str:
    latency = run.result.latency.by_kind(kind)
    if latency is None:
        return f"{KINDS[kind]} does not apply, or was not measured"
    return latency.note or f"{latency.effective_count} independent results are too few for {statistic}"


def _is_bound(kind: str, statistic: str, run: RunData) -> bool:
    """Whether missing results are numerous enough to reach the percentile."""
    latency = run.result.latency.by_kind(kind)
    if latency is None or not latency.lower_bounds:
        return False
    return statistic == "mean" or latency.lower_bounds >= (1 - PERCENTILES[statistic]) * latency.count


def _column_mean(name: str, run: RunData, value: float) -> Estimate:
    seconds = mean_over(run.column(name), sawtooth=name == "handed_out")
    return Estimate(value, seconds.error, seconds.freedom)


def _never_refused(run: RunData) -> bool:
    """Whether a search's rate is only a lower bound, because its upper end is undecided or missing."""
    return run.result.search is not None and run.result.search.refused_per_s is None


def _figure(path: str, run: RunData) -> float | None:
    """A figure of the run's result by its dotted path; None if a part of it is unknown."""
    value: Any = run.result
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return value


def _of_role(role: str, name: str, run: RunData) -> float | None:
    """A figure of the processes of a role, summed."""
    used = [getattr(use, name) for use in run.result.processes if use.role == role]
    return float(sum(used)) if used else None


def _memory(run: RunData) -> float | None:
    seconds = run.column("sut_memory_bytes")
    return float(seconds.mean()) if seconds.size else None


def _wrong_answers(run: RunData) -> float | None:
    found = run.result.verification
    return float(found.fault_count) if found is not None and found.judged else None


def _not_recorded(run: RunData) -> str:
    return f"{run.missing_files[0]} is missing" if run.missing_files else "it was not recorded"
