"""A result in words."""

from typing import Any

import pytest

from streamgauge.results.latency import Latencies
from streamgauge.results.text import narrative
from streamgauge.results.verdict import Verdict
from tests.unit.report.conftest import made_up_result


def test_the_span_is_as_long_as_it_was() -> None:
    """Of a run that ended early: the time that was offered, not the time that was planned."""
    warm_up, measured, _ = made_up_result().phases
    short = measured.model_copy(update={"end_us": measured.start_us + 7_000_000})
    message = narrative.summary_sentences(made_up_result(phases=(warm_up, short)))[0]
    assert message.startswith("200 k events/s were offered for 7 s")


@pytest.mark.parametrize(("changes", "reason"), [
    ({"verification": None, "latency": Latencies()}, "its results were not verified"),
    ({"latency": Latencies()}, "no result of the measured span arrived"),
    ({"verification": None, "latency": Latencies(notes=("not counted: the disk is full",))}, "for the reason below"),
])  # fmt: skip
def test_why_there_is_no_latency(changes: dict[str, Any], reason: str) -> None:
    """An interrupted run compared nothing; what was compared and empty had no result; a reason that the page shows
    below is the only one.
    """
    assert narrative.no_latency(made_up_result(**changes)).endswith(reason)


def test_latencies_of_unverified_results_are_called_so() -> None:
    """Of a stopped run that has any; not where its answers were compared, nor where there is nothing to verify."""
    stopped, unverified = {"verdict": Verdict(value="interrupted")}, {"verification": None}
    result = made_up_result(**stopped, **unverified)
    message = narrative.unverified(result)
    assert message.startswith("Latencies are unverified: the run was stopped")
    assert narrative.summary_sentences(result)[-1] == message
    for changes in (stopped, unverified, {**stopped, **unverified, "latency": Latencies(notes=("a",))}):
        assert narrative.unverified(made_up_result(**changes)) == ""
