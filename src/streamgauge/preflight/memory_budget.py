"""How the machine's memory is shared out before anything starts: the engine's heap, the driver's queue, generators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from streamgauge.core.errors import Problem

QUEUE_BYTES = 4 * 2**30
"""The queue's bound where none was asked for, on a machine with twice as much."""
GENERATORS_MAX = 8
"""No more where none were asked for."""
GENERATOR_BYTES = 160_000_000
"""A generator process beside what it holds of the queue: 146 to 155 MB of resident memory were measured, libraries that
several processes share among them (an idle one has 70 MB to itself)."""


@dataclass(frozen=True)
class Budget:
    """This machine's memory `there`, the engine's `heap`, and the `queue` that was asked for, all in bytes.

    The heap is 0 where the engine has none, or none that is known; the queue None where none was asked for, or none
    that there can be.
    """

    there: int
    heap: int
    queue: int | None

    def queue_beside(self, generators: int) -> int:
        """The queue's bound: what was asked for, else what generators leave of the driver's part of the memory."""
        if self.queue is not None:
            return self.queue
        drivers = self.there - min(self.heap, self.there // 2)
        return max(self._least_queue, min(self._usual_queue, drivers - generators * GENERATOR_BYTES))

    @property
    def _usual_queue(self) -> int:
        return min(QUEUE_BYTES, self.there // 2)

    @property
    def _least_queue(self) -> int:
        """So far the queue gives way to generators where nobody asked for it."""
        return self._usual_queue // 2

    def usual_generators(self, processors: int) -> int:
        """How many there are where none were asked for: one a processor, as far as they fit.

        The queue that was asked for plays no part: `generate` has none, and its input must be the run's.
        """
        fitting = max(0, self.there - self.heap - self._least_queue) // GENERATOR_BYTES
        return max(1, min(processors, GENERATORS_MAX, fitting))

    def reserved_bytes(self, generators: int) -> int:
        """What heap and queue have to leave: the generators' memory, half of all at most."""
        return min(generators * GENERATOR_BYTES, self.there // 2)

    def problems(self, generators: int) -> Iterator[Problem]:
        """More generators than fit beside heap and queue, with the largest number that does."""
        queue = self._least_queue if self.queue is None else self.queue
        left = self.there - self.heap - queue
        if left < 0:  # heap and queue do not fit without any generator, which is the engine's to say
            left = self.there // 2
        fitting = left // GENERATOR_BYTES
        if generators <= fitting:
            return
        heap = f", the engine's heap of {_gib(self.heap)}" if self.heap else ""
        rule = (
            f"must fit into this machine's memory ({_gib(self.there)}) at {GENERATOR_BYTES // 10**6} MB each, "
            f"beside the queue's {_gib(queue)} (--memory){heap}"
        )
        yield Problem("load.generators", rule, generators, self._fewer(fitting))

    def _fewer(self, fitting: int) -> str:
        if fitting:
            return f"--generators {fitting}, or fewer"
        beside_one = (self.there - self.heap - GENERATOR_BYTES) // 2**20
        return f"--generators 1 --memory {beside_one}MiB" if beside_one > 0 else "--generators 1, and a smaller heap"


def _gib(size: int) -> str:
    return f"{size / 2**30:.3g} GiB"
