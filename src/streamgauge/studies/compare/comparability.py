"""Checks whether two run groups are comparable: metrics without a better side, and metrics that decide no gate.

Engine, options, master, transport, versions and the code of a user job may differ, because a comparison is about them.
Workload, parameters, data, load, spans and the available CPUs must be the same, because they are the question. Seeds
may differ, since their effect is part of the runs' spread."""

from collections import Counter
from collections.abc import Iterable, Iterator
from math import isclose
from statistics import fmean, median

from streamgauge.core.formatting import flatten, format_percent, format_value
from streamgauge.metrics.interference import machine_speed_differs
from streamgauge.results import labels
from streamgauge.results.codes import WarningCode
from streamgauge.results.latency import LATENCY_KINDS
from streamgauge.studies.compare.groups import RunData, RunGroup


def interference_warnings(a: RunGroup, b: RunGroup) -> Iterator[str]:
    """Each run beside background load, by the verdict's rule; then whether the machine's speed differed."""
    yield from (
        f"{side.name}: {run.folder.name}: {warning}. A difference may be their doing, so no gate is decided except "
        "that on wrong answers"
        for side in (a, b)
        for run in side.runs
        if (warning := run.result.warning(WarningCode.BACKGROUND_LOAD))
    )
    if times := _machine_times(a, b):
        yield (
            f"the machine's speed differed: the reference work took {abs(times - 1):.0%} "
            f"{'longer' if times > 1 else 'less'} for B. So much of a difference may be the machine's doing, so no "
            "gate is decided except that on wrong answers. Run both sides again on a quiet machine"
        )


def doubts(a: RunGroup, b: RunGroup) -> list[str]:
    """Reasons why a difference may come from the machine, however narrow its interval."""
    reasons = [
        f"background processes were busy on {side.name}'s machine ({', '.join(names)})"
        for side in (a, b)
        if (names := [run.folder.name for run in side.runs if run.result.warning(WarningCode.BACKGROUND_LOAD)])
    ]
    return reasons + (["the machine's speed differed by its reference work"] if _machine_times(a, b) else [])


def _machine_times(a: RunGroup, b: RunGroup) -> float | None:
    """Time of the reference work for B divided by that for A, if the machine's speed differed; else None."""
    times = [[run.result.reference_work_us for run in side.runs if run.result.reference_work_us] for side in (a, b)]
    if not all(times):
        return None
    a_us, b_us = (median(each) for each in times)
    return b_us / a_us if machine_speed_differs(a_us, b_us) else None


SUSTAINED = 0.99
"""A run that ingested this share of the offered rate kept up."""

_OTHER_WORKLOADS = "the workloads differ, so neither side is better or worse"
_NO_RESULTS = "a run gave no result and owed none, so its resources say nothing about the work"
_RATE_IS_THE_REQUESTED_ONE = "every run took in all that was offered, so the rates only say what was asked"
_LOAD_INDEPENDENT = "wrong_answers"
"""The figure that does not depend on the load: one wrong row is too many at any rate."""
_RATE_SETTINGS = ("load.rate", "load.profile")
_LOAD_SETTINGS = ("load.duration", "load.warmup", "load.chunk", "load.generators", "partitions", "load.frontier")
"""Load settings, beside rate and profile, that change the figures. The queue's bound and memory do not: they only
decide when a run is given up."""
_OWN_FILES = (".py", ".toml")
"""A file with this suffix is a user job, or a program of the user's own."""


def not_comparable(a: RunGroup, b: RunGroup, figures: Iterable[str]) -> dict[str, str]:
    """Figures by which neither side is better, with the reasons."""
    if _workloads_differ(a, b):
        return dict.fromkeys(figures, _OTHER_WORKLOADS)
    if _without_results(a, b):
        return dict.fromkeys(figures, _NO_RESULTS)
    blockers = _result_kind_blockers(a, b, figures)
    return {"ingested": _RATE_IS_THE_REQUESTED_ONE, **blockers} if all_sustained(a, b) else blockers


def gate_blockers(a: RunGroup, b: RunGroup, figures: Iterable[str]) -> dict[str, str]:
    """The reasons why figures can decide no rule, however narrow their intervals; empty for those that can.

    - With the same question, a rate that every run kept up with: B ingested what A did.
    - With different loads, rates that a run kept up with and all latencies: less work makes latency shorter.
    - With any other difference in the question or the machine, every figure except wrong answers.
    """
    if _workloads_differ(a, b):
        return dict.fromkeys(figures, _OTHER_WORKLOADS)
    if _without_results(a, b):
        return dict.fromkeys((name for name in figures if name != _LOAD_INDEPENDENT), _NO_RESULTS)
    blockers = _load_blockers(a, b, figures)
    differing = [name for name in different_settings(a, b) if name not in _RATE_SETTINGS]
    why = [*([labels.different_settings(differing)] if differing else []), *doubts(a, b)]
    return {name: "; ".join(filter(None, (*why, blockers.get(name)))) for name in figures if name != _LOAD_INDEPENDENT}


