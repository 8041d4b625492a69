"""bench/studies/whole_run.py: what its rows say of results, and the reason where there is none. No run is started."""

from typing import Any

import pytest

from bench.__main__ import said
from bench.studies import whole_run
from tests.helpers_recording import append_and_return


def made(memory: float, verified_s: float) -> dict[str, Any]:
    """As much of a result of 100 s as is looked at."""
    phases = [{"start_us": 5_000_000, "end_us": 50_000_000}, {"start_us": 50_000_000, "end_us": 105_000_000}]
    return {
        "driver": {"memory_bytes_max": memory * 1e9}, "phases": phases, "verification": {"seconds": verified_s}
    }  # fmt: skip


def test_both_runs_have_both_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory, of which less is better, and the run's length over that of its verification; medians of the repeats."""
    given = {whole_run.FEW_RESULTS: made(0.6, 8.0), whole_run.EVERY_EVENT: made(2.5, 125.0)}
    runs: list[Any] = []
    monkeypatch.setattr(whole_run, "result", lambda one: append_and_return(runs, one, given[one]))
    rows = whole_run.main()
    assert runs == [whole_run.FEW_RESULTS, whole_run.EVERY_EVENT] * whole_run.REPEATS
    assert [(row["value"], said(row)) for row in rows] == [
        (0.6, "goal"), (12.5, "goal"), (2.5, "missed"), (0.8, "missed"),
    ]  # fmt: skip
    assert ["identity" in row["what"] for row in rows] == [False, False, True, True]
