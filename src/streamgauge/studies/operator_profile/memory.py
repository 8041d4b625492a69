"""Samples a process's memory at fixed intervals and reports its distribution (Bordin 2017, section 3.4).

It is of its own because the documents' overview of memory is checked by these levels without an engine.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from streamgauge.core.clock import repeated
from streamgauge.results.profile import MemoryBehaviour, MemoryDistribution, MemoryLevel

INTERVAL_S = 0.5
VARIABLE_FROM = 1.25
"""Memory is variable where its p95 is so many times its p50, or its p50 so many times its least, or more."""
MEDIUM_FROM_BYTES, HIGH_FROM_BYTES = 2**30, 4 * 2**30
"""By the p95."""


@contextmanager
def sampled(read: Callable[[], int | None], interval_s: float = INTERVAL_S) -> Iterator[list[int]]:
    """Calls `read` every `interval_s` until the context is left, and at least once; ignores readings of None."""
    samples: list[int] = []

    def sample() -> None:
        if (found := read()) is not None:
            samples.append(found)

    with repeated(sample, interval_s, "memory"):
        yield samples


def distribution(samples: Sequence[int], of: str) -> MemoryDistribution | None:
    """The distribution of samples in bytes, and its behaviour; None without a sample."""
    if not samples:
        return None
    least, middle, high = (int(np.quantile(samples, q, method="inverted_cdf")) for q in (0.0, 0.5, 0.95))
    return MemoryDistribution(
        of=of,
        min=least,
        p50=middle,
        p95=high,
        max=max(samples),
        samples=len(samples),
        interval_s=INTERVAL_S,
        behaviour=behaviour(least, middle, high),
        level=level(high),
    )


def behaviour(least: int, p50: int, p95: int) -> MemoryBehaviour:
    return "variable" if p95 >= VARIABLE_FROM * p50 or p50 >= VARIABLE_FROM * least else "fixed"


def level(p95: int) -> MemoryLevel:
    return "low" if p95 < MEDIUM_FROM_BYTES else "medium" if p95 < HIGH_FROM_BYTES else "high"
