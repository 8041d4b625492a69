"""verdict/limit_checks.py: windows, spans too short for them, jobs without results; and limits on latencies."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.config.limits import parse_limit
from streamgauge.metrics.event_latency import ENGINE_BATCH, LatencyRule, sink_latencies
from streamgauge.results.codes import Cause, Detail
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.run import SinkResult
from streamgauge.results.verdict import Finding
from streamgauge.verdict.verdict import judge
from tests.unit.verdict.helpers_evidence import (
    LATENCY,
    LEVEL,
    RIGHT,
    check_of,
    evidence,
    ramp,
    samples,
    sink,
)


def message(check: Finding) -> Any:
    """The code of what it says first."""
    return check.remarks[0].code


SHORT = {
    "windows_closed": 4,
    "window_gap_s": 10.0,
    "span_s": 40.0,
    "output_lag": samples([3, 13, 23, 33], [1, 1, 1, 1]),
}


@pytest.mark.parametrize("background", [0.0, 0.4])
def test_a_span_too_short_for_its_windows_is_not_blamed_on_the_machine(background: float) -> None:
    """No quiet machine makes it longer: the advice is its length, by the windows that were seen in the results."""
    verdict = judge(evidence(**SHORT, background_share=background))
    assert verdict.value == "undecided"
    assert check_of(verdict, "evidence").code == Cause.SPAN_TOO_SHORT
    assert verdict.span_needed_s == 50


@pytest.mark.parametrize("changes", [{"span_s": 60.0}, {"window_gap_s": 0.0}, {"backlog": ramp(0.05)}, {"batches": 3}])
def test_other_processes_may_be_why_too_few_windows_closed(changes: dict[str, Any]) -> None:
    """Where the span is long enough for them, where their width is not known, and where something else failed."""
    assert judge(evidence(**{**SHORT, **changes}, background_share=0.4)).value == "invalid"


@pytest.mark.parametrize("rows", [0, 3])
def test_a_job_that_gives_and_owes_nothing_needs_no_longer_trial(rows: int) -> None:
    """A longer one would give nothing too; its level says the same."""
    nothing = RIGHT.model_copy(update={"expected": 0, "matched": 0})
    none = Latencies(event_time_us=LATENCY.model_copy(update={"count": 0, "p99": None, "p50": None}))
    silent = SinkResult(name="results", rows=rows, latency=none, verification=nothing)
    verdict = judge(evidence(verification=nothing, sinks=(silent,), latencies=none, latency=(), levels=(LEVEL,)))
    assert (verdict.value, check_of(verdict, "answers").code) == ("undecided", Cause.NO_RESULT_DUE)
    assert check_of(verdict, "answers").remarks[0].facts["came"] is bool(rows)
    assert message(check_of(verdict, LEVEL.name)) == Detail.NO_RESULT_IN_SPAN


def test_updates_that_come_only_once_the_load_has_ended_show_no_latency() -> None:
    """The last values may all be right."""
    verdict = judge(evidence(silent_sinks=("counts",), latency=()))
    assert (verdict.value, check_of(verdict, "evidence").code) == ("undecided", Cause.NO_LATENCY)


@pytest.mark.parametrize(
    ("text", "change", "state"),
    [
        ("p99 <= 3s", {}, "ok"),
        ("p99 <= 2.9s", {}, "failed"),
        ("p99 <= 3s", {"p99": None}, "undecided"),
        ("p99 <= 3s", {"lower_bounds": 1}, "undecided"),
        ("p99 <= 2s", {"lower_bounds": 1}, "failed"),
        ("processing_time_p99 <= 3s", {}, "undecided"),
        ("closing_delay_p99 <= 2s", {}, "undecided"),
        ("until_counted_p50 <= 3s", {}, "undecided"),
        ("p99 <= 0.9s", {"p99": None}, "failed"),
        ("p50 <= 0.9s", {"p50": None}, "undecided"),
    ],
)
def test_service_levels_are_judged_on_what_was_measured(text: str, change: dict[str, Any], state: str) -> None:
    """A figure that is not there, or is only a lower bound, cannot pass; one that is not there is no less than a lower
    percentile, and cannot hold where that one does not.
    """
    level = parse_limit(text)
    latencies = Latencies(event_time_us=LATENCY.model_copy(update=change))
    assert check_of(judge(evidence(levels=(level,), latencies=latencies)), level.name).state == state


def in_batches(slow: int, batches: int) -> Latencies:
    """A thousand rows in each batch, 1.6 s late; in `slow` of the batches 6.4 s late."""
    rows = np.arange(1000) * 1400
    received = []
    for n in range(batches):
        event = rows + n * 1_400_000
        emission = np.full(1000, (n + 1) * 1_400_000 + (5_000_000 if n < slow else 200_000))
        columns = {"event_time": event, "ingest_time": event, "emission_time": emission}
        received.append(pa.RecordBatch.from_pydict(columns).replace_schema_metadata({ENGINE_BATCH: b"q/%d" % n}))
    return sink_latencies(received, LatencyRule("row"), (0, batches * 1_400_000)).latencies


@pytest.mark.parametrize(
    ("slow", "batches", "state"), [(0, 21, "undecided"), (0, 99, "undecided"), (0, 100, "ok"), (2, 100, "failed")]
)
def test_a_level_is_decided_by_batches_and_not_by_rows(slow: int, batches: int, state: str) -> None:
    """Of an engine of which 2 % of the batches take 5 s, two trials of three with 21 batches see none of those."""
    level = parse_limit("p99 <= 2s")
    check = check_of(judge(evidence(levels=(level,), latencies=in_batches(slow, batches))), level.name)
    assert check.state == state
    if state == "undecided":
        facts = check.remarks[0].facts
        assert (message(check), facts["n"], facts["least"]) == (Cause.TOO_FEW_RESULTS, batches, 100)


def of_updates(**counted: Any) -> Latencies:
    """By the newest event in each update 818 ms in the median, and each event was counted after 2.8 s in the median."""
    newest = LATENCY.model_copy(update={"p50": 818_000.0, "p99": 900_000.0})
    until = LATENCY.model_copy(update={"p50": 2_800_000.0, "p99": None, "effective_count": 30, **counted})
    return Latencies(event_time_us=newest, until_counted_us=until)


@pytest.mark.parametrize(
    ("level", "counted", "state", "code"),
    [
        ("event_time_p50<=1s", {}, "failed", Cause.LIMIT_EXCEEDED),
        ("p50<=3s", {}, "ok", Cause.LIMIT_EXCEEDED),
        ("p50<=3s", {"lower_bounds": 7}, "undecided", Cause.RESULTS_OUTSTANDING),
        ("p99<=1s", {}, "failed", Detail.LOWER_PERCENTILE),
        ("p99<=3s", {}, "undecided", Cause.TOO_FEW_RESULTS),
    ],
)
def test_a_level_on_updates_is_held_against_every_event(
    level: str, counted: dict[str, Any], state: str, code: Cause | Detail
) -> None:
    """A longer trigger leaves the newest event as it was, and passes no level: both figures are named."""
    limit = parse_limit(level)
    check = check_of(judge(evidence(levels=(limit,), latencies=of_updates(**counted))), limit.name)
    newest_us = 818_000.0 if limit.statistic == "p50" else 900_000.0
    assert (check.state, message(check)) == (state, code)
    assert (check.remarks[0].facts["counted"], check.remarks[0].facts["newest_us"]) == (True, newest_us)


def test_a_level_on_updates_of_unknown_batches_is_undecided() -> None:
    """The newest event's latency alone says nothing of the others, however good it is."""
    unknown = of_updates().model_copy(update={"until_counted_us": Latency(note="not known: no batch is")})
    check = check_of(judge(evidence(levels=(parse_limit("p50<=1s"),), latencies=unknown)), "event_time_p50")
    assert (check.state, check.value, message(check)) == ("undecided", None, Detail.LATENCY_UNKNOWN)


