"""Trials in which the driver, or the machine, was at fault."""

from dataclasses import replace
from typing import Any

import pytest

from streamgauge.config.experiment import build
from streamgauge.core.clock import US
from streamgauge.metrics import interference
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.results.codes import Cause, Detail
from streamgauge.results.verdict import Remark
from streamgauge.trial import policies
from streamgauge.verdict import collect_evidence as collect_module
from streamgauge.verdict.verdict import judge
from tests.unit.helpers_trials import RATE, SECONDS, START, cut_short, done_of
from tests.unit.verdict.helpers_collect import evidence_of, judged, verified
from tests.unit.verdict.helpers_evidence import check_of


def test_a_late_driver_is_invalid(resolved: ResolvedExperiment, make: Any) -> None:
    """The plan was not kept: no figure of this trial may be used."""
    assert judged(resolved, done_of(make, schedule_delay_us=250_000)) == ("invalid", ("driver",))


@pytest.mark.parametrize(("commit_after_us", "state"), [(20 * US, "ok"), (400_000, "invalid")])
def test_schedule_delay_is_little_beside_results_that_come_late(
    resolved: ResolvedExperiment, make: Any, commit_after_us: int, state: str
) -> None:
    """Also before any latency is known, and for a trial that will have none: a quarter of a second beside 20."""
    record = done_of(make, commit_after_us=commit_after_us)
    record.trial_log.chunks = [
        [replace(chunk, published_us=chunk.to_us + 150_000 * (chunk.from_us % US == 0)) for chunk in log]
        for log in record.trial_log.chunks
    ]
    verdict = judge(collect_module.collect_evidence(resolved, record, RATE))
    assert check_of(verdict, "driver").state == state


def waited_for(make: Any, record: TrialRecord, log: str, seconds: float) -> TrialRecord:
    """So much of every second of the span was the driver's, twice at once; of the seconds around it, all."""
    for second in range(SECONDS):
        since = START + second * US
        spent = [(since, since + round((seconds if 5 <= second < 35 else 1.0) * US))]
        record.trial_log.add(make.tick([[], []], [[], []], [], **{log: 2 * spent}))
    return record


@pytest.mark.parametrize(
    ("log", "code"),
    [
        ("delivering", Cause.DELIVERY_BUSY),
        ("receiving", Cause.RECORDER_BUSY),
        ("writing", Cause.RECORDER_DISK_BUSY),
    ],
)
@pytest.mark.parametrize(
    ("seconds", "growth_us", "value"),
    [
        (0.45, 0, "sustained"), (0.55, 0, "invalid"), (0.01, 50_000, "not_sustained"), (0.2, 50_000, "not_sustained"),
        (0.3, 50_000, "invalid"),
    ],
)  # fmt: skip
def test_a_driver_that_keeps_the_system_waiting_is_not_taken_for_a_slow_system(
    resolved: ResolvedExperiment, make: Any, log: str, code: Cause, seconds: float, growth_us: int, value: str
) -> None:
    """Invalid from half of the span on, or from a quarter where the engine falls behind; below that it is its doing."""
    verdict = judge(evidence_of(resolved, waited_for(make, done_of(make, growth_us=growth_us), log, seconds)))
    assert (verdict.value, verdict.checks[0].code) == (value, code if value == "invalid" else Cause.OK)


@pytest.mark.parametrize(("background", "value"), [
    ([20.0] * SECONDS, "not_sustained"), ([80.0] * SECONDS, "invalid"),
    ([200.0 if 20 <= n < 26 else 0.0 for n in range(SECONDS)], "invalid"),
], ids=["a tenth", "much", "a burst"])  # fmt: skip
def test_an_engine_that_falls_behind_beside_others_proves_nothing(
    resolved: ResolvedExperiment, make: Any, monkeypatch: pytest.MonkeyPatch, background: list[float], value: str
) -> None:
    """What the monitors saw of other processes reaches the verdict; of two processors a tenth is nothing. A few seconds
    of all processors are little of the whole span, and enough to leave an engine behind.
    """
    monkeypatch.setattr(interference, "machine_percent", lambda: 200.0)
    if 0.0 in background:
        monkeypatch.setattr(interference, "background_share", lambda _: 0.0)
    record = done_of(make, growth_us=50_000)
    record.trial_log.background = [(START + n * US, percent) for n, percent in enumerate(background)]
    assert judged(resolved, record)[0] == value


