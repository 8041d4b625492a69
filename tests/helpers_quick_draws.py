"""The circular block bootstrap of `streamgauge.stats.bootstrap`, for tests that ask for thousands of intervals.

The library draws replicate by replicate, 30 ms an interval; here they are drawn together, from the same stream of
random numbers and with the same answer, which tests/unit/stats/test_bootstrap.py holds against the library's.
"""

import numpy as np

from streamgauge.core.arrays import Floats
from streamgauge.stats import bootstrap


def replicates(residuals: Floats, weights: Floats, length: int) -> Floats:
    """`weights @ resampled residuals` (REPLICATES,) with circular blocks of `length` samples."""
    blocks = -(-residuals.size // length)
    starts = np.random.default_rng(0).integers(residuals.size, size=(bootstrap.REPLICATES, blocks))
    at = (starts[:, :, None] + np.arange(length)) % residuals.size
    return residuals[at.reshape(bootstrap.REPLICATES, -1)[:, : residuals.size]] @ weights