@pytest.mark.parametrize(("text", "value"), [("until_counted_p50<=3s", 2.8e6), ("processing_time_p50<=3s", 1e6)])
def test_a_level_can_be_set_on_either_figure_by_its_name(text: str, value: float) -> None:
    """Of the time until counted by its own name; of processing time as ever."""
    level = parse_limit(text)
    both = of_updates().model_copy(update={"processing_time_us": LATENCY})
    check = check_of(judge(evidence(levels=(level,), latencies=both)), level.name)
    assert (check.state, check.value) == ("ok", value)


@pytest.mark.parametrize("fault", [{"delivery_share": 0.3}, {"background_share": 0.5}])
def test_a_level_that_lacks_batches_is_undecided_however_busy_the_driver_is(fault: dict[str, Any]) -> None:
    """All else holds: nothing was too slow. With a trend that is open, it may have been."""
    few = {"levels": (parse_limit("p99 <= 2s"),), "latencies": in_batches(0, 30)}
    assert judge(evidence(**few, **fault)).value == "undecided"
    assert judge(evidence(**few, **fault, backlog=ramp(0.01))).value == "invalid"


def test_a_service_level_holds_for_every_sink() -> None:
    """The slow one decides, by name."""
    closing = {"latency": Latencies(event_time_us=LATENCY, closing_delay_us=LATENCY)}
    for text, slow in (
        ("p99 <= 2s", sink("slow", 3e6)), ("closing_delay_p99 <= 2s", sink("slow").model_copy(update=closing)),
    ):  # fmt: skip
        level = parse_limit(text)
        check = check_of(judge(evidence(levels=(level,), sinks=(sink("dear"), slow))), level.name)
        assert (check.state, check.value, check.remarks[0].facts["sink"]) == ("failed", 3e6, "slow")
