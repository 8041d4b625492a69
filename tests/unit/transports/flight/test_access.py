"""Tokens are compared before anything is read."""

from __future__ import annotations

import pyarrow.flight as flight
import pytest

from streamgauge.transports.flight.access import TokenCheck


@pytest.mark.parametrize("name", ["authorization", "Authorization", "AUTHORIZATION"])
def test_the_right_token_passes(name: str) -> None:
    """Header names come in any case."""
    assert TokenCheck("secret").start_call(None, {name: ["Bearer secret"]}) is not None


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": [""]},
        {"authorization": ["secret"]},
        {"authorization": ["Bearer "]},
        {"authorization": ["Bearer secre"]},
        {"authorization": ["Bearer secret2"]},
        {"authorization": ["bearer secret"]},
        {"other": ["Bearer secret"]},
        {"authorization": ["Bearer wrong", "Bearer secret"]},
    ],
)
def test_everything_else_is_refused(headers: dict[str, list[str]]) -> None:
    """Missing, shortened, lengthened, or in another place; the message does not hold the token."""
    with pytest.raises(flight.FlightUnauthenticatedError, match="token is missing or wrong") as caught:
        TokenCheck("secret").start_call(None, headers)
    assert "secret" not in str(caught.value)


def test_a_token_of_other_letters_is_refused_not_crashed_on() -> None:
    """Comparing in constant time must not fail on letters outside ASCII."""
    with pytest.raises(flight.FlightUnauthenticatedError):
        TokenCheck("secret").start_call(None, {"authorization": ["Bearer sécret"]})
