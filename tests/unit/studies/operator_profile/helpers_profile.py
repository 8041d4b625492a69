"""Operator profiles as JSON has them."""

import functools
from typing import Any


def by_name(profile: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in profile["operators"]}


def column(profile: dict[str, Any], *path: str) -> dict[str, Any]:
    """One figure of each operator, by its path."""
    return {name: functools.reduce(lambda value, key: value[key], path, row) for name, row in by_name(profile).items()}
