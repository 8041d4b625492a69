"""What runs need of a machine: each fault is planted where the machine is read."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import psutil
import pytest

from streamgauge.core.machine_check import MachineCheck
from streamgauge.system import machine_checks, process_limits

GIB = 2**30


def settings_of(check: MachineCheck) -> tuple[str, list[str]]:
    return check.status, [one.setting for one in check.problems]


@pytest.fixture(autouse=True)
def no_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root of control groups without limits, which a test may write into."""
    (tmp_path / "own").write_text("0::/\n")
    (tmp_path / "groups").mkdir()
    monkeypatch.setattr(process_limits, "OWN", tmp_path / "own")
    monkeypatch.setattr(process_limits, "ROOT", tmp_path / "groups")
    return tmp_path / "groups"


def processors(monkeypatch: pytest.MonkeyPatch, numbers: set[int]) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: numbers)


@pytest.mark.parametrize(("total", "free", "limit", "status"), [
    (32, 9, None, "good"), (32, 7, None, "warning"), (8, 5, None, "good"), (8, 3, None, "warning"),
    (64, 60, 4, "good"), (64, 1, 4, "warning"),
])  # fmt: skip
def test_memory_must_be_free_for_heap_and_queue(
    monkeypatch: pytest.MonkeyPatch, no_group: Path, total: int, free: int, limit: int | None, status: str
) -> None:
    """8 GiB, or half of a smaller machine or control group."""
    machine = SimpleNamespace(total=total * GIB, available=free * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)
    (no_group / "memory.max").write_text("max" if limit is None else str(limit * GIB))
    check = machine_checks.memory_check()
    assert check.status == status
    assert ("of the control group" in check.found) == (limit is not None)


@pytest.mark.parametrize(("numbers", "quota", "found"), [
    ({0, 1}, None, ("good", [])), ({0}, None, ("warning", ["processors"])),
    ({0, 1, 2, 3}, 400_000, ("good", [])), ({0, 1, 2, 3}, 250_000, ("warning", ["cpu.max"])),
    ({0}, 50_000, ("warning", ["processors", "cpu.max"])),
])  # fmt: skip
def test_both_sides_need_a_processor_and_all_its_time(
    monkeypatch: pytest.MonkeyPatch, no_group: Path, numbers: set[int], quota: int | None, found: tuple[str, list[str]]
) -> None:
    """A quota below the number of processors lets every process stand still."""
    processors(monkeypatch, numbers)
    monkeypatch.setattr(machine_checks, "TOPOLOGY", no_group)
    if quota is not None:
        (no_group / "cpu.max").write_text(f"{quota} 100000")
    check = machine_checks.processors_check()
    assert settings_of(check) == found
    if quota == 250_000:
        assert check.problems[0].way_out.startswith("taskset -c 0-1 ")


@pytest.mark.parametrize(("numbers", "threads", "found"), [
    ({0, 1}, {0: "0", 1: "1"}, ("good", [])),
    ({0, 1, 2, 3}, {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}, ("warning", ["isolation"])),
    ({0, 1}, {0: "0-1", 1: "0-1"}, ("warning", ["isolation"])),
    ({0, 1}, {0: "0,2", 1: "1,3"}, ("warning", ["cores"])),
    ({*range(8)}, {cpu: f"{cpu - cpu % 2}-{cpu - cpu % 2 + 1}" for cpu in range(8)}, ("good", [])),
    ({0, 1}, {}, ("good", [])),
])  # fmt: skip
def test_threads_of_a_core_belong_to_one_side(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, numbers: set[int], threads: Mapping[int, str],
    found: tuple[str, list[str]],
) -> None:  # fmt: skip
    """By the siblings that the kernel names: neither driver and engine share a core, nor programs of others with them.
    A system that names none has none.
    """
    processors(monkeypatch, numbers)
    monkeypatch.setattr(machine_checks, "TOPOLOGY", tmp_path)
    for cpu, text in threads.items():
        (tmp_path / f"cpu{cpu}" / "topology").mkdir(parents=True)
        (tmp_path / f"cpu{cpu}" / "topology" / "thread_siblings_list").write_text(f"{text}\n")
    check = machine_checks.processors_check()
    assert settings_of(check) == found
    if len(numbers) == 4:
        assert check.problems[0].way_out.startswith("--driver-cpus 0,2 --sut-cpus 1,3 ")


@pytest.mark.parametrize(("source", "status"), [
    ("tsc", "good"), ("kvm-clock", "good"), ("hpet", "warning"), ("acpi_pm", "warning"), (None, "good"),
])  # fmt: skip
def test_the_clock_is_read_quickly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str | None, status: str
) -> None:
    """A system that does not name its clock is not blamed."""
    monkeypatch.setattr(machine_checks, "CLOCK_SOURCE", tmp_path / "current_clocksource")
    if source:
        (tmp_path / "current_clocksource").write_text(f"{source}\n")
    assert machine_checks.clock_check().status == status


@pytest.mark.parametrize("java_for", ["", "spark"])
def test_java_is_looked_for_if_something_needs_it(monkeypatch: pytest.MonkeyPatch, java_for: str) -> None:
    """A process for it takes a while."""
    monkeypatch.setattr(machine_checks, "java_check", check := Mock(return_value=MachineCheck("java", "17")))
    names = [one.name for one in machine_checks.starting_checks(java_for)]
    assert names == [*(["java"] if java_for else []), "open_files", "processes", "temporary_folder"]
    assert [call.args for call in check.call_args_list] == [(java_for,)] * bool(java_for)
