"""Tweets: any slice alone, as many words and hashtags as asked for, and what is refused."""

from __future__ import annotations

import pytest

from streamgauge.errors import InputError
from streamgauge.load.bits import Bits
from streamgauge.load.tweets import Tweet

BITS = Bits(seed=1, stream=0, partition=0, field=0)


def test_any_slice_is_the_same() -> None:
    """Also across the ends of blocks."""
    field = Tweet("text", 3, 0.2)
    whole = field.column(BITS, 0, 40_000).to_pylist()
    for first, last in ((0, 1), (32_760, 33_000), (39_999, 40_000), (5, 5)):
        assert field.column(BITS, first, last).to_pylist() == whole[first:last]


@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_words_and_hashtags_are_as_many_as_asked_for(share: float) -> None:
    """Within three standard errors; a line takes about what is said."""
    field = Tweet("text", 5, share)
    made = field.column(BITS, 0, 10_000)
    words = [line.split(" ") for line in made.to_pylist()]
    assert {len(line) for line in words} == {5}
    tagged = sum(word.startswith("#") for line in words for word in line)
    assert tagged == pytest.approx(50_000 * share, abs=3 * (50_000 * share * (1 - share)) ** 0.5)
    assert field.row_bytes == pytest.approx(made.nbytes / 10_000, rel=0.05)


@pytest.mark.parametrize(("words", "share", "named"), [(0, 0.1, "text.words"), (5, 1.1, "text.hashtags")])
def test_nonsense_is_refused(words: int, share: float, named: str) -> None:
    """With the setting's name."""
    with pytest.raises(InputError, match=named):
        Tweet("text", words, share)
