"""Sentiment Analysis: worked by hand, edge tweets included, against plain Python, and every word of its lists."""

import re
from collections import Counter
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.dataflow.lineage import identity
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.reach import reach_us
from streamgauge.engines.duckdb_oracle.process_operator import is_independent
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.workloads.dspbench.text.sentiment_analysis import (
    any_of,
    lexicon,
    negative_words,
    positive_words,
    stop_words,
)
from tests.unit.workloads import helpers_cuts
from tests.unit.workloads.helpers_cuts import all_rows, answered, job_of, table

Tweet = tuple[int | None, str | None, str | None]
"""(id, language, text); the n-th has event time and event id n."""
Answer = tuple[Any, ...]
"""(positive, negative, sentiment), or of the classifier (score, sentiment)."""


@cache
def flow_of(classifier_type: str = "scorers") -> Flow:
    return helpers_cuts.flow_of("sentiment_analysis", **{"sa.classifier.type": classifier_type})


def answers(tweets: list[Tweet], classifier_type: str = "scorers") -> dict[int, Answer]:
    """Which tweet to its answer."""
    columns = ("score", "sentiment") if classifier_type == "basic" else ("positive", "negative", "sentiment")
    timeline = table(tweets, id="int64", lang="string", text="string")
    results = answered(flow_of(classifier_type), {"timeline": timeline}).to_pylist()
    assert len({row["event_time"] for row in results}) == len(results)
    assert all(row["id"] == tweets[row["event_time"]][0] for row in results)
    return {row["event_time"]: tuple(row[name] for name in columns) for row in results}


def english(*texts: str) -> list[Tweet]:
    return [(1000 + number, "en", text) for number, text in enumerate(texts)]


def words_of(text: str) -> list[str]:
    """The words of a text, letter by letter: nothing of the flow's patterns."""
    letters = (sign if sign.isascii() and (sign.isalnum() or sign == "'") else " " for sign in text.replace("’", "'"))
    return [word.strip("'").lower() for word in "".join(letters).split(" ") if word.strip("'")]


def scored(text: str) -> Answer:
    """What the thesis's operators say of a text, in plain Python."""
    words = [word for word in words_of(text) if word not in set(stop_words())]
    good, bad = (sum(lexicon().get(word, 0) * sign > 0 for word in words) for sign in (1, -1))
    total = max(len(words), 1)
    return good / total, bad / total, "positive" if good > bad else "negative"


def classified(text: str) -> Answer:
    """What DSPBench's operator says of it."""
    score = sum(lexicon().get(word, 0) for word in words_of(text))
    return float(score), "positive" if score > 0 else "negative" if score < 0 else "neutral"


SCORED = {
    "I love this, it's GOOD!": (1.0, 0.0, "positive"),  # i, this and it's go
    "good bad day": (1 / 3, 1 / 3, "negative"),
    "good good good bad": (3 / 4, 1 / 4, "positive"),  # words side by side, the same one again
    "bad: sad, good": (1 / 3, 2 / 3, "negative"),
    "We WON'T go": (0.0, 0.0, "negative"),  # won't is a stop word, and not won
    "we won’t go": (0.0, 0.0, "negative"),
    "we won #happy … “nice” day": (3 / 4, 0.0, "positive"),
    "'good' ''happy bad'": (2 / 3, 1 / 3, "positive"),  # quotes are no part of a word
    "no good": (1 / 2, 1 / 2, "negative"),  # no is a stop word on Spark's list, and negative
    "good\nsad-day": (1 / 3, 1 / 3, "negative"),
    "xgood goodx good2 g-ood": (0.0, 0.0, "negative"),  # no part of a word counts
    "the": (0.0, 0.0, "negative"),
    "": (0.0, 0.0, "negative"),
    " ' ": (0.0, 0.0, "negative"),
    "日本 good": (1.0, 0.0, "positive"),
}
CLASSIFIED = {
    "good, good, BAD": (3.0, "positive"),  # 3 + 3 - 3
    "breathtaking": (5.0, "positive"),
    "no, sad": (-3.0, "negative"),  # -1 - 2
    "good but bad": (0.0, "neutral"),
    "the day": (0.0, "neutral"),
    "": (0.0, "neutral"),
}
"""Valences are summed, of stop words too; 0 is neutral."""
RULES = pytest.mark.parametrize(("classifier_type", "in_python", "texts"), [
    ("scorers", scored, SCORED), ("basic", classified, CLASSIFIED),
], ids=["scorers", "basic"])  # fmt: skip


