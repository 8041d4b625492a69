"""A result in words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from streamgauge.report import sentences, words
from streamgauge.result import Latencies, Latency, Result, Verdict

Make = Callable[..., Result]


def plain(text: str) -> str:
    return text.replace(words.GAP, " ")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("sustained", "200 k events/s sustained"),
        ("not_sustained", "200 k events/s not sustained"),
        ("undecided", "200 k events/s: not enough evidence"),
        ("invalid", "200 k events/s: invalid"),
        ("interrupted", "200 k events/s: interrupted"),
    ],
)
def test_answer_never_claims_more_than_the_verdict(make_result: Make, value: str, said: str) -> None:
    """Only a sustained rate is called sustained."""
    assert plain(sentences.answer(make_result(verdict=Verdict(value=value)))) == said  # type: ignore[arg-type]


def test_answer_of_a_search_is_its_rate(make_search: Callable[[], Result]) -> None:
    """A search answers with the rate found, and its bracket beside it."""
    assert plain(sentences.answer(make_search())) == "1.54 M events/s sustained"
    assert plain(sentences.bounds(make_search())).startswith(
        "1.54 M holds, 1.64 M does not; confirmed on a fresh engine, but undecided at 90 %; isolation"
    )


def test_three_sentences(make_result: Make) -> None:
    """Throughput, lateness, correctness, in that order."""
    assert [plain(sentence) for sentence in sentences.three(make_result())] == [
        "200 k events/s were offered for 1 min, and spark took in 200 k events/s.",
        "Half of the results came within 2.6 s of their event time, 99 % within 4.3 s, the last within 5.2 s.",
        "15 000 results expected, all matched.",
    ]


def test_missing_results_are_said(make_result: Make) -> None:
    """Results that never came are in the sentence, and no "last" is claimed."""
    late = Latencies(event_time_us=Latency(p50=1e6, p99=2e6, max=3e6, lower_bounds=4))
    said = sentences.three(make_result(latency=late))[1]
    assert "4 never came" in said
    assert "the last" not in said


def test_nothing_measured_says_so(make_result: Make) -> None:
    """A run without figures invents none."""
    empty = make_result(rate=None, latency=Latencies(), verification=None)
    assert sentences.answer(empty) == "nothing was measured"
    assert sentences.three(empty) == ("Answers: not judged.",)
