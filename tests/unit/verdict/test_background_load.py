"""verdict/verdict.py: what background load and a busy driver change about a verdict."""

from typing import Any

import pytest

from streamgauge.results.codes import Cause
from streamgauge.results.text.sentences import ADVICE, advice
from streamgauge.results.verdict import BackgroundLoad
from streamgauge.verdict.verdict import judge
from tests.unit.verdict.helpers_evidence import LEVEL, RIGHT, evidence, lag, ramp

SLOW: dict[str, Any] = {"backlog": ramp(0.05)}
SHARES = ("delivery_share", "receive_share", "disk_share")
TOO_SLOW: list[dict[str, Any]] = [
    {"backlog": ramp(0.05)}, {"backlog": ramp(0.01)}, {"output_lag": lag(0.03)}, {"latency": (ramp(0.03),)},
    {"overflowed": True}, {"levels": (LEVEL,)},
]  # fmt: skip


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("fault", TOO_SLOW, ids=lambda fault: next(iter(fault)))
def test_a_system_that_may_have_waited_for_the_driver_is_not_blamed(share: str, fault: dict[str, Any]) -> None:
    """From a quarter of the time on, whether it would have kept up is unknown; what was seen of the system stands in
    its own checks. Below that it is the system's doing.
    """
    verdict = judge(evidence(**fault, **{share: 0.3}))
    assert (verdict.value, verdict.decided_by) == ("invalid", ("driver",))
    assert (verdict.checks[0].value, verdict.checks[0].limit) == (0.3, 0.25)
    alone = judge(evidence(**fault))
    assert verdict.checks[1:] == alone.checks[1:]
    assert judge(evidence(**fault, **dict.fromkeys(SHARES, 0.24))) == alone
    assert alone.value in ("not_sustained", "undecided")


def test_who_keeps_up_beside_a_driver_that_takes_long_is_sustained() -> None:
    """In spite of it; up to the half beyond which latencies would be the driver's."""
    assert judge(evidence(**dict.fromkeys(SHARES, 0.45))).value == "sustained"


@pytest.mark.parametrize(
    "fault", [{"sut_alive": False}, {"retried_tasks": 1}, {"verification": RIGHT.model_copy(update={"missing": 1})}]
)
def test_no_slow_driver_excuses_what_slowness_does_not_bring_about(fault: dict[str, Any]) -> None:
    """Dead processes, retried tasks and wrong answers stay what they are, though a trend failed as well."""
    assert judge(evidence(**fault, backlog=ramp(0.05), delivery_share=0.4)).value == "not_sustained"


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"core_wait_us": 50_000.0}, True),
        ({"driver_reason": "ended"}, True),
        ({"sut_alive": False}, False),
        ({"verification": None}, False),
        ({"verification": RIGHT.model_copy(update={"missing": 30})}, False),
        ({}, False),
    ],
)
def test_a_busy_machine_is_named_before_the_driver_is_blamed(changed: dict[str, Any], named: bool) -> None:
    """Invalid beside other processes: look at those first. Wrong answers, ones that were not judged, and a system that
    died come of no neighbour, and a rate that held needs none.
    """
    assert ("close background processes" in advice(judge(evidence(background_share=0.4, **changed)))) is named
    assert not judge(evidence(background_share=0.1, **changed)).load_may_explain


@pytest.mark.parametrize(
    "fault",
    [
        {"core_wait_us": 50_000.0},
        {"schedule_delay_us_p99": 150_000},
        {"receive_share": 0.6},
        {"driver_reason": "no offers", "driver_silent": True},
    ],
)
@pytest.mark.parametrize("besides", [{}, {"verification": RIGHT.model_copy(update={"wrong": 1})}])
def test_what_kept_the_driver_from_its_work_is_named_first(fault: dict[str, Any], besides: dict[str, Any]) -> None:
    """A driver that was late or starved beside busy neighbours did not fail by itself; its check says by how much."""
    quiet, beside = (judge(evidence(background_share=share, **fault, **besides)) for share in (0.1, 0.8))
    assert (quiet.cause, beside.cause) == (quiet.checks[0].code, Cause.DRIVER_SLOWED_BY_BACKGROUND_LOAD)
    assert (quiet.value, quiet.decided_by, quiet.checks) == ("invalid", beside.decided_by, beside.checks)
    assert (quiet.load, beside.load) == (None, BackgroundLoad(0.8, 0.1))


@pytest.mark.parametrize("fault", [{}, {"span_began": False, "verification": None}])
def test_a_full_queue_is_advised_on_before_background_load(fault: dict[str, Any]) -> None:
    """A larger queue may be all that lacks; the load is named behind it, and alone for any other slowness."""
    full, slow = (advice(judge(evidence(background_share=0.4, **one))) for one in ({"overflowed": True} | fault, SLOW))
    assert 0 < full.index("--queue-limit") < full.index("close background processes")
    assert slow == ADVICE[Cause.BACKGROUND_LOAD]


@pytest.mark.parametrize("option", ["memory", ""])
def test_less_memory_is_advised_by_the_engines_own_option(option: str) -> None:
    verdict = judge(evidence(driver_reason="killed", limit_reached=True))
    assert (f"(--option {option})" in advice(verdict, option)) is bool(option)


