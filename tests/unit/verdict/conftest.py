"""Intervals of slopes at a fiftieth of their cost, for every test of a verdict."""

import pytest


@pytest.fixture(autouse=True)
def quick(quick_draws: None) -> None: ...
