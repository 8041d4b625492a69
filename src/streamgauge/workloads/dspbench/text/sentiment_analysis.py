"""Sentiment Analysis (SA): whether a tweet is positive or negative, by its words.

English tweets are cleaned and lose their stop words. Two branches count the positive and the negative words, each as a
share of all words, and a join by the tweet's id combines them. A tweet with more positive than negative words is
positive, any other is negative, including ties. A tweet without an id, a language or a text is malformed and has no
sentiment. A tweet without words is negative, because it has no positive word.

All operators are native. A word list is one pattern in which words share their common beginnings (`any_of`), because an
alternation of whole words would be tried one by one at every word of a tweet. Cleaned words are separated by two
spaces, so that each word has its own space on both sides. The join is an interval join of length 0: both halves of a
tweet have the same time, so the join waits for nothing and the next batch forgets them.

DSPBench has a single operator instead, a sum of valences over tweets of any language. It is available as
`classifier_type=basic`, for English. Its word list has terms that no word can equal; they are left out here.

Source: Bordin 2017, section 3.3.5.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Literal
from zipfile import ZipFile

from pydantic import Field

from streamgauge.dataflow.builder import Stream, source
from streamgauge.loadgen.datasets.texts import Opinion
from streamgauge.loadgen.fields import OwnNumber, StreamSpec, with_malformed
from streamgauge.loadgen.fitted import Choice
from streamgauge.workloads.registry import Feature, Job, Parameters, Workload

OTHER_LANGUAGES = {"ja": 0.35, "es": 0.25, "pt": 0.2, "ar": 0.2}
"""Language to its share of the non-English tweets."""

CLEAN = (
    "lower(regexp_replace(regexp_replace(replace(concat(' ', text, ' '), '’', '\\''),"
    " '[^A-Za-z0-9\\']+', '  '), ' \\'+|\\'+ ', ' '))"
)
"""Words are runs of ASCII letters, digits and apostrophes. Apostrophes at their ends are quotes. Letters of other
alphabets are removed before `lower`, because engines disagree about some of them."""

_WORD = re.compile("[a-z0-9]+")


class SentimentAnalysis(Parameters):
    """DSPBench's parameter and the tweets'. The thesis has only numbers of instances."""

    classifier_type: Literal["scorers", "basic"] = Field(
        "scorers",
        description="scorers: two branches and a join, as in the thesis; basic: DSPBench's sum of valences",
    )
    words: int = Field(15, ge=1, le=140, description="number of words in a tweet")
    opinions: float = Field(0.15, ge=0, le=1, description="share of the words that are positive or negative")
    english: float = Field(0.5, ge=0, le=1, description="share of the tweets that are in English")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the tweets without a text")


def _shipped(package: str, file: str) -> Path:
    """A data file of an installed package, without importing the package."""
    return Path(str(distribution(package).locate_file(file)))


@lru_cache(maxsize=1)
def lexicon() -> dict[str, int]:
    """Word to valence, from -5 to 5 except 0: the terms of AFINN-111 that are one plain word.

    The list has the Open Database License, so it is read from its own package rather than copied.
    """
    terms = _shipped("afinn", "afinn/data/AFINN-111.txt").read_text("utf-8").splitlines()
    valences = {term: int(valence) for term, valence in (line.split("\t") for line in terms)}
    return {term: valence for term, valence in valences.items() if valence and _WORD.fullmatch(term)}


@lru_cache(maxsize=1)
def stop_words() -> tuple[str, ...]:
    """The English stop words of Spark's StopWordsRemover, except words in the lexicon (`no` is negative)."""
    (jar,) = _shipped("pyspark", "pyspark/jars").glob("spark-mllib_*.jar")
    with ZipFile(jar) as opened:
        listed = opened.read("org/apache/spark/ml/feature/stopwords/english.txt").decode().split()
    return tuple(word for word in listed if word not in lexicon())


@lru_cache(maxsize=1)
def positive_words() -> tuple[str, ...]:
    return tuple(word for word, valence in lexicon().items() if valence > 0)


@lru_cache(maxsize=1)
def negative_words() -> tuple[str, ...]:
    return tuple(word for word, valence in lexicon().items() if valence < 0)


