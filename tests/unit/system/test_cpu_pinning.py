"""How processors are shared out, and threads kept off them."""

import os
import threading
from contextlib import suppress

import pytest

from streamgauge.system import cpu_pinning


@pytest.mark.parametrize(("cores", "for_driver"), [(1, 1), (2, 1), (4, 1), (8, 2), (17, 4)])
def test_pinned_cores_are_apart(monkeypatch: pytest.MonkeyPatch, cores: int, for_driver: int) -> None:
    """One in four to the driver, at least one; nothing shared, nothing left over."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    driver, sut = cpu_pinning.split_cpus()
    assert len(driver) == for_driver
    assert [*driver, *sut] == list(range(cores))


def affinities() -> set[frozenset[int]]:
    """Of all threads of this process."""
    results = set()
    for task in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):
            results.add(frozenset(os.sched_getaffinity(int(task))))
    return results


@pytest.mark.skipif(len(cpu_pinning.cpus()) < 2, reason="there is nothing to choose from")
def test_the_driver_keeps_off_the_others_processors_for_a_while() -> None:
    """With all its threads, those that are there before too; whatever ends it, all is as before."""
    before, one = cpu_pinning.cpus(), cpu_pinning.cpus()[:1]
    with cpu_pinning.pin_threads(None):
        assert cpu_pinning.cpus() == before == sorted(os.sched_getaffinity(0))  # shared ones are left alone
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    with suppress(KeyboardInterrupt), cpu_pinning.pin_threads(one):
        inside = affinities()
        raise KeyboardInterrupt
    outside = affinities()
    ended.set()
    thread.join()
    assert inside == {frozenset(one)}
    assert outside == {frozenset(before)}
