"""Times of results as numbers."""

from datetime import UTC, datetime, timedelta
from typing import Any


def us_of(value: Any) -> Any:
    """A timestamp without a zone as microseconds since the epoch; any other value unchanged."""
    if not isinstance(value, datetime):
        return value
    return (value.replace(tzinfo=UTC) - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
