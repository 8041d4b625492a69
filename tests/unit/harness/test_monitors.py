"""The samples of processes and of the machine, and the machine's own speed."""

import math
import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import IO, Any, cast
from unittest.mock import Mock

import psutil
import pytest

from streamgauge.core.clock import US, Clock
from streamgauge.harness import monitors
from streamgauge.harness.monitors import BACKGROUND_SAMPLE_US, BackgroundSample, MachineSpeed, Monitors
from streamgauge.metrics.records import RUNNER, Role, Usage


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Times that a test sets; the clock is `now`."""
    values = {"user": 0.0, "system": 0.0, "waited": 0.0, "machine": 0.0, "reaped": 0.0, "now": 0.0, "gone": 0.0}

    def process(pid: int) -> Any:
        if pid == 404:
            raise psutil.NoSuchProcess(pid)
        reaped = values["reaped"] if pid == 1 else 0.0
        times = {"user": values["user"], "system": values["system"], "children_user": reaped, "children_system": 0.0}
        answers = {
            "cpu_times": SimpleNamespace(**times), "ppid": 1, "name": "java",
            "create_time": time.time() - (2.9 if pid < 10 else 3600.0), "memory_info": SimpleNamespace(rss=4096),
        }  # fmt: skip
        return Mock(pid=pid, **{f"{name}.return_value": value for name, value in answers.items()})

    monkeypatch.setattr(psutil, "pid_exists", lambda pid: pid != values["gone"])
    monkeypatch.setattr(psutil, "Process", process)
    monkeypatch.setattr(
        psutil,
        "cpu_times",
        lambda: SimpleNamespace(user=values["machine"], system=0.0, idle=9.0, steal=values.get("stolen", 0.0)),
    )
    monkeypatch.setattr(monitors, "_waited", lambda pid: (values["waited"], int(values["now"])))
    return values


def started(values: dict[str, float], processes: list[tuple[str, Role, int]]) -> Monitors:
    """Monitors that have taken their first sample, of processes that a test may change."""
    monitors = Monitors(lambda: processes, lambda: round(values["now"] * US))
    assert monitors.sample() == []  # one reading is no use over time
    return monitors


def test_use_is_the_difference_of_two_readings(fake: dict[str, float]) -> None:
    """User and system time count, as a share of the time between the readings. An ended thread takes its waiting time
    along: the sum may fall, and is never negative.
    """
    watched = started(fake, [("spark", "sut", 1)])
    fake.update(now=2.0, user=2.0, system=1.0, waited=0.5)
    assert watched.sample() == [Usage(2 * US, "spark", "sut", 150.0, 4096, 0.25, "jvm")]
    fake.update(now=4.0, user=2.0, system=1.0, waited=0.1)
    assert watched.sample() == [Usage(4 * US, "spark", "sut", 0.0, 4096, 0.0, "jvm")]


def test_a_sample_has_one_time_however_long_its_readings_take(fake: dict[str, float]) -> None:
    """The second process is read after a second's border: both are of the sample's begin. Each one's CPU is divided by
    the time between its own two readings, here 0.8 s and 1.25 s for the same second of work.
    """
    processes: list[tuple[str, Role, int]] = [("spark", "sut", 1), ("worker", "sut", 2)]
    clock = iter([0.75, 1.0, 1.0, 1.0, 1.75, 1.8, 2.25, 2.5])
    watched = Monitors(lambda: processes, lambda: round(next(clock) * US))
    watched.sample()
    fake.update(user=1.0, machine=2.0)
    sampled = [(usage.name, usage.time_us, usage.cpu_percent) for usage in watched.sample()]
    assert sampled == [("spark", 1_750_000, pytest.approx(125.0)), ("worker", 1_750_000, pytest.approx(80.0))]


@pytest.mark.parametrize(
    ("program", "kind"),
    [("java", "jvm"), ("python", "python workers"), ("python3.11", "python workers"), ("bash", "bash")],
)
def test_kinds_go_by_the_program(program: str, kind: str) -> None:
    """A process of another kind keeps its own name."""
    assert monitors.kind_of(program) == kind


@pytest.mark.parametrize(("machine", "stolen"), [(2.5, 0.0), (2.0, 0.5)])
def test_what_others_use_is_what_is_left_of_the_machine(fake: dict[str, float], machine: float, stolen: float) -> None:
    """Of 2.5 s of processor time in 2 s each of two watched processes used 1 s. What a virtual machine is denied looks
    like an engine that got slower.
    """
    watched = started(fake, [("spark", "sut", 1), (RUNNER, "driver", 2)])
    assert watched.background_percent is None
    fake.update(now=2.0, user=1.0, machine=machine, stolen=stolen)
    watched.sample()
    assert watched.background_percent == pytest.approx(25.0)
    watched.sample()
    assert watched.background_percent is None


def test_a_process_that_was_started_since_is_no_other(fake: dict[str, float]) -> None:
    """All that it has used is ours; and sums that are read one after the other never give less than nothing."""
    processes: list[tuple[str, Role, int]] = [("spark", "sut", 1), (RUNNER, "driver", 3)]
    watched = started(fake, processes)
    processes.append(("worker", "sut", 2))
    fake.update(now=2.0, user=1.0, machine=3.5)
    watched.sample()
    assert watched.background_percent == pytest.approx(25.0)
    fake.update(now=4.0, user=2.0, machine=6.0)
    watched.sample()
    assert watched.background_percent == 0.0


def test_a_process_that_was_started_since_has_used_what_it_has(fake: dict[str, float]) -> None:
    """It may be gone by the next sample. One that is older was not looked at before: all that it used is not of now."""
    processes: list[tuple[str, Role, int]] = [("spark", "sut", 1)]
    watched = started(fake, processes)
    processes += [("worker", "sut", 2), ("old", "sut", 10)]
    fake.update(now=2.0, user=1.0)
    assert [(usage.name, usage.cpu_percent) for usage in watched.sample()] == [("spark", 50.0), ("worker", 50.0)]


def test_what_a_child_used_until_its_end_is_counted_once(fake: dict[str, float]) -> None:
    """Of the 1.5 s that its parent has reaped, 1 s was counted while it lived."""
    processes: list[tuple[str, Role, int]] = [("spark", "sut", 1), ("worker", "sut", 2)]
    watched = started(fake, processes)
    fake.update(now=2.0, user=1.0, machine=2.0)
    watched.sample()
    del processes[1]
    fake.update(now=4.0, reaped=1.5, gone=2, machine=2.5)
    assert [(usage.name, usage.cpu_percent) for usage in watched.sample()] == [("spark", 25.0)]
    assert watched.background_percent == 0.0
    fake.update(now=6.0, machine=2.5)
    assert watched.sample()[0].cpu_percent == 0.0


def test_a_child_that_was_not_reaped_takes_nothing_from_its_parent(fake: dict[str, float]) -> None:
    """What the parent itself used stays."""
    processes: list[tuple[str, Role, int]] = [("spark", "sut", 1), ("worker", "sut", 2)]
    fake["user"] = 1.0
    watched = started(fake, processes)
    del processes[1]
    fake.update(now=2.0, user=2.0, gone=2)
    assert watched.sample()[0].cpu_percent == 50.0


def test_a_process_that_has_gone_is_left_out(fake: dict[str, float]) -> None:
    """Workers come and go; the others are sampled all the same."""
    watched = started(fake, [("gone", "sut", 404), ("generator 0", "driver", 1)])
    fake["now"] = 1.0
    assert [usage.name for usage in watched.sample()] == ["generator 0"]


def test_a_real_process_that_works_is_seen_working() -> None:
    """A process in a busy loop shows processor time and memory; it is read by its id alone."""
    code = "print(flush=True)\nwhile True: sum(range(1000))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as busy:
        try:
            cast(IO[bytes], busy.stdout).readline()
            clock = iter([0, 0, 0, US, US, US])
            watched = Monitors(lambda: [("busy", "sut", busy.pid)], lambda: next(clock))
            watched.sample()
            begin = psutil.Process(busy.pid).cpu_times().user
            while psutil.Process(busy.pid).cpu_times().user < begin + 0.05:
                pass
            (usage,) = watched.sample()
        finally:
            busy.kill()
    assert usage.cpu_percent >= 4
    assert (usage.memory_bytes > 2**20, usage.core_wait_us >= 0) == (True, True)


def test_waiting_is_read_of_every_thread() -> None:
    """Linux keeps it; of a process that is not there nothing is known."""
    assert monitors._waited(os.getpid())[1] > 0
    waited_us, turns = monitors._waited(2**22 + 1)
    assert (math.isnan(waited_us), turns) == (True, 0)


def test_waiting_that_the_system_does_not_tell_is_not_known(fake: dict[str, float]) -> None:
    """Neither is it where one of two readings lacks it; the rest of the use is."""
    fake["waited"] = math.nan
    watched = started(fake, [("spark", "sut", 1)])
    for now, waited in ((1.0, math.nan), (2.0, 5.0)):
        fake.update(now=now, user=now, waited=waited)
        (usage,) = watched.sample()
        assert (math.isnan(usage.core_wait_us), usage.cpu_percent) == (True, 100.0)


def test_bytes_over_the_loopback_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loopback's counter, and 0 on a machine that has none of that name."""
    counters = {"lo": SimpleNamespace(bytes_recv=77), "eth0": SimpleNamespace(bytes_recv=5)}
    monkeypatch.setattr(psutil, "net_io_counters", lambda pernic: counters)
    assert monitors.loopback_bytes() == 77
    del counters["lo"]
    assert monitors.loopback_bytes() == 0


