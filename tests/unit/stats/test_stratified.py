"""Some of many: evenly, and in step with nothing."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.stats.stratified import stratified_indices


@given(st.integers(0, 5000), st.integers(1, 200))
def test_there_is_one_of_each_part(count: int, parts: int) -> None:
    """Whatever the parts' length; of few all."""
    found = stratified_indices(count, parts)
    assert len(found) == min(count, parts)
    assert (np.diff(found) > 0).all()
    if count > parts:
        borders = np.arange(parts + 1) * count // parts
        assert (np.searchsorted(borders, found, side="right") - 1).tolist() == list(range(parts))
    assert found.tolist() == stratified_indices(count, parts).tolist()


def test_it_is_in_step_with_nothing() -> None:
    """Of chunks of a hundred as many first as last ones are met, though every chunk is one part."""
    places = stratified_indices(100_000, 1000) % 100
    assert 45 < places.mean() < 54
