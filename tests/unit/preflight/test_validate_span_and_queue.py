"""preflight/settings_checks.py: plan, queue, span and latency limits that must fit each other."""

from contextlib import nullcontext
from typing import Any

import pytest

from streamgauge.config.limits import parse_limit
from streamgauge.core.errors import InputError
from streamgauge.preflight import sample_size
from tests.unit.helpers_requests import GOOD, checked, refused

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize(
    ("values", "fits"),
    [
        ({"load": {"rate": "1G", "duration": "2700s"}}, False),
        ({"load": {"rate": "1G", "duration": "2500s"}}, True),
        ({"load": {"rate": "1G", "duration": "2900s", "profile": "step:900M@1s"}}, True),
        ({"load": {"rate": "1G", "duration": "8700s"}, "command": "generate"}, True),
        ({"load": {"rate": "1G", "duration": "8800s"}, "command": "generate"}, False),
        ({"load": {"duration": "1h"}, "search": {"start_rate": "1G"}, "command": "sustain"}, False),
    ],
)  # fmt: skip
def test_a_plan_must_hold_the_longest_extension(
    values: dict[str, Any], fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a trial would fail when it begins, after everything was started."""
    monkeypatch.setattr(sample_size, "BOUND_S_MIN", 0.0)  # what the queue's memory holds is another question
    with nullcontext() if fits else pytest.raises(InputError, match="events"):
        checked(GOOD | values)


@pytest.mark.parametrize(
    "values",
    [
        {"load": {"bound": "4.2s"}},
        {"workload": "identity", "load": {"bound": "1s"}},
        {"options": {"trigger": "10 seconds"}, "load": {"duration": "200s"}},
        {"workload": "windowed_join", "load": {"bound": "5s"}},
        # A tiny interval divides by how many microseconds apart batches are.
        {"workload": "identity", "limits": ["p99<=5s"], "options": {"trigger": "0.0000001 seconds"}},
        # Three times 10 s hold five windows of 6 s, and 20 batches; input that is only written is not judged.
        {"load": {"duration": "10s"}, "parameters": {"slide": "6s"}},
        {"command": "generate", "load": {"duration": "2s"}},
        # What reads on continuously has no batches that are known to be apart.
        {"workload": "identity", "engine": "known", "limits": ["p99<=5s"], "options": {"batch": "0s"}},
    ],
)
def test_a_queue_that_holds_three_batches_is_enough(values: dict[str, Any]) -> None:
    """By the interval that is in force for this flow; back to back batches need none. A span passes if an extension
    may decide it.
    """
    checked(GOOD | values)


def test_the_way_out_of_a_queue_too_small_for_its_trigger_is_one() -> None:
    """The bound that is named passes."""
    (problem,) = refused(GOOD | {"options": {"trigger": "12 seconds"}, "load": {"duration": "240s"}})
    assert "trigger: 12 s" in problem.rule
    assert problem.way_out.startswith("--queue-limit 36s, or ")
    options, load = {"trigger": "12 seconds"}, {"duration": "240s", "bound": "36s"}
    checked(GOOD | {"options": options, "load": load})


def test_a_span_that_can_only_be_undecided_is_refused_with_one_that_can_be_decided() -> None:
    """Windows and batches alike, the longer of both is named; it passes."""
    options, parameters = {"trigger": "10 seconds"}, {"range": "100s", "slide": "100s"}
    (problem,) = refused(GOOD | {"options": options, "parameters": parameters})
    parts = ("even extended to 180 s", "1 windows (slide: 100 s) where a verdict needs 5",
             "18 batches (trigger: 10 s) where a verdict needs 20")  # fmt: skip
    assert ([part for part in parts if part not in problem.rule], problem.way_out) == ([], "--duration 500s")
    checked(GOOD | {"options": options, "parameters": parameters, "load": {"duration": "500s"}})


def test_a_span_by_events_is_refused_in_events() -> None:
    """Too short, or where the rate changes. What is named instead passes, and a search takes none."""
    (problem,) = refused(GOOD | {"load": {"rate": "1k", "events": "1k"}})
    assert (problem.setting, problem.way_out) == ("load.events", "--events 29000")
    checked(GOOD | {"load": {"rate": "1k", "events": "29k"}})
    (problem,) = refused(GOOD | {"load": {"rate": "1k", "events": "100k", "profile": "ramp:2k"}})
    assert (problem.setting, "rate changes" in problem.rule) == ("load.events", True)
    (problem,) = refused(GOOD | {"command": "sustain", "load": {"events": "100M"}})
    assert problem.rule == "is not a setting of sustain, only of run and generate"


def test_a_level_that_no_span_carries_is_refused_with_one_that_can_be_decided() -> None:
    """60 s, extended to 180 s, hold 45 windows of 4 s; p99 needs 100. What is named instead passes."""
    (problem,) = refused(GOOD | {"limits": ["p99<=5s"]})
    assert (problem.setting, problem.got) == ("limits", "p99<=5s")
    assert "p99 needs 100 windows (slide: 4 s), and even extended to 180 s" in problem.rule
    assert problem.rule.endswith("holds 45")
    assert problem.way_out == '--limit "event_time_max<=5s", or p50, or --duration 400s'
    for values in (
        {"load": {"duration": "400s"}, "limits": ["p99<=5s"]},
        {"limits": ["p50<=5s", "event_time_max<=5s"]},
    ):
        checked(GOOD | values)


@pytest.mark.parametrize(
    ("text", "rule", "way_out"),
    [
        ("p99<2", "must have <= between latency and time", '--limit "p99<=2"'),
        ("p99.9 = 3s", "must have <= between latency and time", '--limit "p99.9<=3s"'),
        ("closing_delay_max < soon", "must have <= between", '--limit "closing_delay_max<=2s"'),
        ("p98 <= 4s", "must be STATISTIC<=TIME or KIND_STATISTIC<=TIME", '--limit "p99<=4s"'),
        ("evnt_time_p99<=4s", "must be STATISTIC<=TIME", '--limit "event_time_p99<=4s"'),
        ("p99 2s", "(default event_time)", '--limit "event_time_p99<=2s"'),
    ],
)
def test_a_level_that_is_none_is_refused_with_what_it_lacks(text: str, rule: str, way_out: str) -> None:
    """The sign, or the form, whose kind may be left out; the limit that was meant is one."""
    (problem,) = refused(GOOD | {"limits": [text]})
    assert (problem.setting, problem.got, problem.way_out) == ("limits", text, way_out)
    assert rule in problem.rule
    assert "STATISTIC<=TIME or KIND_STATISTIC<=TIME" in problem.rule
    parse_limit(way_out.removeprefix("--limit ").strip('"'))


@pytest.mark.parametrize(("workload", "level"), [
    ("word_count", "closing_delay_max"), ("word_count", "match_time_p50"), ("windowed_aggregation", "match_time_p50"),
])  # fmt: skip
def test_a_level_on_a_latency_that_no_result_has_is_refused(workload: str, level: str) -> None:
    """After a whole run it could only be undecided; what is named instead passes."""
    (problem,) = refused({"workload": workload, "limits": [f"{level}<=20s"]})
    assert (problem.setting, problem.got) == ("limits", f"{level}<=20s")
    assert "no result of this workload has" in problem.rule
    checked({"workload": workload, "limits": [problem.way_out.removeprefix("--limit ").strip('"')]})
    checked({"workload": "windowed_join", "limits": [f"{level}<=20s"]})


def test_a_level_of_what_has_no_windows_is_carried_by_batches() -> None:
    """Back to back they may be short enough; 4 s apart, 180 s hold 45 of them. Batches that are further apart than
    windows count for those too.
    """
    rows = {"workload": "identity", "limits": ["p99<=5s"]}
    checked(rows | {"limits": ["p99_9<=5s"]})
    (problem,) = refused(rows | {"options": {"trigger": "4 seconds"}})
    assert "p99 needs 100 batches (trigger: 4 s), and even extended to 180 s" in problem.rule
    assert problem.rule.endswith("holds 45")
    assert problem.way_out.endswith("or --duration 400s")
    checked(rows | {"options": {"trigger": "4 seconds"}, "load": {"duration": "400s"}})
    (level,) = refused(
        GOOD | {"limits": ["p99<=5s"], "parameters": {"range": "1s", "slide": "1s"}, "load": {"duration": "40s"}}
    )
    assert "p99 needs 100 batches (trigger: 1.4 s)" in level.rule
    (span,) = refused(rows | {"engine": "known", "options": {"batch": "4s"}})
    assert (span.setting, "100 batches (batch: 4 s)" in span.rule) == ("limits", True)


def test_a_span_whose_rate_changes_gets_no_extension() -> None:
    """12 s hold three windows of 4 s; a constant rate may have nine."""
    load = {"rate": "100k", "duration": "12s"}
    (problem,) = refused(GOOD | {"load": load | {"profile": "step:200k@5s"}})
    assert "a span of 12 s (a rate that changes is not extended) holds 3 windows" in problem.rule
    checked(GOOD | {"load": load})
    (level,) = refused(GOOD | {"load": {"duration": "150s", "profile": "step:200k@5s"}, "limits": ["p99<=5s"]})
    assert level.rule.endswith("holds 37")


def test_a_rate_that_memory_cannot_hold_for_long_is_refused() -> None:
    """It is known before the start; with the memory, or the rate, that the refusal names there is none."""
    values: dict[str, Any] = {"workload": "filter", "engine": "known", "load": {"rate": "1e9", "memory": "64MiB"}}
    (problem,) = refused(values)
    assert (problem.setting, problem.got) == ("load.rate", "1 G/s")
    assert "the queue's memory of 64 MiB, which holds 0.0" in problem.rule
    lower = problem.way_out.rpartition("--rate ")[2]
    checked({**values, "load": {**values["load"], "rate": lower}})
    small = {**values, "load": {"rate": lower, "memory": "60MiB"}}
    memory = refused(small)[0].way_out.partition("--queue-memory ")[2].partition(",")[0]
    checked({**small, "load": {**small["load"], "memory": memory}})
    checked({**values, "load": {**values["load"], "rate": lower, "bound": "3s", "memory": "30MiB"}})


@pytest.mark.parametrize(
    ("workload", "limits", "noted"),
    [
        ("identity", ["event_time_p99 <= 2s"], True),
        ("identity", ["event_time_max <= 2s"], False),
        ("windowed_aggregation", ["event_time_p50 <= 9s"], False),
    ],
)
def test_a_percentile_whose_results_are_not_countable_before_is_noted(
    workload: str, limits: list[str], noted: bool
) -> None:
    """Batches back to back have no known distance; windows have, and were checked."""
    assert bool(sample_size.percentile_note(checked(GOOD | {"workload": workload, "limits": limits}))) is noted