@RULES
def test_worked_by_hand(classifier_type: str, in_python: Any, texts: dict[str, Answer]) -> None:
    """Shares are of the words that no stop word is; a tie is negative, and so is a tweet without a word."""
    assert answers(english(*texts), classifier_type) == dict(enumerate(texts.values()))
    assert [in_python(text) for text in texts] == list(texts.values())


def test_malformed_tweets_and_other_languages_have_no_sentiment() -> None:
    """Neither in the one way nor in the other."""
    tweets: list[Tweet] = [
        (1, "es", "good"), (2, None, "good"), (3, "EN", "good"), (4, "en", None), (None, "en", "good"),
        (6, "en", "good"),
    ]  # fmt: skip
    assert answers(tweets) == {5: (1.0, 0.0, "positive")}
    assert answers(tweets, "basic") == {5: (3.0, "positive")}
    assert answers([]) == {}


def test_an_id_that_comes_again_is_another_tweet() -> None:
    """Halves meet those of their own time alone."""
    tweets: list[Tweet] = [(7, "en", "good"), (7, "en", "bad"), (8, "en", "good bad day")]
    assert answers(tweets) == {0: (1.0, 0.0, "positive"), 1: (0.0, 1.0, "negative"), 2: (1 / 3, 1 / 3, "negative")}


@RULES
def test_every_word_of_the_lists_is_known_and_no_other(classifier_type: str, in_python: Any, texts: Any) -> None:
    """Each word alone, a part of it, and it with more behind it; twice, since words stand side by side."""
    known = [*lexicon(), *stop_words()]
    texts = [*known, *(word[:-1] for word in known), *(f"{word}e {word}" for word in known)]
    assert answers(english(*texts), classifier_type) == {n: in_python(text) for n, text in enumerate(texts)}


@given(st.sets(st.text("abc'", max_size=4), min_size=1, max_size=12), st.lists(st.text("abc'", max_size=5)))
def test_a_pattern_is_its_words_and_nothing_else(words: set[str], others: list[str]) -> None:
    """As a whole, whatever the words begin with."""
    pattern = re.compile(any_of(words))
    for text in [*words, *others]:
        assert (pattern.fullmatch(text) is not None) == (text in words)


def test_the_lexicon_is_afinn() -> None:
    """Its valences, without the terms that no word can be."""
    words = lexicon()
    assert (words["good"], words["bad"], words["abandon"], words["breathtaking"], words["no"]) == (3, -3, -2, 5, -1)
    assert len(words) > 2400
    assert set(words.values()) == {*range(-5, 6)} - {0}
    assert not {"no fun", "self-deluded", "naïve", "some kind"} & words.keys()
    assert {*positive_words(), *negative_words()} == words.keys()
    assert not {*positive_words()} & {*negative_words()}


def test_no_stop_word_has_a_sentiment() -> None:
    """They go before words are counted, so one that had would never be found."""
    assert {"the", "i", "won't", "would"} <= set(stop_words())
    assert not {*stop_words()} & lexicon().keys()


def test_its_truth_is_independent_and_results_are_known_by_their_tweet() -> None:
    """A join that waits for nothing."""
    assert is_independent(flow_of())
    assert reach_us(flow_of()) == 0
    assert identity(flow_of()) == ("timeline_event_id", "right_timeline_event_id")


@RULES
def test_the_tweets_that_are_made_are_of_every_kind(classifier_type: str, in_python: Any, texts: Any) -> None:
    """Of eight thousand of two generators by default: half English, each sentiment often, all as plain Python says."""
    plan = Plan(job_of("sentiment_analysis", 8000.0).streams, parse_profile("constant", 8000.0, 1.0), 0, 1.0, 2, 1)
    rows = all_rows(plan, 0, ["id", "lang", "text"])
    tweets = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    assert len({id_ for id_, _, _ in tweets}) == 8000
    results = answers(tweets, classifier_type)
    assert results == {n: in_python(text) for n, (_, lang, text) in enumerate(tweets) if lang == "en" and text}
    assert len(results) == pytest.approx(4000, abs=200)
    kinds = Counter(answer[-1] for answer in results.values())
    assert min(kinds.values()) > 400
    assert kinds.keys() == {answer[-1] for answer in texts.values()}
