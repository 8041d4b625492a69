"""What searches say: one file of sentences, one for each code."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from streamgauge.results.codes import LagGrowth, NextStep, RateLimit, SearchEnd
from streamgauge.results.search import SearchResult, TrialSummary
from streamgauge.results.text.search import ENDS, GROWTHS, LIMITS, NEXT_STEPS, limit_sentence, search_sentence
from streamgauge.results.text.sentences import RUN_AGAIN, fill, trials_in_words
from streamgauge.results.verdict import Remark
from tests.helpers_golden import assert_golden

BESIDE = "invalid: background processes used 40% of the CPU (limit 10%)"
FACTS: dict[str, Any] = {
    "rate": 78_100.0, "faults": "3 missing", "why": BESIDE, "reason": "no such master", "twice": True, "n": 2,
    "confirmed": True, "folder": "runs/one", "go_on": "streamgauge sustain --resume runs/one", "more": 24,
    "advice": f"close the background processes{RUN_AGAIN}", "invalid": "runs/one/trials/02",
    "last": "runs/one/trials/09", "longer_s": 120.0, "sut": 110.0, "allowed": 200.0, "driver": 20.0, "broker": 0.0,
    "others": 0.0, "single": True, "advised": False, "records": 120.4, "low": -30.0, "high": 270.0, "half": 150.0,
    "limit": 100.0, "scatter": 5477.2, "least": 3,
}  # fmt: skip
VARIANTS: list[tuple[dict[StrEnum, str], StrEnum, dict[str, Any]]] = [
    (ENDS, SearchEnd.INVALID_TWICE, {"twice": False, "why": ""}),
    (ENDS, SearchEnd.NO_RATE_HELD, {"confirmed": False}),
    (NEXT_STEPS, NextStep.MEND_AND_SEARCH, {"advice": ""}),
    (LIMITS, RateLimit.ENGINE_CPU, {"others": 8.0}),
    (LIMITS, RateLimit.SHARED_CPU, {"broker": 60.0}),
    (LIMITS, RateLimit.BACKGROUND_LOAD, {"others": 60.0, "advised": True}),
    (LIMITS, RateLimit.NOT_CPU, {"single": False}),
    (GROWTHS, LagGrowth.MEASURED, {"records": -50.0, "half": 0.0}),
]


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        ([one for one in SearchEnd if one != SearchEnd.INTERRUPTED], ENDS),
        (NextStep, NEXT_STEPS),
        (RateLimit, LIMITS),
        (LagGrowth, GROWTHS),
    ],
)
def test_every_code_has_words(codes: Iterable[StrEnum], words: dict[StrEnum, str]) -> None:
    assert list(words) == list(codes)


def test_sentences() -> None:
    scenes: list[tuple[dict[StrEnum, str], StrEnum, dict[str, Any]]]
    scenes = [(words, code, {}) for words in (ENDS, NEXT_STEPS, LIMITS, GROWTHS) for code in words] + VARIANTS
    lines = [f"{code}: {fill(words[code], **FACTS | changed)}\n" for words, code, changed in scenes]
    lines += [
        f"{limit_sentence(Remark(RateLimit.ENGINE_CPU, FACTS | {'above': above}))}\n" for above in ("held", "invalid")
    ]
    lines += [f"{one}\n" for one in _answers()]
    assert_golden(Path(__file__).parent / "golden" / "search.txt", "".join(lines))


def _answers() -> Iterator[str]:
    """A search that found its rate, and one for each thing that may be missing there."""
    trial = TrialSummary(number=1, purpose="confirm", offered_per_s=1e6, verdict="sustained", engine_start=2)
    found = SearchResult(
        sustained_per_s=1e6, low=1e6, high=1.04e6, high_verdict="not_sustained", relative_width=0.04, confirmed=True,
        at_90_percent=trial.model_copy(update={"offered_per_s": 9.5e5}), trials=(trial,),
    )  # fmt: skip
    ended = Remark(SearchEnd.TRIALS_USED_UP, FACTS)
    cases: list[tuple[dict[str, Any], Remark | None, dict[str, Any]]] = [
        ({}, None, {"narrow_to": 0.05}),
        ({"relative_width": 0.2}, None, {}),
        ({"high_verdict": "undecided", "relative_width": None}, None, {}),
        ({"high_verdict": "invalid", "relative_width": None}, None, {}),
        ({"high": None, "high_verdict": None, "relative_width": None}, None, {"at_ceiling": True}),
        ({"confirmed": False}, None, {"quick": True}),
        ({"confirmed": False}, ended, {"quick": True}),
        ({"low": None, "relative_width": None, "confirmed": False}, ended, {}),
    ]
    for changed, end, options in cases:
        asked = {"quick": False, "at_ceiling": False, "narrow_to": None} | options
        yield search_sentence(found.model_copy(update=changed), end, **asked)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((2,), "trial 2"),
        ((2, 3), "trials 2 and 3"),
        ((1, 3, 5), "trials 1, 3 and 5"),
        (tuple(range(2, 13)), "trials 2 to 12"),
        ((1, 3, 4, 5), "trials 1 and 3 to 5"),
    ],
)
def test_trials_are_named_by_their_runs(numbers: tuple[int, ...], words: str) -> None:
    assert trials_in_words(numbers) == words
