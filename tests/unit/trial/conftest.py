"""A test bed for the runner of phases."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.trial import phases
from tests.unit.trial.helpers_phases import FakeClock, FakeTestBed


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A new run folder."""
    return RunFolder.create(tmp_path / "runs", "a", "b", datetime.now(UTC))


@pytest.fixture
def testbed(make: Any, monkeypatch: pytest.MonkeyPatch) -> FakeTestBed:
    """A test bed with a steady trial. Time passes by sleeping alone, and the reference work costs nothing."""
    clock = FakeClock()
    monkeypatch.setattr(phases, "MachineSpeed", lambda: SimpleNamespace(cpu_us=lambda: 2500.0))
    monkeypatch.setattr(phases, "time", SimpleNamespace(sleep=clock.sleep, monotonic=clock.monotonic))
    return FakeTestBed(make.story(plan=make.plan(seconds=120)), make, clock)
