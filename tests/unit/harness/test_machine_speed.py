"""The same small piece of work, timed."""

from __future__ import annotations

import time

import pytest

from streamgauge.harness.monitors import MachineSpeed


def test_it_is_the_threads_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In microseconds; what the thread waited for a core is not in it."""
    readings = iter([5_000_000, 6_250_000])
    monkeypatch.setattr(time, "thread_time_ns", lambda: next(readings))
    assert MachineSpeed().cpu_us() == 1250.0


def test_it_passes_over_more_memory_than_caches_hold_and_keeps_little() -> None:
    """More than a shared cache of 32 MiB, or a machine whose memory has become slow would not be seen; 64 MB at most,
    since it is the driver's.
    """
    kept = sum(array.nbytes for array in vars(MachineSpeed()).values())
    assert 32 * 2**20 < kept <= 64_000_000


def test_it_takes_some_time() -> None:
    """A clock that is too coarse, or work that is none, would give 0."""
    work = MachineSpeed()
    assert min(work.cpu_us() for _ in range(5)) > 0
