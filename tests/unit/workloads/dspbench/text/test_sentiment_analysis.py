"""Sentiment Analysis: worked by hand, edge tweets included, against plain Python, and every word of its lists."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.dataflow import graph
from streamgauge.dataflow.lineage import identity, with_lineage
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.reach import reach_us
from streamgauge.engines.duckdb_oracle.engine import Oracle
from streamgauge.engines.duckdb_oracle.process_operator import is_independent
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.workloads import registry
from streamgauge.workloads.dspbench.text.sentiment_analysis import (
    any_of,
    lexicon,
    negative_words,
    positive_words,
    stop_words,
)
from tests.unit.helpers_duckdb import duckdb_session

WORKLOAD = registry.get("sentiment_analysis")
Tweet = tuple[int | None, str | None, str | None]
"""(id, language, text); the n-th has event time and event id n."""
Answer = tuple[Any, ...]
"""(positive, negative, sentiment), or of the classifier (score, sentiment)."""


@cache
def flow_of(classifier_type: str = "scorers") -> Flow:
    return WORKLOAD.build(WORKLOAD.read({"sa.classifier.type": classifier_type}), 1000.0).flow


@cache
def carried(classifier_type: str) -> Flow:
    return with_lineage(flow_of(classifier_type), ingest_time=False)


def rows(tweets: list[Tweet], classifier_type: str = "scorers") -> list[dict[str, Any]]:
    """Results as they are, in the order of event time."""
    ids, languages, texts = zip(*tweets, strict=True) if tweets else ((), (), ())
    numbers = pa.array(range(len(tweets)), pa.int64())
    events = pa.table({
        "id": pa.array(ids, pa.int64()), "lang": pa.array(languages, pa.string()), "text": pa.array(texts, pa.string()),
        "event_time": numbers, "event_id": numbers,
    })  # fmt: skip
    with duckdb_session() as connection:
        found = Oracle().answer(carried(classifier_type), {"timeline": events}, connection).to_arrow_table()
    return found.sort_by("event_time").to_pylist()


def answers(tweets: list[Tweet], classifier_type: str = "scorers") -> dict[int, Answer]:
    """Which tweet to its answer."""
    columns = ("score", "sentiment") if classifier_type == "basic" else ("positive", "negative", "sentiment")
    found = rows(tweets, classifier_type)
    assert len({row["event_time"] for row in found}) == len(found)
    assert all(row["id"] == tweets[row["event_time"]][0] for row in found)
    return {row["event_time"]: tuple(row[name] for name in columns) for row in found}


def english(*texts: str) -> list[Tweet]:
    return [(1000 + number, "en", text) for number, text in enumerate(texts)]


def words_of(text: str) -> list[str]:
    """The words of a text, letter by letter: nothing of the flow's patterns."""
    kept = (sign if sign.isascii() and (sign.isalnum() or sign == "'") else " " for sign in text.replace("’", "'"))
    return [word.strip("'").lower() for word in "".join(kept).split(" ") if word.strip("'")]


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


def test_worked_by_hand() -> None:
    """Shares are of the words that no stop word is; a tie is negative, and so is a tweet without a word."""
    texts = {
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
    assert answers(english(*texts)) == dict(enumerate(texts.values()))
    assert [scored(text) for text in texts] == list(texts.values())


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


def test_the_classifier_worked_by_hand() -> None:
    """Valences are summed, of stop words too; 0 is neutral."""
    texts = {
        "good, good, BAD": (3.0, "positive"),  # 3 + 3 - 3
        "breathtaking": (5.0, "positive"),
        "no, sad": (-3.0, "negative"),  # -1 - 2
        "good but bad": (0.0, "neutral"),
        "the day": (0.0, "neutral"),
        "": (0.0, "neutral"),
    }
    assert answers(english(*texts), "basic") == dict(enumerate(texts.values()))


def test_every_word_of_the_lists_is_known_and_no_other() -> None:
    """Each word alone, a part of it, and it with more behind it; twice, since words stand side by side."""
    known = [*lexicon(), *stop_words()]
    texts = [*known, *(word[:-1] for word in known), *(f"{word}e {word}" for word in known)]
    for way, expected in (("scorers", scored), ("basic", classified)):
        found = answers(english(*texts), way)
        assert found == {number: expected(text) for number, text in enumerate(texts)}


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


def test_the_flow_is_the_thesiss_and_its_truth_independent() -> None:
    """Two branches of one source, a join that waits for nothing, results known by their tweet."""
    names = [node.name for node in graph.operators(flow_of())]
    assert names == [
        "timeline", "tweet_filter", "text_filter", "stemmer", "positive_scorer", "negative_scorer", "joiner",
        "sentiment_scorer",
    ]  # fmt: skip
    assert is_independent(flow_of())
    assert reach_us(flow_of()) == 0
    assert identity(flow_of()) == ("timeline_event_id", "right_timeline_event_id")


@pytest.mark.parametrize("way", ["scorers", "basic"])
def test_the_tweets_that_are_made_are_of_every_kind(way: str) -> None:
    """Of eight thousand of two generators by default: half English, each sentiment often, all as plain Python says."""
    streams = WORKLOAD.build(WORKLOAD.read({}), 8000.0).streams
    plan = Plan(streams, parse_profile("constant", 8000.0, 1.0), 0, 1.0, 2, 1)
    columns = ["id", "lang", "text"]
    parts = [plan.batch(0, part, 0, plan.count_before(0, part, plan.end_us), columns) for part in range(2)]
    made = pa.Table.from_batches(parts)
    tweets = list(zip(*(made.column(name).to_pylist() for name in columns), strict=True))
    assert len({id_ for id_, _, _ in tweets}) == 8000
    found = answers(tweets, way)
    expected = scored if way == "scorers" else classified
    assert found == {n: expected(text) for n, (_, lang, text) in enumerate(tweets) if lang == "en" and text}
    assert len(found) == pytest.approx(4000, abs=200)
    kinds = [answer[-1] for answer in found.values()]
    assert min(kinds.count(kind) for kind in set(kinds)) > 400
    assert set(kinds) == ({"positive", "negative"} if way == "scorers" else {"positive", "negative", "neutral"})
