"""verdict/criteria/sufficient_evidence.py: windows, spans too short for them, and jobs without results."""

from __future__ import annotations

from typing import Any

import pytest

from streamgauge.results.causes import Cause
from streamgauge.results.latency import Latencies
from streamgauge.results.run import SinkResult
from streamgauge.verdict.evidence import Samples
from streamgauge.verdict.verdict import judge
from tests.unit.verdict.helpers_evidence import LATENCY, LEVEL, RIGHT, check_of, evidence, ramp

pytestmark = pytest.mark.usefixtures("quick_draws")


def test_what_is_not_windowed_needs_no_windows() -> None:
    """Row-wise results are judged by their batches alone."""
    assert judge(evidence(windows_closed=None)).value == "sustained"


SHORT = {
    "windows_closed": 4,
    "window_gap_s": 10.0,
    "span_s": 40.0,
    "output_lag": Samples.from_values([3, 13, 23, 33], [1, 1, 1, 1]),
}


@pytest.mark.parametrize("background", [0.0, 0.4])
def test_a_span_too_short_for_its_windows_is_not_blamed_on_the_machine(background: float) -> None:
    """No quiet machine makes it longer: the advice is its length, by the windows that were seen in the results."""
    verdict = judge(evidence(**SHORT, background_share=background))
    assert verdict.value == "undecided"
    assert check_of(verdict, "evidence").code == Cause.SPAN_TOO_SHORT
    assert "windows that end 10 s apart, so the span must be at least 50 s long" in verdict.sentence
    assert verdict.advice == "a longer span: --duration 50s or more"


@pytest.mark.parametrize("changes", [{"span_s": 60.0}, {"window_gap_s": 0.0}, {"backlog": ramp(0.05)}, {"batches": 3}])
def test_other_processes_may_be_why_too_few_windows_closed(changes: dict[str, Any]) -> None:
    """Where the span is long enough for them, where their width is not known, and where something else failed."""
    assert judge(evidence(**{**SHORT, **changes}, background_share=0.4)).value == "invalid"


@pytest.mark.parametrize(
    ("rows", "said"),
    [(0, "no result came and none was due, so there is no latency"), (3, "no answer could be checked")],
)
def test_a_job_that_gives_and_owes_nothing_is_not_asked_for_a_longer_trial(rows: int, said: str) -> None:
    """A longer one would give nothing too; its level says the same."""
    nothing = RIGHT.model_copy(update={"expected": 0, "matched": 0})
    none = Latencies(event_time_us=LATENCY.model_copy(update={"count": 0, "p99": None, "p50": None}))
    silent = SinkResult(name="results", rows=rows, latency=none, verification=nothing)
    verdict = judge(evidence(verification=nothing, sinks=(silent,), latencies=none, latency=(), levels=(LEVEL,)))
    assert (verdict.value, check_of(verdict, "answers").code) == ("undecided", Cause.NO_RESULT_DUE)
    assert said in verdict.sentence
    assert verdict.advice.startswith("check the job's conditions")
    assert "no result came in the span, so there is no latency" in check_of(verdict, LEVEL.name).sentence


def test_updates_that_come_only_once_the_load_has_ended_show_no_latency() -> None:
    """The last values may all be right."""
    verdict = judge(evidence(silent_sinks=("counts",), latency=()))
    assert (verdict.value, check_of(verdict, "evidence").code) == ("undecided", Cause.NO_LATENCY)
    assert "no value of counts came in the span" in verdict.sentence
