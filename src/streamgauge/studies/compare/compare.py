"""`compare`: how much B differs from A, with confidence intervals and gates.

With several runs a side, the interval comes from the runs, because JVMs differ from start to start. Two single runs
only have their seconds (block bootstrap), two single searches their brackets. Such an interval says nothing about
another start of the same engine.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from streamgauge.core.errors import InputError, Problem, Rule, attempt, broken, first_broken, near, refuse
from streamgauge.core.formatting import format_signed
from streamgauge.results import labels
from streamgauge.results.comparison import Comparison, Difference, Gate, GateState
from streamgauge.stats.bootstrap import Interval
from streamgauge.stats.ratio import Estimate, like, over_runs, ratio
from streamgauge.studies.compare.comparability import (
    all_sustained,
    different_settings,
    gate_blockers,
    interference_warnings,
    not_comparable,
    question_warnings,
)
from streamgauge.studies.compare.groups import (
    UNJUDGED,
    Kind,
    RunData,
    RunGroup,
    answers_fault,
    copy_problems,
    differing,
    facts_of,
    read_group,
)
from streamgauge.studies.compare.metrics import Comparable, choices, comparables, names, resolve

CONFIDENCES = (0.5, 0.999)
_OPEN = "the runs vary too much to bound it"
RUNS_MIN = 3
"""JVMs differ from start to start, and two runs give only a single estimate of that."""

_RULE = re.compile(r"\s*([A-Za-z_][\w.]*?)\s*([+−-])\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*$")
_SETTING = "--fail-if"
ANSWERS = "answers"
"""The implicit rule that comes with every other one."""


@dataclass(frozen=True)
class GateRule:
    """B breaks it if its `figure` is beyond A's by more than `limit`, a signed share or a number of rows."""

    text: str
    figure: str
    limit: float


def compare(a: str, b: str, fail_if: Sequence[str] = (), confidence: float = 0.95) -> Comparison:
    """Side `b` against side `a`; `InputError` with all problems, before any computation."""
    baseline, candidate, rules = _read_request(a, b, fail_if, confidence)
    differences = {name: _difference(one, baseline, candidate, confidence) for name, one in comparables().items()}
    for name, why in not_comparable(baseline, candidate, differences).items():
        of = differences[name]
        if of.says in ("better", "worse"):
            reason = "; ".join(filter(None, (why, of.reason)))
            differences[name] = of.model_copy(update={"says": "unknown", "reason": reason})
    gated = {rule.figure for rule in rules}
    undecided = gate_blockers(baseline, candidate, differences)
    gates = [judge(rule, differences[rule.figure], undecided.get(rule.figure, "")) for rule in rules]
    return Comparison(
        workload=baseline.runs[0].result.workload,
        kind=baseline.runs[0].kind,
        confidence=confidence,
        a=baseline.answer,
        b=candidate.answer,
        not_the_same=differing(*([facts_of(run) for run in side.runs] for side in (baseline, candidate))),
        asked_otherwise=different_settings(baseline, candidate),
        figures=tuple(
            one for name, one in differences.items() if name in gated or one.a is not None or one.b is not None
        ),
        gates=(*gates, *judge_answers(candidate)) if rules else (),
        warnings=tuple(_warnings(baseline, candidate)),
    )


