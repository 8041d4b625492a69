"""Tweets with opinions: any slice alone, words and forms as often as said, ids of their own, what is refused."""

from __future__ import annotations

from collections import Counter

import pytest

from streamgauge.loadgen.datasets.opinions import FORMS, SMALL, Opinion
from streamgauge.loadgen.fields import FieldSpec, OwnNumber
from streamgauge.loadgen.random.philox import PhiloxBits

BITS = PhiloxBits(seed=1, stream=0, partition=0, field=0)
GOOD, BAD, SMALL_WORDS = ("nice", "like"), ("awful", "sorry", "lame"), ("the", "i'm", "to")
"""`like` and `lame` are words of the vocabulary too."""


def opinion(words: int = 5, opinions: float = 0.2) -> Opinion:
    return Opinion("text", words, opinions, GOOD, BAD, SMALL_WORDS)


def values(field: FieldSpec, first: int, last: int, bits: PhiloxBits = BITS) -> list[object]:
    return list(field.column(bits, first, last).tolist())


def plain(word: str) -> str:
    return word.strip("#,.!…“”").lower()


def test_an_id_is_one_tweets_alone() -> None:
    """Whichever partition or stream it comes by, and whatever the seed: it is a place, and no draw."""
    found = [
        values(OwnNumber("id"), 0, 1000, PhiloxBits(1, stream, part, 0)) for stream in range(2) for part in range(3)
    ]
    assert len({number for numbers in found for number in numbers}) == 6000
    assert found[1] == values(OwnNumber("id"), 0, 1000, PhiloxBits(2, 0, 1, 4))


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_opinions_are_as_many_as_asked_for(share: float) -> None:
    """Half of them good, each word of a list as often as the next; within four standard errors."""
    lines = [str(line).split(" ") for line in values(opinion(opinions=share), 0, 10_000)]
    assert {len(line) for line in lines} == {5}
    seen = Counter(plain(word) for line in lines for word in line)
    for words in (GOOD, BAD):
        expected = 50_000 * share / 2 / len(words)
        for word in words:
            assert seen[word] == pytest.approx(expected, abs=4 * expected**0.5)


def test_small_words_are_many_the_first_most() -> None:
    """Of the ordinary words, by Zipf: 6/11, 3/11 and 2/11 of the small ones; the rest is made up."""
    seen = Counter(plain(word) for line in values(opinion(opinions=0.0), 0, 10_000) for word in str(line).split(" "))
    small = sum(seen[word] for word in SMALL_WORDS)
    assert small == pytest.approx(50_000 * SMALL, rel=0.05)
    assert [round(11 * seen[word] / small) for word in SMALL_WORDS] == [6, 3, 2]
    assert len(seen) > 1000


def test_words_are_written_in_every_way() -> None:
    """Each form of a word as often as its weight says."""
    field = Opinion("text", 5, 1.0, ("nice",), ("awful",), SMALL_WORDS)
    seen = Counter(word for line in values(field, 0, 20_000) for word in str(line).split(" "))
    assert sum(weight for _, weight in FORMS) == pytest.approx(1)
    for form, weight in FORMS:
        assert weight > 0
        assert seen[form("nice")] + seen[form("awful")] == pytest.approx(100_000 * weight, rel=0.15)
