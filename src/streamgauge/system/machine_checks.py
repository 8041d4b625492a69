"""What every run needs of this machine: memory, processors and their cores, a clock, limits, disks, Java."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from streamgauge.core.errors import InputError, Rule
from streamgauge.core.formatting import format_digits, format_size
from streamgauge.core.machine_check import MachineCheck
from streamgauge.core.units import format_cpus, parse_cpus
from streamgauge.system.cpu_pinning import cpus, split_cpus
from streamgauge.system.disk import shared_memory_check, temporary_folder_check
from streamgauge.system.java import java_check
from streamgauge.system.machine import at_most_half, memory_bytes
from streamgauge.system.process_limits import cpu_limit, memory_limit, process_limits_check, room_checks

RUN_BYTES = 8 * 2**30
"""The defaults of an engine's heap and of the driver's queue, 4 GiB each."""
TOPOLOGY = Path("/sys/devices/system/cpu")
CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")
"""A read of these takes a call of the kernel, of a microsecond or more, or is only as exact as a tick."""


def starting_checks(java_for: str = "") -> list[MachineCheck]:
    """What no run starts without. `java_for`: who needs Java; empty if nothing does."""
    java = [java_check(java_for)] if java_for else []
    return [*java, *room_checks(bool(java_for)), temporary_folder_check()]


def quality_checks() -> list[MachineCheck]:
    """What a run starts without, although its figures may suffer."""
    return [
        memory_check(), processors_check(), process_limits_check(), shared_memory_check(), clock_check(),
    ]  # fmt: skip


def memory_check() -> MachineCheck:
    """Whether the heap and the queue of a default run fit into the free memory. Their sizes go by all of it."""
    total, needed = memory_bytes(), at_most_half(RUN_BYTES)
    free = min(total, int(psutil.virtual_memory().available))
    rule = f"should be at least {format_size(needed)}, for the engine's heap and the driver's queue"
    way_out = f"stop other programs, or take a smaller heap and queue (--queue-memory {max(1, free // 2**22)}MiB)"
    of_group = " of the control group" if memory_limit() == total else ""
    found = f"{format_size(total)}{of_group}, {format_size(free)} free"
    return MachineCheck.warning("memory", found, Rule(free >= needed, "free memory", rule, format_size(free), way_out))


def processors_check() -> MachineCheck:
    """Whether driver and engine can have whole cores of their own, and may use all the time of theirs."""
    usable, limit = cpus(), cpu_limit()
    number = len(usable)
    whole = format_cpus(usable[: max(1, int(limit or number))])
    cores = sorted({_threads_beside(cpu) for cpu in usable}, key=min)
    quota = "" if limit is None else f", {format_digits(limit)} at a time by the control group"
    found = f"{number} of {psutil.cpu_count() or number} on {len(cores)} cores{quota}"
    return MachineCheck.warning(
        "processors", found,
        Rule(number > 1, "processors", "should be at least two: one for the driver and one for the engine", number,
             "a machine or container with more of them"),
        Rule(limit is None or limit >= number, "cpu.max", f"should allow the {number} processors that both sides plan "
             "with: at the limit every process stands still", limit,
             f"taskset -c {whole} streamgauge ..., or raise cpu.max; of a container, --cpus"),
        *_core_rules(set(usable), cores),
    )  # fmt: skip


def _core_rules(usable: set[int], cores: Sequence[frozenset[int]]) -> Iterator[Rule]:
    """No core is shared: by driver and engine with `pinned` isolation, or with programs of others."""
    driver, sut = split_cpus()
    split = [core for core in cores if core & set(driver) and core & set(sut)]
    foreign = [core for core in cores if not core <= usable]
    first = usable & set().union(*cores[: max(1, len(cores) // 4)])
    rest = usable - first
    apart = f"--driver-cpus {format_cpus(first)} --sut-cpus {format_cpus(rest)}" if rest else "--isolation shared"
    yield Rule(not split, "isolation", "should separate whole cores, and pinned would separate their threads",
               _in_words(split), f"{apart} instead of --isolation pinned")  # fmt: skip
    yield Rule(not foreign, "cores", "should be whole: what others run on their other threads slows them",
               _in_words(foreign), "take whole cores, by taskset; of a container, by --cpuset-cpus")  # fmt: skip


def _threads_beside(cpu: int) -> frozenset[int]:
    """The processors that are threads of one core with this one; only this one if the system does not say."""
    with suppress(OSError, InputError):
        text = (TOPOLOGY / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text()
        return frozenset(parse_cpus(text.strip()))
    return frozenset([cpu])


def _in_words(cores: Iterable[Collection[int]]) -> str:
    return "; ".join(f"{format_cpus(core)} are one core" for core in cores)


def clock_check() -> MachineCheck:
    """Whether the clock that stamps events and results is read quickly."""
    source = "unknown source"
    with suppress(OSError):
        source = CLOCK_SOURCE.read_text().strip()
    rule = "should be one that a process reads by itself, because each event and each result is stamped"
    way_out = f"echo tsc | sudo tee {CLOCK_SOURCE}; in a virtual machine, the clock that its host offers (kvm-clock)"
    return MachineCheck.warning("clock", source, Rule(source not in SLOW_CLOCKS, "clock source", rule, source, way_out))