def _read_request(
    a: str, b: str, fail_if: Sequence[str], confidence: float
) -> tuple[RunGroup, RunGroup, list[GateRule]]:
    problems = broken(Rule(
        CONFIDENCES[0] <= confidence <= CONFIDENCES[1], "--confidence",
        f"must be from {CONFIDENCES[0]:.0%} to {CONFIDENCES[1]:.1%}", confidence, "--confidence 95%",
    ))  # fmt: skip
    read = [attempt(partial(read_group, name, given), problems) for name, given in (("A", a), ("B", b))]
    groups: list[RunGroup] = list(filter(None, read))
    kinds = {run.kind for side in groups for run in side.runs}
    problems += broken(Rule(
        len(kinds) < 2, "A, B", "must be runs on both sides, or searches on both sides", f"{a}, {b}",
        "a search's trials/NN is a run, its folder is a search",
    ))  # fmt: skip
    kind: Kind = "search" if kinds == {"search"} else "run"
    rules = [attempt(partial(parse_rule, text, kind), problems) for text in fail_if]
    if len(groups) == 2:
        rule = "must be other runs than A's; this one is in A too"
        way_out = "leave out" if len(groups[1].runs) > 1 else "a run of its own instead of"
        problems += copy_problems("B", rule, way_out, groups[0].runs, groups[1].runs)
        problems += broken(Rule(
            not fail_if or min(len(side.runs) for side in groups) >= RUNS_MIN, _SETTING,
            f"needs at least {RUNS_MIN} runs a side, because JVMs differ from start to start",
            ", ".join(f"{side.name} has {len(side.runs)}" for side in groups),
            "repeat the runs, or compare without --fail-if",
        ))  # fmt: skip
    refuse(problems)
    return groups[0], groups[1], rules


def _difference(one: Comparable, a: RunGroup, b: RunGroup, confidence: float) -> Difference:
    """One figure on both sides, with the interval of its difference, or the reason for lacking one."""
    left, right = (tuple(one.value_of(run) for run in side.runs) for side in (a, b))
    several = max(len(left), len(right)) > 1
    base = Difference(
        name=one.name, label=(several and one.label_over_runs) or one.label, unit=one.unit, better=one.better,
        share=one.share, a=_mean(left), b=_mean(right), a_runs=left, b_runs=right,
    )  # fmt: skip
    if base.a is None or base.b is None:
        return base.model_copy(update={"reason": _missing(one, a, left) or _missing(one, b, right)})
    if not one.share:
        return _with_interval(base, base.b - base.a, base.b - base.a, base.b - base.a, "counted")
    if base.a <= 0:
        return base.model_copy(update={"reason": "A's figure is 0, so there is no relative difference"})
    interval, method = _interval(one, a, b, base, confidence)
    if interval is None:
        return base.model_copy(update={"difference": base.b / base.a - 1, "reason": method})
    open_a, open_b = (any(map(one.bound, side.runs)) for side in (a, b))
    low, high = 0.0 if open_a else interval.low, math.inf if open_b else interval.high
    reason = _OPEN if (interval.low, interval.high) == (0.0, math.inf) else ""
    known = base.model_copy(update={"reason": one.bound_because if open_a or open_b else reason})
    return _with_interval(known, interval.estimate - 1, low - 1, high - 1, method)


