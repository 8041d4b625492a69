"""Trials of user jobs."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgauge.config.experiment import build
from streamgauge.preflight.settings_checks import check
from tests.unit.verification.helpers_user_jobs import HEAD, Case


@pytest.fixture
def job_case(tmp_path: Path, make: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Case]:
    monkeypatch.setattr(sys, "path", list(sys.path))

    def made(arguments: str, **more: Any) -> Case:
        path = tmp_path / "user_job.py"
        path.write_text(HEAD.replace("{}", arguments))
        load = {"rate": "1k", "duration": "10s", "warmup": "5s", "generators": 2}
        resolved = check(build({"workload": str(path), "load": load, "out": str(tmp_path)}))
        return Case(resolved, make.story().record(**more), tmp_path)

    return made
