"""Access control: every call carries the run's random token, which is checked before anything is read."""

from __future__ import annotations

import hmac
from typing import Any

import pyarrow.flight as flight

HEADER = "authorization"


class _Checked(flight.ServerMiddleware):
    pass


class TokenCheck(flight.ServerMiddlewareFactory):
    """Refuses every call without the run's token."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._expected = f"Bearer {token}".encode()

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> flight.ServerMiddleware:
        credentials = next((values[0] for name, values in headers.items() if name.lower() == HEADER), "")
        if not hmac.compare_digest(credentials.encode(), self._expected):
            raise flight.FlightUnauthenticatedError("the run's token is missing or wrong")
        return _Checked()


def call_options(token: str, timeout_s: float | None = None) -> flight.FlightCallOptions:
    return flight.FlightCallOptions(timeout=timeout_s, headers=[(HEADER.encode(), f"Bearer {token}".encode())])
