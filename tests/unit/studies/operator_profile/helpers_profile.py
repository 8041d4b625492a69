"""Operator profiles as JSON has them."""

from __future__ import annotations

from typing import Any


def by_name(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in found["operators"]}