def different_settings(a: RunGroup, b: RunGroup) -> tuple[str, ...]:
    """The settings in which B's question, or its CPUs, differ from A's."""
    of_a, of_b = ([_question(run) for run in side.runs] for side in (a, b))
    names = dict.fromkeys(name for facts in (*of_a, *of_b) for name in facts)
    differing = [name for name in names if _shares(of_a, name) != _shares(of_b, name)]
    workload = ["workload"] if _workloads_differ(a, b) else []
    load = [name for name in _RATE_SETTINGS if name in differing] if _load_difference(a, b) else []
    return (*workload, *load, *(name for name in differing if name not in _RATE_SETTINGS))


def _question(run: RunData) -> dict[str, str]:
    """Dotted name to value of the question except the workload. Files count by content, not by path."""
    result = run.result
    settings, files = flatten(result.experiment), result.job_files
    # Any other file is data or a sample of data.
    samples = (
        sorted(digest for name, digest in files.items() if not name.endswith(_OWN_FILES)) if _is_user_job(run) else []
    )
    taken = (*_RATE_SETTINGS, *_LOAD_SETTINGS, *(["limits"] if run.kind == "search" else []))
    facts = {
        **{name: settings.get(name) for name in taken},
        **{name: files.get(str(value), value) for name, value in settings.items() if name.startswith("parameters.")},
        "samples": samples,
        "isolation": result.isolation,
        **{f"environment.{name}": result.environment.get(name) for name in ("cpu_model", "cpus")},
    }
    return {name: format_value(value) for name, value in facts.items()}


def _shares(facts: list[dict[str, str]], name: str) -> dict[str | None, float]:
    """Each value of a side's runs, with its share of the runs."""
    return {value: n / len(facts) for value, n in Counter(one.get(name) for one in facts).items()}


def _load_blockers(a: RunGroup, b: RunGroup, figures: Iterable[str]) -> dict[str, str]:
    if not (load := _load_difference(a, b)):
        return _result_kind_blockers(a, b, figures)
    blockers = dict.fromkeys(figures, load)
    if all_sustained(a, b):
        blockers["ingested"] = f"{load}, and {_RATE_IS_THE_REQUESTED_ONE}"
    elif not any(map(_kept_up, (*a.runs, *b.runs))):
        del blockers["ingested"]
    return blockers


def question_warnings(a: RunGroup, b: RunGroup) -> list[str]:
    """Warnings if the sides had different questions."""
    warnings = []
    if load := _load_difference(a, b):
        warnings.append(f"{load}: latency and resources belong to different loads, so gates on them stay undecided")
    if differing := [name for name in different_settings(a, b) if name not in ("workload", *_RATE_SETTINGS)]:
        warnings.append(
            f"{labels.different_settings(differing)}: all gates except that on wrong answers stay undecided"
        )
    return warnings


def _result_kind_blockers(a: RunGroup, b: RunGroup, figures: Iterable[str]) -> dict[str, str]:
    """Latencies, if one side gives a window's result when it closes and the other gives each value so far.

    They count from different events.
    """
    kinds = {frozenset((sink.name, sink.kind) for sink in run.result.sinks if sink.kind) for run in (*a.runs, *b.runs)}
    if len(kinds - {frozenset()}) < 2:
        return {}
    why = "results are of different kinds, so their latencies count from different events"
    return {name: why for name in figures if name.startswith(LATENCY_KINDS)}


def _without_results(a: RunGroup, b: RunGroup) -> bool:
    """Whether a run gave no result and owed none."""
    idle = (
        run.result for run in (*a.runs, *b.runs) if run.result.sinks and not any(one.rows for one in run.result.sinks)
    )
    return any(one.verification and one.verification.judged and not one.verification.expected for one in idle)


def all_sustained(a: RunGroup, b: RunGroup) -> bool:
    return all(map(_kept_up, (*a.runs, *b.runs)))


def _kept_up(run: RunData) -> bool:
    rate = run.result.rate
    return rate is not None and rate.ingested_per_s >= SUSTAINED * rate.offered_per_s


def _workloads_differ(a: RunGroup, b: RunGroup) -> bool:
    """A user job is named after its file, so another name may be another query for the same question."""
    runs = (*a.runs, *b.runs)
    questions = {run.result.question or run.result.workload for run in runs}
    return len(questions) > 1 and not all(map(_is_user_job, runs))


def _is_user_job(run: RunData) -> bool:
    """Built-in workloads that read data also have files."""
    return any(name.endswith(_OWN_FILES) for name in run.result.job_files)


def _load_difference(a: RunGroup, b: RunGroup) -> str:
    """The difference in requested load; the load of a search is its answer."""
    if a.runs[0].kind == "search":
        return ""
    of_a, of_b = ([_load(run) for run in side.runs] for side in (a, b))
    mean_a, mean_b = (fmean(rate for rate, _ in loads) for loads in (of_a, of_b))
    if set(of_a) == set(of_b) and isclose(mean_a, mean_b):
        return ""
    if not mean_a or isclose(mean_a, mean_b) or {profile for _, profile in of_a} != {profile for _, profile in of_b}:
        return "A and B were offered different loads"
    share = mean_b / mean_a - 1
    return f"B was offered {format_percent(100 * abs(share))} {'more' if share > 0 else 'less'}"


def _load(run: RunData) -> tuple[float, str]:
    """(requested rate in events per second, profile)."""
    settings = flatten(run.result.experiment)
    return float(settings.get("load.rate") or 0), str(settings.get("load.profile") or "constant")
