"""What every transport shares."""

from __future__ import annotations

from streamgauge.transports.spi import new_token


def test_tokens_are_long_and_new_each_time() -> None:
    """At least 128 bits, and no two alike."""
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 22