def test_it_is_the_threads_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """In microseconds; what the thread waited for a core is not in it."""
    readings = iter([5_000_000, 6_250_000])
    monkeypatch.setattr(time, "thread_time_ns", lambda: next(readings))
    assert MachineSpeed().cpu_us() == 1250.0


def test_it_passes_over_more_memory_than_caches_hold_and_keeps_little() -> None:
    """More than a shared cache of 32 MiB, or a machine whose memory has become slow would not be seen; 64 MB at most,
    since it is the driver's.
    """
    assert 32 * 2**20 < sum(array.nbytes for array in vars(MachineSpeed()).values()) <= 64_000_000


@pytest.mark.parametrize(("used", "status"), [(0.05, "good"), (0.09, "good"), (0.11, "warning"), (0.9, "warning")])
def test_background_load_is_what_other_processes_use(
    fake: dict[str, float], monkeypatch: pytest.MonkeyPatch, used: float, status: str
) -> None:
    """As a share of all cores, over the shortest sample; what this process uses meanwhile does not count."""
    monkeypatch.setattr(psutil, "cpu_count", lambda: 2)
    monkeypatch.setattr(Clock, "now_us", lambda self: round(fake["now"] * US))
    monkeypatch.setattr(Clock, "sleep_until", lambda self, when_us: fake.update(now=when_us / US))
    sample = BackgroundSample(Clock(0))
    seconds = BACKGROUND_SAMPLE_US / US
    fake.update(user=0.7, machine=0.7 + used * 2 * seconds)
    check = sample.check()
    assert (check.status, check.found) == (status, f"{used:.0%} of the CPU")
