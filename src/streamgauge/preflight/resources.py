"""Divides the machine: its memory between engine, queue and generators, its processors between driver and SUT."""

from dataclasses import dataclass

from streamgauge.config import cpu_settings
from streamgauge.config.experiment import SETTINGS, Experiment
from streamgauge.core.errors import Problem, Rule, broken
from streamgauge.core.units import format_cpus, parse_cpus
from streamgauge.system.cpu_pinning import cpus, split_cpus

QUEUE_BYTES = 4 * 2**30
"""Default bound of the queue, on a machine with at least twice as much memory."""
GENERATORS_MAX = 8
"""Largest default number of generators."""
GENERATOR_BYTES = 160_000_000
"""Memory of a generator process without its queue. Measured: 146 to 155 MB resident, shared libraries included."""


@dataclass(frozen=True)
class Budget:
    """Memory in bytes: the machine's `total`, the engine's `heap` and the requested `queue`.

    `heap` is 0 for an engine without one. `queue` is None without a valid request.
    """

    total: int
    heap: int
    queue: int | None

    def queue_bytes(self, generators: int, default: int = QUEUE_BYTES) -> int:
        """The queue's bound: the requested size, else `default`, as far as the driver's memory has it."""
        if self.queue is not None:
            return self.queue
        driver = self.total - min(self.heap, self.total // 2)
        return max(self._least_queue, min(default, self.total // 2, driver - generators * GENERATOR_BYTES))

    @property
    def _least_queue(self) -> int:
        """The smallest default: more generators shrink the queue no further."""
        return min(QUEUE_BYTES, self.total // 2) // 2

    def default_generators(self, processors: int) -> int:
        """The default number of generators: one per processor, as far as memory allows.

        A requested queue size does not count: `generate` has no queue, and its input must equal the run's.
        """
        fitting = max(0, self.total - self.heap - self._least_queue) // GENERATOR_BYTES
        return max(1, min(processors, GENERATORS_MAX, fitting))

    def reserved_bytes(self, generators: int) -> int:
        """The generators' memory, which heap and queue must leave: at most half of the total."""
        return min(generators * GENERATOR_BYTES, self.total // 2)

    def problems(self, generators: int) -> list[Problem]:
        """More generators than fit beside heap and queue, with the largest number that fits."""
        queue = self._least_queue if self.queue is None else self.queue
        left = self.total - self.heap - queue
        # Heap and queue that do not fit even without generators are reported by the engine's check.
        fitting = (left if left >= 0 else self.total // 2) // GENERATOR_BYTES
        heap = f" and the engine's heap of {_gib(self.heap)}" if self.heap else ""
        rule = (
            f"must fit into this machine's memory ({_gib(self.total)}) at {GENERATOR_BYTES // 10**6} MB each, "
            f"beside the queue of {_gib(queue)} (--queue-memory){heap}"
        )
        return broken(Rule(generators <= fitting, "load.generators", rule, generators, self._fewer(fitting)))

    def _fewer(self, fitting: int) -> str:
        if fitting:
            return f"--generators {fitting}, or fewer"
        queue_mib = (self.total - self.heap - GENERATOR_BYTES) // 2**20
        smaller = f" --queue-memory {queue_mib}MiB" if queue_mib > 0 else ", and a smaller heap"
        return f"--generators 1{smaller}"


def _gib(size: int) -> str:
    return f"{size / 2**30:.3g} GiB"


def assigned_cpus(experiment: Experiment) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """(driver's, SUT's) processors; None for all that this process may use."""
    given = experiment.cpus.given
    if given and not processor_problems(experiment):
        return parse_cpus(given["driver"]), parse_cpus(given["sut"])
    if experiment.isolation == "pinned" and not given:
        driver, sut = split_cpus()
        return tuple(driver), tuple(sut) or None
    return None, None


def processor_problems(experiment: Experiment) -> list[Problem]:
    """Processors that this process may not use, and a separation that is not possible."""
    available, given, is_shared = cpus(), experiment.cpus.given, experiment.isolation != "pinned"
    if not given:
        rule = "pinned needs at least two processors"
        return broken(Rule(is_shared or len(available) > 1, "isolation", rule, len(available), "--isolation shared"))
    sides = {side: set(parse_cpus(text)) for side, text in given.items()}
    both = sides.get("driver", set()) & sides.get("sut", set())
    usable, words = set(available), f"must be processors that this process may use ({format_cpus(available)}"
    return broken(
        Rule(
            len(sides) == 2, "cpus", "must name the processors of driver and sut, both", ", ".join(sides),
            cpu_settings.WAY_OUT,
        ),
        *(
            Rule(
                numbers <= usable, f"cpus.{side}", f"{words}; {format_cpus(numbers - usable)} is not among them)",
                given[side], SETTINGS[f"cpus.{side}"].way_out,
            )
            for side, numbers in sides.items()
        ),
        Rule(
            is_shared or not both, "cpus", f"must not share processors ({format_cpus(both)}) with --isolation pinned",
            "driver and sut", f"{cpu_settings.WAY_OUT}, or --isolation shared",
        ),
    )  # fmt: skip