def _mean(values: tuple[float | None, ...]) -> float | None:
    """None if a run has no value."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None


def _missing(one: Comparable, side: RunGroup, values: tuple[float | None, ...]) -> str:
    """Why a side has no figure, from the first run that lacks it; empty if all have it."""
    lacking = [run for run, value in zip(side.runs, values, strict=True) if value is None]
    return f"{side.name}: {one.missing(lacking[0])} ({lacking[0].folder.name})" if lacking else ""


def _interval(
    one: Comparable, a: RunGroup, b: RunGroup, base: Difference, confidence: float
) -> tuple[Interval | None, str]:
    """The interval of B / A with its method; None with the reason if it is unknown."""
    if max(len(a.runs), len(b.runs)) > 1:
        return ratio(*_over_runs(one, a, b, base), confidence), "runs"
    if one.name == "sustained":
        return _brackets(a.runs[0], b.runs[0]), "brackets"
    if one.within is None:
        return None, "one run a side gives no interval: repeat the runs"
    left, right = one.within(a.runs[0], base.a or 0.0), one.within(b.runs[0], base.b or 0.0)
    if not (math.isfinite(left.error) and math.isfinite(right.error)):
        return None, "the run's folder has too few seconds of it: repeat the runs"
    return ratio(left, right, confidence), "seconds"


def _over_runs(one: Comparable, a: RunGroup, b: RunGroup, base: Difference) -> tuple[Estimate, Estimate]:
    """Both sides' estimates; a side with a single run takes the other side's spread."""
    left = over_runs([value or 0.0 for value in base.a_runs], _resolution(one, a))
    right = over_runs([value or 0.0 for value in base.b_runs], _resolution(one, b))
    if len(a.runs) == 1:
        left = like(left.value, right, len(b.runs))
    elif len(b.runs) == 1:
        right = like(right.value, left, len(a.runs))
    return left, right


def _resolution(one: Comparable, side: RunGroup) -> float:
    """The width of the searches' brackets in events per second, which limits the precision of a searched rate.

    Only brackets with two tested ends count. Without one, that end of the interval stays open (`Comparable.bound`).
    """
    searches = [run.result.search for run in side.runs if run.result.search]
    if one.name != "sustained" or not searches:
        return 0.0
    tested = [(one.low, one.refused_per_s) for one in searches]
    return max((high - low for low, high in tested if low is not None and high is not None), default=0.0)


def _brackets(a: RunData, b: RunData) -> Interval:
    """Two searches: the least and greatest ratio that their brackets allow."""
    one, other = a.result.search, b.result.search
    assert one is not None
    assert other is not None
    rate_a, rate_b = one.sustained_per_s or math.nan, other.sustained_per_s or math.nan
    low = rate_b / max(one.refused_per_s, rate_a) if one.refused_per_s is not None else 0.0
    high = max(other.refused_per_s, rate_b) / rate_a if other.refused_per_s is not None else math.inf
    return Interval(rate_b / rate_a, low, high)


def _with_interval(base: Difference, difference: float, low: float, high: float, method: str) -> Difference:
    """`base` with its difference and direction; an infinite end is unknown."""
    return base.model_copy(update={
        "difference": difference, "method": method, "says": _direction(base, low, high),
        "low": low if low > -1 or not base.share else None, "high": high if math.isfinite(high) else None,
    })  # fmt: skip


def _direction(base: Difference, low: float, high: float) -> str:
    if base.share and low <= -1 and high == math.inf:
        return "unknown"
    if low <= 0 <= high:
        return "no_difference"
    return "better" if (low > 0) == (base.better == "higher") else "worse"


def _warnings(a: RunGroup, b: RunGroup) -> list[str]:
    """Warnings for the reader of the differences."""
    runs = [(f"{side.name}: {run.folder.name}", run) for side in (a, b) for run in side.runs]
    fewest, most = sorted((len(a.runs), len(b.runs)))
    is_search = a.runs[0].kind == "search"
    whole = (
        (most == 1, "one run a side: another start of the same engine may differ by more than that. Repeat the runs"),
        (fewest == 1 < most,
         "one side has a single run: its spread is assumed to be the other side's. Repeat its run"),
        (is_search, "latency and resources are those of each search's own confirmed rate"),
        (not is_search and all_sustained(a, b),
         "every run took in all that was offered, so the rate shows no difference. Compare searches"),
    )  # fmt: skip
    return [
        *(f"{name}: {labels.VERDICTS[run.result.verdict.value]}; its figures depend on its length"
          for name, run in runs if run.result.verdict.value != "sustained"),
        *(f"{name}: {file} is missing: its figures are left out" for name, run in runs for file in run.missing_files),
        *question_warnings(a, b),
        *interference_warnings(a, b),
        *(text for applies, text in whole if applies),
    ]  # fmt: skip


def parse_rule(text: str, kind: Kind) -> GateRule:
    """`p99 +10%`: p99 at most 10 % above A's; `kind` decides the meaning of `rate`. `InputError` otherwise."""
    match = _RULE.match(text)
    if match is None:
        raise _refusal("must be FIGURE +NUMBER% or FIGURE -NUMBER%, B's allowed distance from A", text, '"p99 +10%"')
    name, sign, number, percent = match.groups()
    figure = comparables().get(resolve(name, kind))
    if figure is None:
        meant = near(name, names())
        suggestion = _example(meant, comparables()[resolve(meant, kind)]) if meant else '"rate -5%" or "p99 +10%"'
        raise _refusal(f"FIGURE must be one of {choices()}", text, suggestion)
    limit = float(number) / (100 if percent else 1) * (1 if sign == "+" else -1)
    _check(text, name, figure, limit, bool(percent))
    return GateRule(text.strip(), figure.name, limit)


