"""Stratified sampling: even, but random, so that it cannot be in step with a pattern such as chunks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SEED = 7


def stratified_indices(count: int, parts: int) -> NDArray[np.int64]:
    """Ascending indices below `count`, one random index from each of `parts` equal parts; all if there are fewer.

    The same arguments give the same indices.

    >>> stratified_indices(3, 10).tolist()
    [0, 1, 2]
    """
    if count <= parts:
        return np.arange(count, dtype=np.int64)
    borders = np.arange(parts + 1, dtype=np.int64) * count // parts
    return np.random.default_rng(SEED).integers(borders[:-1], borders[1:])