@pytest.mark.parametrize(
    ("unobserved", "cause"),
    [(False, Cause.NO_RESULTS), (True, Cause.PROGRESS_UNKNOWN)],
    ids=("no results", "unobserved"),
)
@pytest.mark.parametrize("late", [{}, {"core_wait_us": 50_000.0}, {"overflowed": True}])
def test_a_rejected_program_is_the_first_reason(unobserved: bool, cause: Cause, late: dict[str, Any]) -> None:
    """A busy machine or a late driver explains no program that cannot be read; what to do next is its correction."""
    rejected = {"sut_alive": False, "sut_rejected": True, "sut_unobserved": unobserved, "sut_reason": "no offset"}
    verdict = judge(evidence(background_share=0.8, **rejected, **late))
    assert (verdict.cause, verdict.decided_by[0], verdict.died) == (cause, "connected", ())
    assert verdict.decided_by.count("connected") == 1
    assert advice(verdict) == ADVICE[cause]
    crashed = judge(evidence(background_share=0.8, driver_reason="ended", **rejected))
    assert crashed.cause == Cause.DRIVER_FAILED
    assert judge(evidence(interrupted=True, **rejected)).deciding == ()


@pytest.mark.parametrize("fault", [{"negative_latencies": 1}, {"bound_s": 9.0, "bound_cut_by_memory": True}])
def test_what_no_background_process_causes_is_not_blamed_on_one(fault: dict[str, Any]) -> None:
    """A wrong clock, and a queue that memory cuts."""
    verdict = judge(evidence(background_share=0.8, **fault))
    assert (verdict.value, verdict.load_may_explain) == ("invalid", False)


SLOW_BESIDE_LOAD: list[dict[str, Any]] = [
    {"backlog": ramp(0.05)},
    {"output_lag": lag(0.03)},
    {"backlog_max_s": 30.0},
    {"overflowed": True},
    {"levels": (LEVEL,)},
    {"backlog": ramp(0.05), "overflowed": True, "verification": None},
]


UNDECIDED: list[dict[str, Any]] = [
    {"backlog": ramp(0.0, noise_s=1.0)},
    {"batches": 3},
    {"draining_at_start": True},
]
BESIDE_LOAD = [
    *((fault, "not_sustained") for fault in SLOW_BESIDE_LOAD),
    *((fault | judged, "undecided") for fault in UNDECIDED for judged in ({}, {"verification": None})),
]


@pytest.mark.parametrize(("fault", "value"), BESIDE_LOAD)
def test_what_was_too_slow_or_undecided_beside_others_is_no_proof(fault: dict[str, Any], value: str) -> None:
    """A neighbour that takes a core makes any system slow: the trial is invalid, and says whose doing it may be. What
    stayed undecided is made again, whether or not its answers were looked at: a search would take it as its upper end.
    """
    quiet, beside = (judge(evidence(background_share=share, **fault)) for share in (0.1, 0.4))
    assert (quiet.value, beside.value) == (value, "invalid")
    assert (beside.decided_by, beside.checks) == (quiet.decided_by, quiet.checks)
    assert (beside.cause, beside.load) == (Cause.BACKGROUND_LOAD, BackgroundLoad(0.4, 0.1))


@pytest.mark.parametrize(
    ("fault", "value"), [({"backlog": ramp(0.05)}, "not_sustained"), ({"batches": 3}, "undecided")]
)
def test_a_burst_of_others_disturbs_as_well(fault: dict[str, Any], value: str) -> None:
    """Both cores for 2.9 s of 30 s are less than a tenth; what a virtual machine is denied is far below a half."""
    of_few_seconds, stolen = (
        judge(evidence(background_share=0.08, background_burst_share=n, **fault)) for n in (0.58, 0.08)
    )
    assert (of_few_seconds.value, stolen.value) == ("invalid", value)
    assert of_few_seconds.load == BackgroundLoad(0.58, 0.5, 5.0)
    assert judge(evidence(background_burst_share=0.58)).value == "sustained"


WRONG = {"verification": RIGHT.model_copy(update={"wrong": 1})}


@pytest.mark.parametrize("fault", [{"sut_alive": False}, {"retried_tasks": 1}, WRONG])
def test_what_no_neighbour_brings_about_is_proof_beside_others(fault: dict[str, Any]) -> None:
    """A system that died, or answered wrongly, is not sustained on a busy machine too, however slow it was besides."""
    assert judge(evidence(background_share=0.4, **fault)).value == "not_sustained"
    assert judge(evidence(background_share=0.4, backlog=ramp(0.05), **fault)).value == "not_sustained"


@pytest.mark.parametrize(("changes", "value"), [
    ({}, "sustained"), ({"verification": None}, "undecided"),
    ({"verification": RIGHT.model_copy(update={"expected": 0})}, "undecided"),
    ({"backlog": ramp(0.05), "interrupted": True}, "interrupted"),
])  # fmt: skip
def test_what_held_beside_others_has_held(changes: dict[str, Any], value: str) -> None:
    """It did so in spite of them; and what was not judged was not judged for another reason."""
    assert judge(evidence(background_share=0.4, **changes)).value == value