def any_of(words: Iterable[str]) -> str:
    """A pattern that matches exactly these words.

    >>> any_of(["bad", "badly", "bat", "bath"])
    'ba(?:d(?:ly)?|th?)'
    """
    endings: dict[str, list[str]] = {}
    for word in sorted(set(words)):
        endings.setdefault(word[:1], []).append(word[1:])
    may_end = endings.pop("", None) is not None
    alternatives = [letter + any_of(rest) for letter, rest in endings.items()]
    if len(alternatives) == 1 and (len(alternatives[0]) == 1 or not may_end):
        either = alternatives[0]
    elif all(len(each) == 1 for each in alternatives):
        either = f"[{''.join(alternatives)}]" if alternatives else ""
    else:
        either = f"(?:{'|'.join(alternatives)})"
    return either + ("?" if alternatives and may_end else "")


def _spaced(words: Iterable[str]) -> str:
    """A pattern of one of these words with its spaces, as a literal of an expression."""
    return "' " + any_of(words).replace("'", "\\'") + " '"


def _count(words: Iterable[str]) -> str:
    """The number of these words in the text."""
    return f"size(regexp_extract_all(text, {_spaced(words)}, 0))"


@lru_cache(maxsize=2)
def _share(words: tuple[str, ...]) -> str:
    """The share of these words among the text's words; 0 without words."""
    return f"coalesce(try_divide({_count(words)}, size(regexp_extract_all(text, '[^ ]+', 0))), 0e0)"


@lru_cache(maxsize=1)
def _valence() -> str:
    """The sum of the valences of the text's words."""
    words = lexicon()
    counts = {valence: _count(word for word in words if words[word] == valence) for valence in set(words.values())}
    return " + ".join(f"{valence} * {count}" for valence, count in sorted(counts.items()))


def _scored(cleaned: Stream) -> Stream:
    """The thesis's version: two branches and a join."""
    stemmed = cleaned.select(id="id", text=f"regexp_replace(text, {_spaced(stop_words())}, '')", name="stemmer")
    positive = stemmed.select(id="id", positive=_share(positive_words()), name="positive_scorer")
    negative = stemmed.select(id="id", negative=_share(negative_words()), name="negative_scorer")
    return positive.interval_join(negative, on="id", name="joiner").select(
        id="id", positive="positive", negative="negative",
        sentiment="if(positive > negative, 'positive', 'negative')", name="sentiment_scorer",
    )  # fmt: skip


def _classified(cleaned: Stream) -> Stream:
    """DSPBench's version: one operator, row by row."""
    sentiment = "CASE WHEN score > 0 THEN 'positive' WHEN score < 0 THEN 'negative' ELSE 'neutral' END"
    return cleaned.select(id="id", score=f"try_cast({_valence()} AS double)", name="classifier").select(
        id="id", score="score", sentiment=sentiment, name="sentiment"
    )


def _timeline(parameters: SentimentAnalysis) -> StreamSpec:
    """`timeline(id, lang, text)`."""
    other_shares = [(1 - parameters.english) * share for share in OTHER_LANGUAGES.values()]
    lang = Choice("lang", ("en", *OTHER_LANGUAGES), (parameters.english, *other_shares))
    text = Opinion("text", parameters.words, parameters.opinions, positive_words(), negative_words(), stop_words())
    return StreamSpec("timeline", (OwnNumber("id"), lang, with_malformed(text, parameters.malformed, None)))


def build(parameters: SentimentAnalysis, rate_per_s: float) -> Job:
    timeline = _timeline(parameters)
    cleaned = (
        source("timeline", timeline.schema)
        .where("lang = 'en' AND id IS NOT NULL AND text IS NOT NULL", name="tweet_filter")
        .select(id="id", text=CLEAN, name="text_filter")
    )
    classified = _classified(cleaned) if parameters.classifier_type == "basic" else _scored(cleaned)
    malformed = "id IS NULL OR lang IS NULL OR text IS NULL"
    return Job(classified.sink("sentiments"), (timeline,), {"timeline": malformed})


WORKLOAD = Workload(
    name="sentiment_analysis",
    title="sentiment analysis",
    summary="whether tweets are positive or negative, by their words: two branches and a join",
    source="Bordin 2017, section 3.3.5",
    parameters=SentimentAnalysis,
    build=build,
    features=(Feature.FILTER, Feature.SELF_JOIN, Feature.LOOKUP),
    prefix="sa",
)
