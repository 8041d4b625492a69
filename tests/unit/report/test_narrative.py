"""A result in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from streamgauge.report import narrative
from streamgauge.results.codes import Cause
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.run import Rates, Result
from streamgauge.results.verdict import Verdict

Make = Callable[..., Result]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("sustained", "200 k events/s sustained"),
        ("not_sustained", "200 k events/s not sustained"),
        ("undecided", "200 k events/s: not enough evidence"),
        ("invalid", "200 k events/s: invalid"),
        ("interrupted", "200 k events/s: interrupted"),
    ],
)
def test_answer_never_claims_more_than_the_verdict(
    make_result: Make, make_search: Callable[[], Result], value: str, message: str
) -> None:
    """Only a sustained rate is called sustained; a search answers with the rate that it found."""
    assert narrative.answer(make_search()) == "1.54 M events/s sustained"
    assert narrative.answer(make_result(verdict=Verdict(value=value))) == message


def test_three_sentences(make_result: Make) -> None:
    """Throughput, lateness, correctness, in that order."""
    assert list(narrative.summary_sentences(make_result())) == [
        "200 k events/s were offered for 1 min, and spark took in 200 k events/s.",
        "Half of the results came within 2.6 s of their event time, 99 % within 4.3 s, the last within 5.2 s.",
        "15,000 results expected, all matched.",
    ]


def test_of_updates_what_the_newest_event_leaves_out_is_reported(make_result: Make) -> None:
    """Half of the updates were fresh soon; half of the events were in one much later."""
    newest = Latency(p50=8e5, max=1e6, count=40, effective_count=10)
    counted = Latency(p50=2.8e6, p99=4.8e6, count=4000, effective_count=100)
    result = make_result(latency=Latencies(event_time_us=newest, until_counted_us=counted))
    assert narrative.summary_sentences(result)[1] == (
        "Half of the results came within 800 ms of their event time, the last within 1 s. That is from the newest "
        "event in each update: half of all events were counted within 2.8 s, 99 % within 4.8 s."
    )
    bound = counted.model_copy(update={"lower_bounds": 3})
    late = make_result(latency=Latencies(event_time_us=newest, until_counted_us=bound))
    assert narrative.summary_sentences(late)[1].endswith(
        "half of all events took at least 2.8 s until they were counted."
    )
    unknown = make_result(latency=Latencies(event_time_us=newest, until_counted_us=Latency(note="not known")))
    assert narrative.summary_sentences(unknown)[1].endswith("the last within 1 s.")


BOUNDED = Latency(min=1e3, mean=1e6, p50=1e6, p99=2e6, max=3e6, count=500, lower_bounds=4)


def test_missing_results_are_reported(make_result: Make) -> None:
    """Where results had not come, nothing is reported to have come within a time: every figure is a lower bound."""
    result = make_result(latency=Latencies(event_time_us=BOUNDED))
    assert narrative.summary_sentences(result)[1] == (
        "4 of 500 results had not arrived when the run ended: with them, half of all took at least 1 s from their "
        "event time, and 1 % at least 2 s."
    )
    assert "4 of 500" in narrative.missing_results(result)
    assert narrative.missing_results(make_result()) == ""
    none = make_result(latency=Latencies(event_time_us=Latency()))
    assert narrative.summary_sentences(none)[1] == "No result of the measured span had arrived when the run ended."


def test_the_span_is_as_long_as_it_was(make_result: Make) -> None:
    """Of a run that ended early: the time that was offered, not the time that was planned."""
    warm_up, measured, _ = make_result().phases
    short = measured.model_copy(update={"end_us": measured.start_us + 7_000_000})
    message = narrative.summary_sentences(make_result(phases=(warm_up, short)))[0]
    assert message.startswith("200 k events/s were offered for 7 s")


def test_a_run_that_ended_in_its_warm_up_claims_no_rate(make_result: Make) -> None:
    """Its rate of 0 is that of a span which never began: neither 0 events nor no result is a finding then."""
    rate = Rates(offered_per_s=0.0, achieved_per_s=0.0, ingested_per_s=0.0, planned_per_s=200_000.0)
    ended = make_result(phases=make_result().phases[:1], rate=rate, latency=Latencies(), verification=None)
    assert narrative.summary_sentences(ended)[0] == (
        "Nothing was measured: the run ended 20 s after its start, in the warm-up."
    )
    assert narrative.no_latency(ended).endswith("the run ended before the measured span began")


@pytest.mark.parametrize(("changes", "reason"), [
    ({"verification": None, "latency": Latencies()}, "its results were not verified"),
    ({"latency": Latencies()}, "no result of the measured span arrived"),
    ({"verification": None, "latency": Latencies(notes=("not counted: the disk is full",))}, "for the reason below"),
])  # fmt: skip
def test_why_there_is_no_latency(make_result: Make, changes: dict[str, Any], reason: str) -> None:
    """An interrupted run compared nothing; what was compared and empty had no result; a reason that the page shows
    below is the only one.
    """
    assert narrative.no_latency(make_result(**changes)).endswith(reason)


def test_latencies_of_unverified_results_are_called_so(make_result: Make) -> None:
    """Of a stopped run that has any; not where its answers were compared, nor where there is nothing to verify."""
    stopped, unverified = {"verdict": Verdict(value="interrupted")}, {"verification": None}
    result = make_result(**stopped, **unverified)
    message = narrative.unverified(result)
    assert message.startswith("Latencies are unverified: the run was stopped")
    assert narrative.summary_sentences(result)[-1] == message
    for changes in (stopped, unverified, {**stopped, **unverified, "latency": Latencies(notes=("a",))}):
        assert narrative.unverified(make_result(**changes)) == ""


@pytest.mark.parametrize(("changes", "message"), [
    ({"rate": None}, narrative.NOTHING), ({"phases": []}, narrative.NOTHING), ({}, narrative.UNUSABLE),
    ({"verdict": Verdict(value="sustained")}, ""),
])  # fmt: skip
def test_an_engine_that_never_started_is_not_the_drivers_fault(
    make_result: Make, changes: dict[str, Any], message: str
) -> None:
    """Invalid without a figure: there is none that must not be used."""
    assert narrative.unusable(make_result(**{"verdict": Verdict(value="invalid"), **changes})) == message


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        (Cause.BACKGROUND_LOAD, narrative.DISTURBED),
        (Cause.DRIVER_SLOWED_BY_BACKGROUND_LOAD, narrative.DRIVER_DISTURBED),
        (Cause.DRIVER_FAILED, narrative.UNUSABLE),
        (Cause.NEGATIVE_LATENCY, narrative.CLOCK_WRONG),
        (Cause.QUEUE_CUT_BY_MEMORY, narrative.QUEUE_TOO_SMALL),
        (Cause.DRIVER_MEMORY_FULL, narrative.QUEUE_TOO_SMALL),
        (Cause.DISK_FULL, narrative.DISK_FULL),
    ],
)
def test_the_head_of_an_invalid_run_goes_by_its_cause(make_result: Make, cause: Cause, message: str) -> None:
    """A system, or a driver, that others kept from its work did not fail by itself."""
    invalid = Verdict(value="invalid", cause=cause, sentence="any")
    assert narrative.unusable(make_result(verdict=invalid)) == message


def test_nothing_measured_says_so(make_result: Make) -> None:
    """A run without figures invents none."""
    empty = make_result(rate=None, latency=Latencies(), verification=None)
    assert narrative.answer(empty) == "nothing was measured"
    assert narrative.summary_sentences(empty) == ("Answers: not judged.",)
