"""Samples a process's memory at fixed intervals and reports its distribution (Bordin 2017, section 3.4)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

import numpy as np

from streamgauge.results.profile import MemoryBehaviour, MemoryDistribution, MemoryLevel

INTERVAL_S = 0.5
VARIABLE_FROM = 1.25
"""Memory is variable where its p95 is so many times its p50, or its p50 so many times its least, or more."""
MEDIUM_FROM_BYTES, HIGH_FROM_BYTES = 2**30, 4 * 2**30
"""By the p95."""


class MemorySampler:
    """Calls `read` every `interval_s` while the context is entered; ignores readings of None."""

    def __init__(self, read: Callable[[], int | None], interval_s: float = INTERVAL_S) -> None:
        self._read, self._interval_s = read, interval_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="memory", daemon=True)
        self.samples: list[int] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        going_on = True
        while going_on:
            found = self._read()
            if found is not None:
                self.samples.append(found)
            going_on = not self._over.wait(self._interval_s)


def distribution(samples: Sequence[int], of: str, interval_s: float = INTERVAL_S) -> MemoryDistribution | None:
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
        interval_s=interval_s,
        behaviour=behaviour(least, middle, high),
        level=level(high),
    )


def behaviour(least: int, p50: int, p95: int) -> MemoryBehaviour:
    return "variable" if p95 >= VARIABLE_FROM * p50 or p50 >= VARIABLE_FROM * least else "fixed"


def level(p95: int) -> MemoryLevel:
    if p95 < MEDIUM_FROM_BYTES:
        return "low"
    return "medium" if p95 < HIGH_FROM_BYTES else "high"
