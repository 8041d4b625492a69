"""Whether two sides were asked the same: figures that make neither side better, and those that decide no rule.

Another engine or other settings are what a comparison is for; another workload, or another load, is another question.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isclose
from statistics import fmean

from streamgauge.report import words
from streamgauge.studies.sides import Observed, Side

KEPT_UP = 0.99
"""From this share of the offered rate on, a run took in all that there was."""

_OTHER_WORKLOADS = "the workloads differ, so neither side is better or worse"
_OTHER_RESULTS = "results are of different kinds, so their latencies count from different events"
_LATENCIES = ("event_time", "until_counted", "processing_time", "closing_delay", "match_time", "uncorrected")
_ONLY_ASKED = "every run took in all that was offered, so the rates only say what was asked"
_COUNTED = ("wrong_answers",)
"""What depends on no load: one wrong row is one too many at any rate."""


def says_nothing(a: Side, b: Side, figures: Iterable[str]) -> dict[str, str]:
    """The figures that make neither side the better one, however they differ, and why."""
    if _other_workloads(a, b):
        return dict.fromkeys(figures, _OTHER_WORKLOADS)
    asked = {"ingested": _ONLY_ASKED} if all_kept_up(a, b) else {}
    return asked | _of_other_results(a, b, figures)


def decides_nothing(a: Side, b: Side, figures: Iterable[str]) -> dict[str, str]:
    """The figures that no rule can be judged by, however narrow their intervals, and why.

    Where the same was asked, a rate that every run kept up with is one: B took in what A did. Where it was not, less
    to do makes every latency shorter, and a rate that a run kept up with is no limit of its system.
    """
    if _other_workloads(a, b):
        return dict.fromkeys(figures, _OTHER_WORKLOADS)
    if not (load := _other_load(a, b)):
        return _of_other_results(a, b, figures)
    found = dict.fromkeys((name for name in figures if name not in _COUNTED), load)
    if all_kept_up(a, b):
        found["ingested"] = f"{load}, and {_ONLY_ASKED}"
    elif not any(map(_kept_up, (*a.runs, *b.runs))):
        del found["ingested"]
    return found


def load_warnings(a: Side, b: Side) -> list[str]:
    """Where the sides were offered different loads: what that is the cause of."""
    if not (load := _other_load(a, b)):
        return []
    return [f"{load}: latency and resources are those of different loads, so no gate on them is decided"]


def _of_other_results(a: Side, b: Side, figures: Iterable[str]) -> dict[str, str]:
    """Latencies where one side gives a window's result when it closes and the other each value so far: they count from
    different events.
    """
    kinds = {frozenset((sink.name, sink.kind) for sink in run.result.sinks if sink.kind) for run in (*a.runs, *b.runs)}
    if len(kinds - {frozenset()}) < 2:
        return {}
    return {name: _OTHER_RESULTS for name in figures if name.startswith(_LATENCIES)}


def all_kept_up(a: Side, b: Side) -> bool:
    return all(map(_kept_up, (*a.runs, *b.runs)))


def _kept_up(run: Observed) -> bool:
    rate = run.result.rate
    return rate is not None and rate.ingested_per_s >= KEPT_UP * rate.offered_per_s


def _other_workloads(a: Side, b: Side) -> bool:
    """An own job is named after its file, so another name may be another statement of the same question."""
    runs = [run.result for run in (*a.runs, *b.runs)]
    return len({run.workload for run in runs}) > 1 and not all(run.job_files for run in runs)


def _other_load(a: Side, b: Side) -> str:
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
    return f"B was offered {words.percent(100 * abs(share))} {'more' if share > 0 else 'less'}"


def _load(run: Observed) -> tuple[float, str]:
    """(the rate that was asked for, events per second; how it goes on)."""
    asked = words.flat(run.result.experiment)
    return float(asked.get("load.rate") or 0), str(asked.get("load.profile") or "constant")
