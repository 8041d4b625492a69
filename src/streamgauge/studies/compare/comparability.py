"""Checks whether two run groups are comparable: metrics without a better side, and metrics that decide no gate.

What answers is what a comparison is for: engine, options, master, transport, versions, the code of an own job. What is
asked is not: workload, parameters, data, load, spans, and the processors that there were for it. Seeds are neither, as
what they change lies in the spread of the runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import isclose
from statistics import fmean

from streamgauge.core.formatting import flatten, format_percent, format_value
from streamgauge.results import labels
from streamgauge.studies.compare.groups import RunData, RunGroup
from streamgauge.studies.compare.interference import doubts

SUSTAINED = 0.99
"""From this share of the offered rate on, a run took in all that there was."""

_OTHER_WORKLOADS = "the workloads differ, so neither side is better or worse"
_OTHER_RESULTS = "results are of different kinds, so their latencies count from different events"
_NO_RESULTS = "a run gave no result and owed none, so what it took says nothing of the work"
_LATENCIES = ("event_time", "until_counted", "processing_time", "closing_delay", "match_time", "uncorrected")
_RATE_IS_THE_REQUESTED_ONE = "every run took in all that was offered, so the rates only say what was asked"
_LOAD_INDEPENDENT = ("wrong_answers",)
"""What depends on no load: one wrong row is one too many at any rate."""
_RATE_SETTINGS = ("load.rate", "load.profile")
_LOAD_SETTINGS = ("load.duration", "load.warmup", "load.chunk", "load.generators", "load.frontier")
"""Besides rate and profile, what of the load makes figures others. The queue's bound and memory do not: they only say
when a run is given up."""
_MACHINE = ("cpu_model", "cpus")
_SAMPLES = "samples"


def not_comparable(a: RunGroup, b: RunGroup, figures: Iterable[str]) -> dict[str, str]:
    """The figures that make neither side the better one, however they differ, and why."""
    if _workloads_differ(a, b):
        return dict.fromkeys(figures, _OTHER_WORKLOADS)
    if _without_results(a, b):
        return dict.fromkeys(figures, _NO_RESULTS)
    blockers = {"ingested": _RATE_IS_THE_REQUESTED_ONE} if all_sustained(a, b) else {}
    return blockers | _result_kind_blockers(a, b, figures)


def gate_blockers(a: RunGroup, b: RunGroup, figures: Iterable[str]) -> dict[str, str]:
    """The figures that no rule can be judged by, however narrow their intervals, and why.

    Where the same was asked, a rate that every run kept up with is one: B took in what A did. Where less was offered,
    less to do makes every latency shorter, and a rate that a run kept up with is no limit of its system. Of any other
    question every figure is another one, but for answers that are wrong; so it is where what surrounded the runs may be
    behind a difference.
    """
    if _workloads_differ(a, b):
        return dict.fromkeys(figures, _OTHER_WORKLOADS)
    if _without_results(a, b):
        return {name: _NO_RESULTS for name in figures if name not in _LOAD_INDEPENDENT}
    blockers = _load_blockers(a, b, figures)
    differing = [name for name in different_settings(a, b) if name not in _RATE_SETTINGS]
    why = [*([labels.different_settings(differing)] if differing else []), *doubts(a, b)]
    if not why:
        return blockers
    reasons_of = {
        name: [*why, blockers[name]] if name in blockers else why for name in figures if name not in _LOAD_INDEPENDENT
    }
    return {name: "; ".join(reasons) for name, reasons in reasons_of.items()}


def different_settings(a: RunGroup, b: RunGroup) -> tuple[str, ...]:
    """The settings by which B was asked something else than A, or with other processors to answer it."""
    of_a, of_b = ([_question(run) for run in side.runs] for side in (a, b))
    names = dict.fromkeys(name for facts in (*of_a, *of_b) for name in facts)
    differing = [name for name in names if _shares(of_a, name) != _shares(of_b, name)]
    workload = ["workload"] if _workloads_differ(a, b) else []
    load = [name for name in _RATE_SETTINGS if name in differing] if _load_difference(a, b) else []
    return (*workload, *load, *(name for name in differing if name not in _RATE_SETTINGS))


def _question(run: RunData) -> dict[str, str]:
    """Dotted name to value of all that was asked, the workload aside. Files are what is in them, wherever they lie."""
    result = run.result
    settings, files = flatten(result.experiment), result.job_files
    # An own job is a file that ends so; every other one is data, or a sample of what it reads.
    samples = sorted(digest for name, digest in files.items() if not name.endswith(".py")) if _is_user_job(run) else []
    parameters = {name: value for name, value in settings.items() if name.startswith("parameters.")}
    taken = (*_RATE_SETTINGS, *_LOAD_SETTINGS, *(["limits"] if run.kind == "search" else []))
    facts = {
        **{name: settings.get(name) for name in taken},
        **{name: files.get(str(value), value) for name, value in parameters.items()},
        _SAMPLES: samples,
        "isolation": result.isolation,
        **{f"environment.{name}": result.environment.get(name) for name in _MACHINE},
    }
    return {name: format_value(value) for name, value in facts.items()}


def _shares(facts: list[dict[str, str]], name: str) -> dict[str | None, float]:
    """Each value that the runs of a side have, and in what share of them."""
    return {value: n / len(facts) for value, n in Counter(one.get(name) for one in facts).items()}


def _load_blockers(a: RunGroup, b: RunGroup, figures: Iterable[str]) -> dict[str, str]:
    if not (load := _load_difference(a, b)):
        return _result_kind_blockers(a, b, figures)
    blockers = dict.fromkeys((name for name in figures if name not in _LOAD_INDEPENDENT), load)
    if all_sustained(a, b):
        blockers["ingested"] = f"{load}, and {_RATE_IS_THE_REQUESTED_ONE}"
    elif not any(map(_kept_up, (*a.runs, *b.runs))):
        del blockers["ingested"]
    return blockers


def question_warnings(a: RunGroup, b: RunGroup) -> list[str]:
    """Where the sides were not asked the same: what that is the cause of."""
    load = _load_difference(a, b)
    warning = f"{load}: latency and resources are those of different loads, so no gate on them is decided"
    warnings = [warning] if load else []
    if differing := [name for name in different_settings(a, b) if name not in ("workload", *_RATE_SETTINGS)]:
        warnings.append(
            f"{labels.different_settings(differing)}: no gate is decided between them, but that on wrong answers"
        )
    return warnings


def _result_kind_blockers(a: RunGroup, b: RunGroup, figures: Iterable[str]) -> dict[str, str]:
    """Latencies where one side gives a window's result when it closes and the other each value so far: they count from
    different events.
    """
    kinds = {frozenset((sink.name, sink.kind) for sink in run.result.sinks if sink.kind) for run in (*a.runs, *b.runs)}
    if len(kinds - {frozenset()}) < 2:
        return {}
    return {name: _OTHER_RESULTS for name in figures if name.startswith(_LATENCIES)}


def _without_results(a: RunGroup, b: RunGroup) -> bool:
    """Whether some run verified its answers, and there were none to verify."""
    return any(map(_gave_and_owed_nothing, (*a.runs, *b.runs)))


def _gave_and_owed_nothing(run: RunData) -> bool:
    found = run.result.verification
    owed_nothing = found is not None and found.judged and not found.expected
    return owed_nothing and bool(run.result.sinks) and not any(sink.rows for sink in run.result.sinks)


def all_sustained(a: RunGroup, b: RunGroup) -> bool:
    return all(map(_kept_up, (*a.runs, *b.runs)))


def _kept_up(run: RunData) -> bool:
    rate = run.result.rate
    return rate is not None and rate.ingested_per_s >= SUSTAINED * rate.offered_per_s


def _workloads_differ(a: RunGroup, b: RunGroup) -> bool:
    """An own job is named after its file, so another name may be another statement of the same question."""
    runs = (*a.runs, *b.runs)
    return len({run.result.workload for run in runs}) > 1 and not all(map(_is_user_job, runs))


def _is_user_job(run: RunData) -> bool:
    """A built-in workload has files too, where it reads data."""
    return any(name.endswith(".py") for name in run.result.job_files)


def _load_difference(a: RunGroup, b: RunGroup) -> str:
    """How the load that was asked for differs, if it does; that of a search is its answer."""
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
    """(the rate that was asked for, events per second; how it goes on)."""
    settings = flatten(run.result.experiment)
    return float(settings.get("load.rate") or 0), str(settings.get("load.profile") or "constant")
