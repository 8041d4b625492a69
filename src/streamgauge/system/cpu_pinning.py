"""The processors that processes and threads may use: their distribution to driver and SUT, and pinning."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress


def cpus() -> list[int]:
    """The processors this process may use."""
    return sorted(os.sched_getaffinity(0))


def allowed_cpus(pids: Iterable[int]) -> tuple[int, ...]:
    """The processors that any of these processes may use; empty if none of them exists."""
    found: set[int] = set()
    for pid in pids:
        with suppress(OSError):
            found |= os.sched_getaffinity(pid)
    return tuple(sorted(found))


def split_cpus() -> tuple[list[int], list[int]]:
    """(driver's, SUT's) processors for `pinned` isolation: one in four for the driver, at least one each."""
    processors = cpus()
    driver = max(1, len(processors) // 4)
    return processors[:driver], processors[driver:]


@contextmanager
def pin_threads(processors: Sequence[int] | None) -> Iterator[None]:
    """Restricts all threads of this process to these processors within the block; None changes nothing.

    For the span in which the SUT's processors are measured. Children that start within the block inherit the limit,
    and `cpus` returns only these processors.
    """
    if processors is None:
        yield
        return
    before = cpus()
    _move_threads(processors)
    try:
        yield
    finally:
        _move_threads(before)


def _move_threads(processors: Sequence[int]) -> None:
    # The kernel sets affinity per thread, and other threads of this process decode the children's answers.
    for task in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(task), processors)
