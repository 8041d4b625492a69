"""Tweets: any slice alone, as many words and hashtags as asked for, and what is refused."""

from __future__ import annotations

import pytest

from streamgauge.loadgen.datasets.tweets import Tweet
from streamgauge.loadgen.random.philox import PhiloxBits

BITS = PhiloxBits(seed=1, stream=0, partition=0, field=0)


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
