"""Record a call in a one-line replacement of a function."""

from typing import Any


def append_and_return(log: list[Any], entry: Any, result: Any = None) -> Any:
    """`result`, after `entry` is appended to `log`."""
    log.append(entry)
    return result
