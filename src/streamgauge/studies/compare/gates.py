"""The gates of `--fail-if`: their grammar, and how a difference decides them. Unknown never passes."""

import math
import re
from dataclasses import dataclass

from streamgauge.core.errors import InputError, Problem, Rule, broken, first_broken, near, refuse
from streamgauge.core.formatting import format_signed
from streamgauge.results import labels
from streamgauge.results.comparison import Difference, Gate, GateState
from streamgauge.studies.compare.groups import UNJUDGED, Kind, RunGroup, answers_fault
from streamgauge.studies.compare.metrics import Comparable, choices, comparables, names, resolve

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
    refuse(first_broken(
        Rule(
            (math.copysign(1.0, limit) > 0) == (worse == "+"), _SETTING,
            f"{name} is better when it is {figure.better}, so only {worse} can fail", text,
            f'{_SETTING} "{name} {worse}5%"',
        ),
        Rule(
            percent == figure.share, _SETTING, f"{name} {'must be a share, with %' if figure.share else counted}", text,
            f"{_SETTING} {_example(name, figure)}",
        ),
        Rule(
            limit > -1, _SETTING, f"{name} cannot fall by more than all of it, so this would never fail", text,
            f'{_SETTING} "{name} -5%"',
        ),
    ))  # fmt: skip


def _worse(figure: Comparable) -> str:
    """The sign of a worse difference."""
    return "+" if figure.better == "lower" else "-"


def _example(name: str, figure: Comparable) -> str:
    return f'"{name} {_worse(figure)}{"5%" if figure.share else "0"}"'


def _refusal(rule: str, text: str, way_out: str) -> InputError:
    return InputError(Problem(_SETTING, rule, text, f"{_SETTING} {way_out}"))


def gateable(a: RunGroup, b: RunGroup) -> list[Problem]:
    """The problems that keep these sides from deciding any rule."""
    return broken(Rule(
        min(len(a.runs), len(b.runs)) >= RUNS_MIN, _SETTING,
        f"needs at least {RUNS_MIN} runs a side, because JVMs differ from start to start",
        ", ".join(f"{side.name} has {len(side.runs)}" for side in (a, b)),
        "repeat the runs, or compare without --fail-if",
    ))  # fmt: skip


def judge(rule: GateRule, difference: Difference, undecided: str = "") -> Gate:
    """The outcome of a rule by the difference's interval: within the limit, beyond it, or across it.

    Unknown for any interval if there is a reason why the figure is `undecided` between these sides.
    """
    state, sentence = _decided(rule, difference, undecided)
    return Gate(rule=rule.text, figure=rule.figure, limit=rule.limit, state=state, sentence=sentence)


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


def _decided(rule: GateRule, of: Difference, undecided: str) -> tuple[GateState, str]:
    if undecided or of.method == "none":
        return "unknown", f"{of.label}: unknown, {undecided or of.reason}"
    # Sign as harm: positive is worse, in either direction of the figure.
    way = 1.0 if of.better == "lower" else -1.0
    ends = [
        way * end for end in (of.low if of.low is not None else -math.inf, of.high if of.high is not None else math.inf)
    ]
    least, most, limit = min(ends), max(ends), way * rule.limit
    said = f"{of.label} {labels.difference(of)}, limit {format_signed(rule.limit, of.share, of.unit)}"
    if least > limit:
        return "failed", f"{said}: beyond the limit"
    if most <= limit:
        return "passed", f"{said}: within the limit"
    why = of.reason if of.reason and None in (of.low, of.high) else "add runs to make it narrower"
    return "unknown", f"{said}: the interval crosses the limit, so it is not known; {why}"