def _check(text: str, name: str, figure: Comparable, limit: float, percent: bool) -> None:
    """Refuses a rule that would fail if B is better, or that could never fail: the first one that it breaks."""
    worse, counted = _worse(figure), f"is counted in {figure.unit}, without %"
    rules = (
        ((math.copysign(1.0, limit) > 0) == (worse == "+"),
         f"is better when it is {figure.better}, so only {worse} can fail", f'"{name} {worse}5%"'),
        (percent == figure.share, "must be a share, with %" if figure.share else counted, _example(name, figure)),
        (limit > -1, "cannot fall by more than all of it, so this would never fail", f'"{name} -5%"'),
    )  # fmt: skip
    refuse(first_broken(
        *(Rule(holds, _SETTING, f"{name} {rule}", text, f"{_SETTING} {example}") for holds, rule, example in rules)
    ))  # fmt: skip


def _worse(figure: Comparable) -> str:
    """The sign of a worse difference."""
    return "+" if figure.better == "lower" else "-"


def _example(name: str, figure: Comparable) -> str:
    return f'"{name} {_worse(figure)}{"5%" if figure.share else "0"}"'


def _refusal(rule: str, text: str, way_out: str) -> InputError:
    return InputError(Problem(_SETTING, rule, text, f"{_SETTING} {way_out}"))


def judge(rule: GateRule, of: Difference, undecided: str = "") -> Gate:
    """The outcome of a rule by the difference's interval: within the limit, beyond it, or across it.

    Unknown for any interval if there is a reason why the figure is `undecided` between these sides.
    """
    gate = partial(Gate, rule=rule.text, figure=rule.figure, limit=rule.limit)
    if undecided or of.method == "none":
        return gate(state="unknown", sentence=f"{of.label}: unknown, {undecided or of.reason}")
    # Sign as harm: positive is worse, in either direction of the figure.
    way = 1.0 if of.better == "lower" else -1.0
    ends = [
        way * end for end in (of.low if of.low is not None else -math.inf, of.high if of.high is not None else math.inf)
    ]
    least, most, limit = min(ends), max(ends), way * rule.limit
    said = f"{of.label} {labels.difference(of)}, limit {format_signed(rule.limit, of.share, of.unit)}"
    if least > limit:
        return gate(state="failed", sentence=f"{said}: beyond the limit")
    if most <= limit:
        return gate(state="passed", sentence=f"{said}: within the limit")
    why = of.reason if of.reason and None in (of.low, of.high) else "add runs to make it narrower"
    return gate(state="unknown", sentence=f"{said}: the interval crosses the limit, so it is not known; {why}")


def judge_answers(b: RunGroup) -> list[Gate]:
    """The implicit rule: wrong answers in a run of B fail it, unjudged answers are unknown.

    None if all are right. A job with wrong answers does other work, whatever its rate and latency.
    """
    faults = [(run.folder.name, fault) for run in b.runs if (fault := answers_fault(run.result))]
    if not faults:
        return []
    state: GateState = "unknown" if all(fault == UNJUDGED for _, fault in faults) else "failed"
    listed = "; ".join(f"{name}: {fault}" for name, fault in faults)
    sentence = f"{b.name} has {listed}: its figures do not count until that is fixed"
    return [Gate(rule=ANSWERS, figure="wrong_answers", limit=0.0, state=state, sentence=sentence)]
