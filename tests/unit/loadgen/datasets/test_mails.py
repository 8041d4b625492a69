"""Mails: any slice alone, lengths, words that lean, sentences, what a value takes, and what is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.loadgen.datasets.mails import LEAN, IsSpam, Message, shares, words
from streamgauge.loadgen.fields import FieldSpec, OwnNumber, vocabulary
from streamgauge.loadgen.random.philox import PhiloxBits

BITS = PhiloxBits(seed=1, stream=0, partition=0, field=1)
MESSAGE = Message("message", 8, 100, 0.25)
FIELDS = [OwnNumber("id"), MESSAGE, IsSpam("spam", MESSAGE, 1)]


def made(field: FieldSpec, bits: PhiloxBits, first: int, last: int) -> list[object]:
    values = field.column(bits, first, last)
    return values.tolist() if isinstance(values, np.ndarray) else values.to_pylist()


def test_no_two_mails_have_one_id() -> None:
    """Of two streams and two partitions."""
    every = [
        each for stream in (0, 1) for partition in (0, 1)
        for each in made(OwnNumber("id"), PhiloxBits(1, stream, partition, 0), 0, 1000)
    ]  # fmt: skip
    assert len(set(every)) == 4000


def test_a_label_is_that_of_the_mail() -> None:
    """Whatever the label's own place in the stream is; as many are spam as were asked for."""
    labels = made(FIELDS[2], replace(BITS, field=2), 0, 10_000)
    assert labels == MESSAGE.is_spam(BITS, 0, 10_000).tolist()
    assert labels.count(True) == pytest.approx(2500, abs=3 * (10_000 * 0.25 * 0.75) ** 0.5)
    assert not any(made(IsSpam("spam", replace(MESSAGE, spam=0.0), 1), BITS, 0, 1000))
    assert all(made(IsSpam("spam", replace(MESSAGE, spam=1.0), 1), BITS, 0, 1000))


def test_lengths_lie_around_the_mean() -> None:
    """From half to one and a half of it, most in the middle; a mail of one word has no other length."""
    lengths = Counter(str(mail).count(" ") + 1 for mail in made(replace(MESSAGE, words=40), BITS, 0, 5000))
    assert min(lengths) >= 20
    assert max(lengths) <= 60
    assert sum(length * count for length, count in lengths.items()) / 5000 == pytest.approx(40, abs=0.5)
    assert lengths[40] > 2 * lengths[30] > 4 * lengths[24]
    assert {str(mail).count(" ") for mail in made(replace(MESSAGE, words=1), BITS, 0, 100)} == {0}


def test_sentences() -> None:
    """The first of eight words has a capital, the last one a full stop, no other one has either."""
    for mail in made(replace(MESSAGE, words=16), BITS, 0, 50):
        for place, word in enumerate(str(mail).split(" ")):
            assert word.istitle() == (place % 8 == 0)
            assert word.endswith(".") == (place % 8 == 7)


def test_words_are_all_different_and_the_usual_ones_short() -> None:
    """Those of other texts first, then pairs of them."""
    found = words(10_000).to_pylist()
    assert len(set(found)) == 10_000
    assert found[:2500] == vocabulary().to_pylist()
    assert words(20).to_pylist() == found[:20]
    assert all(word.isascii() and word.islower() for word in found)


def test_words_come_as_often_as_they_are_likely() -> None:
    """In spam and in ham; one in ten leans to each side, by the square of the lean against the others."""
    of_spam, of_ham = shares(100)
    assert of_spam.sum() == pytest.approx(1)
    assert of_ham.sum() == pytest.approx(1)
    ratio = of_spam / of_ham
    assert Counter(np.round(ratio / ratio[0], 6)) == {1.0: 80, LEAN**2: 10, round(LEAN**-2, 6): 10}
    spam = MESSAGE.is_spam(BITS, 0, 20_000)
    mails = pa.array(made(MESSAGE, BITS, 0, 20_000))
    for kind, likely in ((spam, of_spam), (~spam, of_ham)):
        said = Counter(" ".join(mails.filter(pa.array(kind)).to_pylist()).lower().replace(".", "").split(" "))
        counts = np.array([said[word] for word in words(100).to_pylist()])
        expected = likely * counts.sum()
        assert set(said) <= set(words(100).to_pylist())
        assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected) + 1)
