"""bench/spark/latency.py: what its rows say of results. No run is started."""

from typing import Any

import pytest

from bench.spark import latency
from bench.spark.latency import REPEATS, WAYS
from bench.support import run_command
from streamgauge.config.experiment import build
from streamgauge.preflight.settings_checks import check


def made(p50_us: float, p99_us: float | None, append_us: float | None) -> dict[str, Any]:
    """As much of a result as is looked at."""
    append = {"p50": append_us} if append_us else None
    return {"latency": {"event_time_us": {"p50": p50_us, "p99": p99_us}}, "driver": {"append_latency_us": append}}


def test_a_run_that_was_not_sustained_takes_no_other_with_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is reported, and the row says of how many runs it is; a way without such a run has no row."""
    runs: list[Any] = []

    def result(one: Any) -> dict[str, Any]:
        runs.append(one)
        if one == WAYS[0].case or (runs.count(one) == 1 and one == WAYS[1].case):
            raise RuntimeError("not sustained, by connected")
        return made(9000.0, None, None)

    monkeypatch.setattr(run_command, "result", result)
    rows = latency.main()
    assert (len(runs), len(rows)) == (len(WAYS) * REPEATS, len(WAYS) - 1)
    assert rows[0]["note"] == f"{REPEATS - 1} of {REPEATS} runs were sustained"
    assert capsys.readouterr().err.count("not sustained") == REPEATS + 1


def test_every_way_can_be_started() -> None:
    """As far as that is known before the start."""
    for way in WAYS:
        words = dict(zip(way.case.more[::2], way.case.more[1::2], strict=True))
        more = {name.removeprefix("--"): value for name, value in words.items()}
        check(build({"workload": way.case.workload, "load": {"rate": way.case.rate}, **more}))
