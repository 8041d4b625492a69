"""Chart of a search: the bracket around the highest sustained rate, closing trial by trial."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt

from streamgauge.report.charts.svg import COLOURS, amounts, axis_title, figure, values
from streamgauge.report.document_blocks import Figure, Key
from streamgauge.results.search import SearchResult, TrialSummary

MARKS = {
    "sustained": ("circle", "sustained", "dot"),
    "not_sustained": ("cross", "not-sustained", "cross"),
    "undecided": ("diamond", "undecided", "diamond"),
    "invalid": ("square", "invalid", "square"),
    "interrupted": ("square", "muted", "square"),
}
"""Verdict -> shape and colour of its mark, and the style of its key."""
_BANDS = {
    True: ("between the highest rate that holds and the lowest that does not", "shade", 1.0),
    False: (
        "between the highest rate that holds and one that was undecided or invalid: no proof that it fails",
        "undecided",
        0.45,
    ),
}
"""Whether the upper end was shown to fail -> label, colour and opacity of the band."""


class Bracket(NamedTuple):
    """The highest rate that holds, and the lowest rate above it that does not.

    `tested`: the upper end was shown to fail, rather than left undecided or invalid.
    """

    low: float | None
    high: float | None
    tested: bool


def brackets(trials: Sequence[TrialSummary], answer_per_s: float | None = None) -> list[Bracket]:
    """The bracket after each trial. A rate that held once and then did not (a failed confirmation) does not hold.

    `answer_per_s`: the rate that the search found. What was undecided there or below, as at 90 %, bounds nothing.
    """
    return [_bracket(trials[:n], answer_per_s or 0.0) for n in range(1, len(trials) + 1)]


def _bracket(trials: Sequence[TrialSummary], answer_per_s: float) -> Bracket:
    tried = [
        (trial.offered_per_s, "undecided" if trial.starved else trial.verdict)
        for trial in trials
        if trial.offered_per_s is not None
    ]
    tried = [(rate, verdict) for rate, verdict in tried if verdict != "undecided" or rate > answer_per_s]
    high = min((rate for rate, verdict in tried if verdict in ("not_sustained", "undecided")), default=None)
    holding = [rate for rate, verdict in tried if verdict == "sustained" and (high is None or rate < high)]
    return Bracket(max(holding, default=None), high, (high, "not_sustained") in tried)


def closing(search: SearchResult) -> Figure | None:
    """Each trial's rate with its verdict, and the bracket after it; None if no trial had a rate.

    The overload trial is left out: it offers all that the generators can make, which is not a rate to sustain.
    """
    trials = [trial for trial in search.trials if trial.offered_per_s is not None and trial.purpose != "overload"]
    if not trials:
        return None
    found = brackets(trials, search.sustained_per_s)
    hidden = any(trial.purpose == "overload" for trial in search.trials)
    verdicts = dict.fromkeys(trial.verdict or "interrupted" for trial in trials)
    drawn = {bracket.tested for bracket in found if bracket.low is not None and bracket.high is not None}
    band = (
        "between what holds and what does not"
        if found[-1].tested  # an undecided upper end does not count as a rate that fails
        else "above what holds, up to the next rate that was not shown to hold"
    )
    return figure(
        "bracket",
        "The bracket closing, trial by trial",
        f"Rate offered in each trial, marked by its verdict; the band is {band}.",
        lambda width: alt.layer(*_band(trials, found), *_marks(trials)).properties(
            width=width, height=230, title=axis_title("offered (events/s)")
        ),
        [
            *(Key(verdict.replace("_", " "), *MARKS[verdict][1:]) for verdict in verdicts),
            *(Key(label, colour, "area") for tested, (label, colour, _) in _BANDS.items() if tested in drawn),
        ],
        ["The vertical axis does not start at 0.", "The overload trial is not shown." if hidden else ""],
    )


def _x(trials: Sequence[TrialSummary]) -> Any:
    scale = alt.Scale(domain=[trials[0].number - 0.5, trials[-1].number + 0.5], nice=False)
    axis = alt.Axis(title="trial", values=[trial.number for trial in trials], grid=False, format="d")
    return alt.X("n:Q", scale=scale, axis=axis)


def _y(name: str, trials: Sequence[TrialSummary]) -> Any:
    rates = [trial.offered_per_s for trial in trials if trial.offered_per_s is not None]
    margin = 0.12 * (max(rates) - min(rates)) or 0.05 * max(rates)
    scale = alt.Scale(domain=[max(0.0, min(rates) - margin), max(rates) + margin], zero=False, nice=True)
    return alt.Y(name, scale=scale, axis=amounts(6))


def _band(trials: Sequence[TrialSummary], found: Sequence[Bracket]) -> list[Any]:
    layers = []
    for tested, (_, colour, opacity) in _BANDS.items():
        rows = [
            {"n": trial.number - 0.5, "to": trial.number + 0.5, "v": bracket.low, "high": bracket.high}
            for trial, bracket in zip(trials, found, strict=True)
            if bracket.low is not None and bracket.high is not None and bracket.tested is tested
        ]
        if rows:
            band = alt.Chart(values(rows)).mark_rect(color=COLOURS[colour], opacity=opacity)
            layers.append(band.encode(x=_x(trials), x2="to:Q", y=_y("v:Q", trials), y2="high:Q"))
    return layers


def _marks(trials: Sequence[TrialSummary]) -> list[Any]:
    layers = []
    for verdict, (shape, colour, _) in MARKS.items():
        rows = [{"n": t.number, "v": t.offered_per_s} for t in trials if (t.verdict or "interrupted") == verdict]
        if rows:
            mark = alt.Chart(values(rows)).mark_point(
                shape=shape, color=COLOURS[colour], filled=True, opacity=1, size=90, angle=45 if shape == "cross" else 0
            )
            layers.append(mark.encode(x=_x(trials), y=_y("v:Q", trials)))
    return layers