def test_a_starved_driver_is_invalid(resolved: ResolvedExperiment, make: Any) -> None:
    """A generator that waits a second for a core, each time, stamps nothing rightly."""
    record = done_of(make)
    record.trial_log.usages = [make.usage(second, "generator 0", "driver", waiting=1e6) for second in range(6, 30)]
    assert judged(resolved, record) == ("invalid", ("driver",))


@pytest.mark.parametrize("after_us", [3 * US, 12_370_000, 38 * US])
def test_a_driver_process_that_failed_makes_the_trial_invalid(
    resolved: ResolvedExperiment, make: Any, after_us: int
) -> None:
    """A recorder that is gone has lost results, whenever it went; nobody else is to blame."""
    record = cut_short(done_of(make), after_us)
    record.driver_failed = "recorder ended (exit code -9)"
    verdict = judge(evidence_of(resolved, record, verified(missing=9)))
    assert (verdict.value, verdict.decided_by) == ("invalid", ("driver",))
    assert verdict.checks[0].remarks[0].facts["reason"] == record.driver_failed


def test_a_generator_that_stops_is_seen(resolved: ResolvedExperiment, make: Any) -> None:
    """One of two generators offers nothing after the 12th second: half of the plan is missing."""
    record = done_of(make)
    record.trial_log.chunks[1] = [chunk for chunk in record.trial_log.chunks[1] if chunk.to_us <= START + 12 * US]
    assert judged(resolved, record) == ("invalid", ("driver",))


def test_a_chunk_under_way_when_the_span_ends_is_not_late(resolved: ResolvedExperiment, make: Any) -> None:
    """The look at the span's end comes a moment before the last chunk does: that is no reason not to go on."""
    record = cut_short(done_of(make), 35 * US + 500)
    record.deadline_us = 0
    evidence = collect_module.collect_evidence(resolved, record, RATE)
    assert (evidence.offered_per_s >= 0.99 * evidence.planned_per_s).all()
    assert evidence.offered_per_s.size == 30


def test_negative_latencies_are_the_drivers_fault(resolved: ResolvedExperiment, make: Any) -> None:
    """A result before its event: the clocks are wrong."""
    assert judged(resolved, done_of(make), verified(negatives=1)) == ("invalid", ("driver",))


@pytest.mark.parametrize(("late_ms", "invalid"), [(400, False), (401, True)])
def test_a_recorder_that_stood_still_invalidates_the_trial(
    resolved: ResolvedExperiment, make: Any, late_ms: int, invalid: bool
) -> None:
    """Of 30 s a hundredth is allowed, beyond the first 100 ms; what a recorder did before is another trial's."""
    record = done_of(make)
    late = [(START - US, 9 * US), (START + 9 * US, late_ms * 1000)]
    record.trial_log.add(make.tick([[], []], [[], []], [], stood_still=late))
    assert record.trial_log.stood_still == late[1:]
    assert judged(resolved, record) == (("invalid", ("driver",)) if invalid else ("sustained", ()))


@pytest.mark.parametrize(
    ("waiting_s", "value", "reason"),
    [(2, "invalid", Detail.MEMORY_FULL), (None, "not_sustained", Detail.QUEUE_REACHED)],
)
def test_a_queue_full_of_what_does_not_wait_is_no_fault_of_the_engine(
    resolved: ResolvedExperiment, make: Any, waiting_s: int | None, value: str, reason: Detail
) -> None:
    """What is in flight takes memory too: where that fills it, the driver has too little."""
    record = cut_short(done_of(make), 20 * US)
    full = make.tick([[], []], [[], []], [], overflowed=True, memory_full_us=waiting_s and waiting_s * US)
    record.trial_log.add(full)
    verdict = judge(evidence_of(resolved, record))
    assert verdict.value == value
    assert "queue_bound" in verdict.decided_by
    assert (check_of(verdict, "queue_bound").value == 2) is (value == "invalid")
    assert policies.reason_to_stop_early(resolved, record, RATE, START + 20 * US) == Remark(reason)


def test_memory_that_cuts_the_bound_is_known(make: Any, resolved: ResolvedExperiment) -> None:
    """A queue that memory keeps below ten seconds of the rate cannot hold against the system; a bound that the user has
    set is not memory's.
    """
    values: dict[str, Any] = {"workload": "identity", "load": {"rate": "1M"}}
    small = replace(check(build(values)), bytes_max=64 * 2**20)
    evidence = collect_module.collect_evidence(small, done_of(make), 1e6, verified())
    assert evidence.bound_cut_by_memory
    assert evidence.bound_s < 10
    usual = evidence_of(resolved, done_of(make))
    assert (usual.bound_s, usual.bound_cut_by_memory) == (30.0, False)
