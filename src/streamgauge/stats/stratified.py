"""Some of many things, evenly and yet by chance: whatever repeats among them, as chunks do, falls in with no step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SEED = 7


def stratified_indices(count: int, parts: int) -> NDArray[np.int64]:
    """Of `count` things, numbered from 0, one of each of so many equal parts; all of them where there are no more. The
    numbers ascend, and are the same for the same count.

    >>> stratified_indices(3, 10).tolist()
    [0, 1, 2]
    """
    if count <= parts:
        return np.arange(count, dtype=np.int64)
    borders = np.arange(parts + 1, dtype=np.int64) * count // parts
    return np.random.default_rng(SEED).integers(borders[:-1], borders[1:])
