"""Mails: lengths, words that lean, sentences.

Tweets with opinions: words and forms as often as said.

Tweets: as many words and hashtags as asked for.

Stamped records: by hand.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.loadgen.datasets.texts import (
    FORMS,
    LEAN,
    RECORD_BYTES_MIN,
    SMALL,
    IsSpam,
    Message,
    Opinion,
    TimestampedText,
    Tweet,
    shares,
    words,
)
from streamgauge.loadgen.fields import FieldSpec, OwnNumber, vocabulary
from streamgauge.loadgen.random import PhiloxBits

MAIL_BITS = PhiloxBits(seed=1, stream=0, partition=0, field=1)
MESSAGE = Message("message", 8, 100, 0.25)
FIELDS = [OwnNumber("id"), MESSAGE, IsSpam("spam", MESSAGE, 1)]


BITS = replace(MAIL_BITS, field=0)


def values(field: FieldSpec, first: int, last: int, bits: PhiloxBits = BITS) -> list[Any]:
    column = field.column(bits, first, last)
    return column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()


def test_a_label_is_that_of_the_mail() -> None:
    """Whatever the label's own place in the stream is; as many are spam as the share says."""
    labels = values(FIELDS[2], 0, 10_000, replace(MAIL_BITS, field=2))
    assert labels == MESSAGE.is_spam(MAIL_BITS, 0, 10_000).tolist()
    assert labels.count(True) == pytest.approx(2500, abs=3 * (10_000 * 0.25 * 0.75) ** 0.5)
    assert not any(values(IsSpam("spam", replace(MESSAGE, spam=0.0), 1), 0, 1000, MAIL_BITS))
    assert all(values(IsSpam("spam", replace(MESSAGE, spam=1.0), 1), 0, 1000, MAIL_BITS))


def test_lengths_lie_around_the_mean() -> None:
    """From half to one and a half of it, most in the middle; a mail of one word has no other length."""
    lengths = Counter(mail.count(" ") + 1 for mail in values(replace(MESSAGE, words=40), 0, 5000, MAIL_BITS))
    assert 20 <= min(lengths) < max(lengths) <= 60
    assert sum(length * count for length, count in lengths.items()) / 5000 == pytest.approx(40, abs=0.5)
    assert lengths[40] > 2 * lengths[30] > 4 * lengths[24]
    assert {mail.count(" ") for mail in values(replace(MESSAGE, words=1), 0, 100, MAIL_BITS)} == {0}


def test_sentences() -> None:
    """The first of eight words has a capital, the last one a full stop, no other one has either."""
    for mail in values(replace(MESSAGE, words=16), 0, 50, MAIL_BITS):
        for place, word in enumerate(mail.split(" ")):
            assert word.istitle() == (place % 8 == 0)
            assert word.endswith(".") == (place % 8 == 7)


def test_words_are_all_different_and_the_usual_ones_short() -> None:
    """Those of other texts first, then pairs of them."""
    all_words = words(10_000).to_pylist()
    assert len(set(all_words)) == 10_000
    assert all_words[:2500] == vocabulary().to_pylist()
    assert words(20).to_pylist() == all_words[:20]
    assert all(word.isascii() and word.islower() for word in all_words)


def test_words_come_as_often_as_they_are_likely() -> None:
    """In spam and in ham; one in ten leans to each side, by the square of the lean against the others."""
    of_spam, of_ham = shares(100)
    assert of_spam.sum() == pytest.approx(1)
    assert of_ham.sum() == pytest.approx(1)
    ratio = of_spam / of_ham
    assert Counter(np.round(ratio / ratio[0], 6)) == {1.0: 80, LEAN**2: 10, round(LEAN**-2, 6): 10}
    spam = MESSAGE.is_spam(MAIL_BITS, 0, 20_000)
    mails = pa.array(values(MESSAGE, 0, 20_000, MAIL_BITS))
    for kind, likely in ((spam, of_spam), (~spam, of_ham)):
        seen = Counter(" ".join(mails.filter(pa.array(kind)).to_pylist()).lower().replace(".", "").split(" "))
        counts = np.array([seen[word] for word in words(100).to_pylist()])
        expected = likely * counts.sum()
        assert set(seen) <= set(words(100).to_pylist())
        assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected) + 1)


GOOD, BAD, SMALL_WORDS = ("nice", "like"), ("awful", "sorry", "lame"), ("the", "i'm", "to")
"""`like` and `lame` are words of the vocabulary too."""


def opinion(words: int = 5, opinions: float = 0.2) -> Opinion:
    return Opinion("text", words, opinions, GOOD, BAD, SMALL_WORDS)


def plain(word: str) -> str:
    return word.strip("#,.!…“”").lower()


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_opinions_come_in_their_share(share: float) -> None:
    """Half of them good, each word of a list as often as the next; within four standard errors."""
    lines = [str(line).split(" ") for line in values(opinion(opinions=share), 0, 10_000)]
    assert {len(line) for line in lines} == {5}
    seen = Counter(plain(word) for line in lines for word in line)
    for leaning in (GOOD, BAD):
        expected = 50_000 * share / 2 / len(leaning)
        for word in leaning:
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


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_words_and_hashtags_come_in_their_shares(share: float) -> None:
    """Within three standard errors; `test_every_field` looks at what a line takes."""
    lines = [line.split(" ") for line in values(Tweet("text", 5, share), 0, 10_000)]
    assert {len(line) for line in lines} == {5}
    tagged = sum(word.startswith("#") for line in lines for word in line)
    assert tagged == pytest.approx(50_000 * share, abs=3 * (50_000 * share * (1 - share)) ** 0.5)


def test_a_record_by_hand() -> None:
    """Worked out by hand: at 1000/s the fourth record of the second of two partitions is number 7, 7 ms later."""
    (record,) = (
        TimestampedText("record", RECORD_BYTES_MIN, 1000.0)
        .of_events(PhiloxBits(1, 0, 1, 0), 3, 4, lambda: np.array([7]))
        .to_pylist()
    )
    assert record == "0000000007,000000007000,"
