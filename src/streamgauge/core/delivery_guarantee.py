"""The delivery guarantee that a program promises for its results."""

from __future__ import annotations

from typing import Literal

Delivery = Literal["exactly_once", "at_least_once", "at_most_once"]
