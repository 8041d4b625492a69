"""The overload trial: how far it climbs, when it ends, and what it calls drained."""

import math
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.config.experiment import build
from streamgauge.core.clock import US
from streamgauge.core.errors import InputError
from streamgauge.core.trial import TrialSpans
from streamgauge.engines.registry import entry
from streamgauge.engines.spark.options import trigger
from streamgauge.metrics.records import Commit
from streamgauge.metrics.trial_log import TrialLog
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.preflight.settings_checks import check
from streamgauge.results.verdict import VerdictValue
from streamgauge.studies.capacity import saturation_probe
from streamgauge.studies.capacity.constants import FIRST_RATE_PER_S, FIRST_S, LARGER, LAST_S, PACE_S, STEP, STEP_S
from streamgauge.studies.capacity.saturation_probe import most_within_heap
from streamgauge.transports.spi import Chunk, Delivery
from streamgauge.trial.phases import TrialPolicy
from tests.unit.studies.capacity.helpers_saturation_probe import START, Batches, Stairs, done_of, drained_at
from tests.unit.user_workloads.helpers_programs import written


@pytest.mark.parametrize(("capacity_per_s", "stairs"), [(2e5, 2), (2e6, 3)])
def test_it_climbs_until_the_engine_falls_behind_and_stays_until_it_is_warm(
    monkeypatch: pytest.MonkeyPatch, capacity_per_s: float, stairs: int
) -> None:
    """Eight times as much each step; the last one is made again, shortly while it is cold, then for long."""
    climbed = Stairs(monkeypatch, capacity_per_s)
    result = climbed.climb(50e6)
    rates = [FIRST_RATE_PER_S * STEP**n for n in range(stairs)]
    seconds = [FIRST_S, *[STEP_S] * stairs, LAST_S]
    assert climbed.steps == list(zip([*rates, rates[-1], rates[-1]], seconds, strict=True))
    assert (result.drained_per_s, result.holds) == (pytest.approx(capacity_per_s), False)


@pytest.mark.parametrize(("choked_per_s", "guess_per_s"), [(2.5e6, 6.4e6), (7e6, 7e6)])
def test_a_stair_that_is_far_too_high_says_less_than_the_one_below(
    monkeypatch: pytest.MonkeyPatch, choked_per_s: float, guess_per_s: float
) -> None:
    """An engine that keeps up with 6.4 M/s drained 2.5 M/s of 51 M/s, in batches of a hundred million events: it is
    not offered those again.
    """
    climbed = Stairs(monkeypatch, 1e7)
    climbed.changed = lambda record: drained_at(choked_per_s) if climbed.rates[-1] > 1e7 else record
    result = climbed.climb(180e6)
    assert climbed.rates == [1e5, 8e5, 6.4e6, 51.2e6]
    assert (result.drained_per_s, result.holds) == (pytest.approx(guess_per_s), False)


@pytest.mark.parametrize(("workload", "holds"), [("machine_outlier", True), ("log_processing", False)])
def test_a_process_keeps_rows_if_it_has_keys(workload: str, holds: bool) -> None:
    """One without keys passes each batch on."""
    resolved = check(build({"workload": workload, "engine": "spark", "command": "sustain"}))
    assert saturation_probe.keeps_rows(resolved) is holds


@pytest.mark.parametrize(("workload", "seconds"), [("windowed_join", 16.0), ("windowed_aggregation", 0.0)])
def test_windows_end_in_both_halves_of_a_step(workload: str, seconds: float) -> None:
    """The join has windows of 8 s; an aggregation keeps no rows."""
    resolved = check(build({"workload": workload, "engine": "spark", "command": "sustain"}))
    assert saturation_probe.closing_s(resolved) == pytest.approx(seconds)


@pytest.mark.parametrize(("warm_after_s", "rest_s"), [(FIRST_S + STEP_S, LAST_S), (FIRST_S + STEP_S + 60, 60)])
def test_a_slow_engine_is_not_judged_before_it_is_warm(
    monkeypatch: pytest.MonkeyPatch, warm_after_s: float, rest_s: float
) -> None:
    """The first step is made again for a short while, and then until a fresh engine is warm, however long that is."""
    monkeypatch.setattr(saturation_probe, "FRESH_WARMUP_S", warm_after_s)
    climbed = Stairs(monkeypatch, 5e4)
    assert climbed.climb(50e6).drained_per_s == pytest.approx(5e4)
    assert climbed.steps == [(1e5, FIRST_S), (1e5, STEP_S), (1e5, rest_s)]


@pytest.mark.parametrize(("warm_share", "climbs_on"), [(0.9, False), (0.96, True)])
def test_a_stair_that_was_stayed_on_is_climbed_only_where_nearly_all_of_it_was_drained(
    monkeypatch: pytest.MonkeyPatch, warm_share: float, climbs_on: bool
) -> None:
    """A cold engine drained half of it; nine tenths of it, once warm, is no guess that anything will change."""
    climbed = Stairs(monkeypatch, 1e9)
    stayed = {(8e5, STEP_S): drained_at(4e5), (8e5, LAST_S): drained_at(8e5 * warm_share)}
    climbed.changed = lambda record: stayed.get(climbed.steps[-1], record)
    result = climbed.climb(6.4e6)
    assert climbed.rates == [1e5, 8e5, 8e5, 8e5, *([6.4e6] if climbs_on else [])]
    assert (result.drained_per_s, result.holds) == (pytest.approx(6.4e6 if climbs_on else 7.2e5), climbs_on)


def test_batches_by_far_too_large_are_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that drains a tenth of the first step would be guessed by batches of ten times what it will get."""
    climbed = Stairs(monkeypatch, 1e4)
    assert climbed.climb(50e6).drained_per_s == pytest.approx(1e4)
    assert climbed.steps[-1] == (1e5, LAST_S)
    assert climbed.paces[-2:] == [pytest.approx(PACE_S / 2), pytest.approx(PACE_S * LARGER / 10)]


def test_an_engine_that_was_only_slow_to_start_climbs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first step drained little, the same step made again, shortly, all of it: that was no limit."""
    climbed = Stairs(monkeypatch, 2e6)
    climbed.changed = lambda record: drained_at(20_000) if len(climbed.steps) == 1 else record
    result = climbed.climb(50e6)
    assert (climbed.rates, climbed.steps[1]) == ([1e5, 1e5, 8e5, 6.4e6, 6.4e6, 6.4e6], (1e5, STEP_S))
    assert result.drained_per_s == pytest.approx(2e6)


def test_an_engine_that_chews_on_one_batch_is_guessed_from_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search once found nothing, because the step made again held no delivery at all."""
    stairs = Stairs(monkeypatch, 20_000)
    stairs.changed = lambda record: record if len(stairs.steps) == 1 else done_of([], FIRST_S)
    assert stairs.climb(50e6).drained_per_s == pytest.approx(20_000)
    assert len(stairs.steps) == 4


@pytest.mark.parametrize(("capacity_per_s", "kept_up"), [(1e9, True), (0.9e6, False)])
def test_an_engine_that_keeps_up_with_all_there_is_was_not_overloaded(
    monkeypatch: pytest.MonkeyPatch, capacity_per_s: float, kept_up: bool
) -> None:
    """No step is higher than what may be offered, and after that one there is nothing to find out. One that drains
    nine tenths of it does not keep up.
    """
    stairs = Stairs(monkeypatch, capacity_per_s)
    result = stairs.climb(1e6)
    assert stairs.rates[:3] == [FIRST_RATE_PER_S, FIRST_RATE_PER_S * STEP, 1e6]
    assert (result.drained_per_s, result.holds) == (pytest.approx(min(capacity_per_s, 1e6)), kept_up)
    assert ("kept up with" in result.why) == kept_up
    assert len(stairs.rates) == 3 or not kept_up


@pytest.mark.parametrize(("capacity_per_s", "limits"), [(1e9, True), (1.5e6, False)])
def test_no_stair_is_higher_than_the_heap_allows(
    monkeypatch: pytest.MonkeyPatch, capacity_per_s: float, limits: bool
) -> None:
    """An engine that drains the highest of them whole has not kept up with all there is, and is called limited."""
    stairs = Stairs(monkeypatch, capacity_per_s)
    stairs.heap_per_s = 1.8e6
    result = stairs.climb(50e6)
    assert max(rate for rate, _ in stairs.steps) == 1.8e6
    assert ("the engine's heap" in result.why, result.holds) == (limits, False)
    assert result.drained_per_s == pytest.approx(min(capacity_per_s, 1.8e6))


@pytest.mark.parametrize(
    ("workload", "engine", "bounded"),
    [
        ("windowed_join", "spark", True),
        ("windowed_aggregation", "spark", False),
        ("identity", "spark", False),
        ("filter", "known", False),
    ],
)
def test_flows_that_keep_rows_are_bounded_by_the_heap(workload: str, engine: str, bounded: bool) -> None:
    """Aggregates keep a value for a key, and the engine known has no heap."""
    resolved = check(build({"workload": workload, "engine": engine, "command": "sustain"}))
    highest = most_within_heap(resolved)
    assert (highest < math.inf) is bounded
    if bounded:
        heap = entry(engine).heap_bytes(resolved.experiment.options)
        assert resolved.reach_us is not None
        rows = highest * (PACE_S + resolved.reach_us / US) * resolved.event_bytes(highest)
        assert rows == pytest.approx(heap / 8, rel=0.01)


@pytest.mark.parametrize(
    ("failed", "verdict", "why"),
    [
        ({"engine_failed": "it ended"}, "not_sustained", "drained 200 k/s until the engine failed: it ended"),
        ({"driver_failed": "an edge closed"}, "invalid", "the driver failed: an edge closed (the engine drained 200"),
        ({"driver_failed": "an edge closed", "engine_failed": "it ended"}, "invalid", "an edge closed"),
    ],
)
def test_a_failed_test_bed_climbs_no_further(
    monkeypatch: pytest.MonkeyPatch, failed: dict[str, Any], verdict: VerdictValue, why: str
) -> None:
    """What was drained until then is all the guess there is; the reason goes along. A driver that failed says nothing
    of the engine.
    """
    stairs = Stairs(monkeypatch, 2e5, **failed)
    result = stairs.climb(50e6)
    assert stairs.rates == [FIRST_RATE_PER_S, FIRST_RATE_PER_S * STEP]
    assert (result.drained_per_s, result.verdict) == (pytest.approx(2e5), verdict)
    assert why in result.why.replace("\u202f", " ")


def test_a_failed_test_bed_has_not_kept_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it had drained all that there is until then."""
    stairs = Stairs(monkeypatch, 1e9)
    failed = drained_at(1e6, engine_failed="it ended")
    stairs.changed = lambda record: failed if stairs.rates[-1] == 1e6 else record
    result = stairs.climb(1e6)
    assert (result.drained_per_s, result.holds) == (pytest.approx(1e6), False)


@pytest.mark.parametrize(
    ("late_from_per_s", "rates", "drained_per_s"),
    [
        (8e5, [1e5, 8e5, 2e5, 4e5, 4e5, 4e5], 3e5),
        (3e5, [1e5, 8e5, 2e5, 4e5, 2e5], 2e5),
        (1.5e5, [1e5, 8e5, 2e5, 1e5], 1e5),
    ],
)
def test_a_step_in_which_the_driver_is_too_slow_does_not_count(
    monkeypatch: pytest.MonkeyPatch, late_from_per_s: float, rates: list[float], drained_per_s: float
) -> None:
    """A generator at full speed takes the CPU of a program, which drains little; lower steps show its limit, as far as
    the driver keeps their plan.
    """
    stairs = Stairs(monkeypatch, 3e5)
    late = drained_at(1.26e5, held_back=False)
    stairs.changed = lambda record: late if stairs.rates[-1] >= late_from_per_s else record
    result = stairs.climb(50e6)
    assert (stairs.rates, result.verdict) == (rates, "not_sustained")
    assert result.drained_per_s == pytest.approx(drained_per_s)
    assert "heap" not in result.why


def test_a_driver_that_kept_the_plan_or_was_held_back_is_not_late() -> None:
    """Otherwise nothing but the engine can be why little was drained."""
    chunk = Chunk(START, START + 8 * US, 1, START + 8 * US)
    for held_back, offered, is_late in ((True, False, False), (False, False, True), (False, True, False)):
        record = drained_at(100.0, held_back=held_back)
        record.trial_log.chunks = [[chunk]] if offered else []
        assert saturation_probe.Step(record, 1e6, 100.0, None).driver_late is is_late


@pytest.mark.parametrize("step", [2, 3])
def test_ctrl_c_ends_it(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """The search that requested it is stopped, without a guess; on the way up, and on the last step."""
    stairs = Stairs(monkeypatch, 2e5, interrupted=True)
    stairs.last_from = step
    with pytest.raises(KeyboardInterrupt):
        stairs.climb(50e6)
    assert len(stairs.steps) == step


def conductor_of(resolved: Any, interrupted: bool = False) -> Any:
    """A conductor that only records what it would conduct."""

    def conduct(plan: Any, spans: TrialSpans, rate_per_s: float, policy: TrialPolicy) -> TrialRecord:
        conductor.plan, conductor.policy = plan, policy
        return TrialRecord(TrialLog(plan), spans, interrupted=interrupted)

    testbed = SimpleNamespace(clock=SimpleNamespace(now_us=lambda: START), reached_us=0)
    conductor = SimpleNamespace(resolved=resolved, testbed=testbed, conduct=conduct)
    return conductor


def test_a_stair_ends_with_its_time() -> None:
    """Its plan, its end and its later half; only so much event time waits."""
    resolved: Any = SimpleNamespace(
        plan=lambda *arguments: arguments, bound_s=lambda rate_per_s: (30.0, False), unseen_s=0.0
    )
    conductor = conductor_of(resolved)
    spans = saturation_probe._step(conductor, 8e6, 10.0).spans
    start = spans.start_us
    assert spans == TrialSpans(start, start + 5 * US, start + 10 * US, start + 10 * US)
    assert conductor.plan == (start, 8e6, 10.0)
    assert (conductor.policy.drain_s, conductor.policy.pace_us) == (0.0, 3 * US)


def test_a_fresh_engine_gets_a_rising_load_and_nothing_of_it_is_judged() -> None:
    """For the warm-up of a fresh engine, without a span, and with no more waiting than in an overload trial."""
    resolved = check(build({"workload": "filter", "load": {"warmup": "20s"}}))
    conductor = conductor_of(resolved)
    spans = saturation_probe.warm_up(conductor, 1e5).spans
    assert spans.measured_from_us == spans.measured_to_us == spans.end_us == spans.start_us + 20 * US
    first, last = (
        conductor.plan.planned_events(spans.start_us + s * US, spans.start_us + (s + 1) * US) for s in (0, 19)
    )
    assert first < 0.2e5 < last == pytest.approx(1e5, rel=0.01)
    assert (conductor.policy.drain_s, conductor.policy.pace_us) == (0.0, 3 * US)
    with pytest.raises(KeyboardInterrupt):
        saturation_probe.warm_up(conductor_of(resolved, interrupted=True), 1e5)


@pytest.mark.parametrize(
    ("bound_s", "unseen_s", "pace_s"),
    [(30.0, 0.0, 3.0), (6.0, 0.0, 3.0), (4.0, 0.0, 2.0), (0.5, 0.0, 0.25), (45.0, 15.0, 18.0), (12.0, 15.0, 10.8)],
)
def test_what_may_wait_never_fills_the_queue(bound_s: float, unseen_s: float, pace_s: float) -> None:
    """Three seconds of event time; half of what the queue holds where that is less.

    A program with windows of 10 s was offered 3 s in 10 s, so no rate was found for it.
    """
    resolved: Any = SimpleNamespace(bound_s=lambda rate_per_s: (bound_s, True), unseen_s=unseen_s)
    assert saturation_probe.pace_us(resolved, 1e6, saturation_probe.PACE_S) == pytest.approx(pace_s * US)


@pytest.mark.parametrize(
    ("progress", "pace_s", "closing_s"),
    [("", 18.0, 33.0), ('"results"', 18.0, 33.0), ('"group"', 8.0, 13.0),
     ('{ spark_checkpoint = ["{scratch}/c"] }\nready = "started"', 3.0, 0.0)],
)  # fmt: skip
def test_a_program_may_wait_for_its_windows_before_it_shows_that_it_reads(
    tmp_path: Path, progress: str, pace_s: float, closing_s: float
) -> None:
    """Windows of 10 s, and the 5 s between commits, or these alone; a checkpoint has the reads of each batch."""
    line = f"progress = {progress}\n" if progress else ""
    path = written(tmp_path, ("reference", f"{line}reference"), ('reach = "0s"', 'reach = "10s"'))
    resolved = check(build({"workload": str(path), "command": "sustain"}))
    assert saturation_probe.pace_us(resolved, 1e4, saturation_probe.PACE_S) == pytest.approx(pace_s * US)
    assert saturation_probe.closing_s(resolved) == closing_s


@pytest.mark.parametrize(
    ("reach", "more", "is_refused"),
    [
        ("55s", {}, False),
        ("56s", {}, True),
        ("56s", {"search": {"start_rate": "1k"}}, False),
        ("1h", {"command": "run"}, False),
    ],
)
def test_a_first_guess_needs_progress_within_minutes(
    tmp_path: Path, reach: str, more: dict[str, Any], is_refused: bool
) -> None:
    """With 5 s for a commit. A rate to start at needs no guess."""
    path = written(tmp_path, ('reach = "0s"', f'reach = "{reach}"'))
    values = {"workload": str(path), "command": "sustain", "load": {"duration": "2h"}, **more}
    with pytest.raises(InputError) if is_refused else nullcontext() as refusal:
        check(build(values), new_folder=False)
    assert refusal is None or [one.setting for one in refusal.value.problems] == ["search.start_rate"]


@pytest.mark.parametrize(
    ("unseen_s", "since_s", "drained_per_s"),
    [
        (0.0, 50.0, 10.0),
        (0.0, 44.0, None),
        (30.0, 119.0, None),
        (30.0, 125.0, 4.0),
    ],
)
def test_an_engine_is_far_behind_only_once_progress_must_have_moved(
    unseen_s: float, since_s: float, drained_per_s: float | None
) -> None:
    """A fresh engine is not warm before, and its last visible commit may be of long ago."""
    record = done_of([(1.0, 500)])
    clock = SimpleNamespace(now_us=lambda: START + round(since_s * US))
    resolved = SimpleNamespace(interval_s=0.0, unseen_s=unseen_s)
    conductor: Any = SimpleNamespace(testbed=SimpleNamespace(clock=clock), resolved=resolved)
    assert saturation_probe.drained_where_far_behind(conductor, record, 1e5) == drained_per_s


@pytest.mark.parametrize("state_copied", [False, True])
def test_more_may_wait_than_the_longest_interval_between_batches(state_copied: bool) -> None:
    """Or the engine could not take a second's events each second: a search once began at 70 % of its first step."""
    number, unit = trigger("auto", True, state_copied).split()
    assert float(number) / {"seconds": 1, "milliseconds": 1000}[unit] < saturation_probe.PACE_S


def test_a_stair_that_few_batches_call_a_little_short_is_climbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search began at a third of the engine's rate, because five batches said 87 % of a step it kept up with."""
    stairs = Stairs(monkeypatch, 0.87 * 8e5)
    assert stairs.climb(50e6).drained_per_s == pytest.approx(0.87 * 8e5)
    assert stairs.steps[-1][0] == 1.6e6  # not eight times: batches of seconds of that would be none that a trial has


@pytest.mark.parametrize(("capacity_per_s", "pace_s"), [(5e6, 3 * 5 / 6.4), (2e6, 1.5)])
def test_where_it_stays_no_more_waits_than_three_seconds_of_what_it_drains(
    monkeypatch: pytest.MonkeyPatch, capacity_per_s: float, pace_s: float
) -> None:
    """Half a step's at least. With batches of 20 million events an engine drained 4.1 M/s that sustained 6.4."""
    stairs = Stairs(monkeypatch, capacity_per_s)
    stairs.climb(50e6)
    assert (stairs.steps[-1][0], stairs.paces[-1]) == (6.4e6, pytest.approx(pace_s))
    assert set(stairs.paces[:-1]) == {saturation_probe.PACE_S}


@pytest.mark.parametrize(
    ("batches", "per_s"),
    [
        # The later half counts: from its first batch to its last, whose own events come after that.
        ([(0.0, 999), (1.0, 999), (4.0, 100), (5.0, 100), (6.0, 400), (8.0, 9999)], 150.0),
        # Too few in the later half: all of them.
        ([(0.0, 100), (2.0, 100), (4.0, 100), (6.0, 9999)], 50.0),
        # Too few at all: what was taken in the whole time.
        ([(1.0, 100), (7.0, 300)], 50.0),
        ([], 0.0),
    ],
)
def test_drained_is_what_batches_took_by_when_the_next_one_came(batches: Batches, per_s: float) -> None:
    """In events a second."""
    assert saturation_probe._drained(done_of(batches), 1e9) == pytest.approx(per_s)


@pytest.mark.parametrize(
    ("moves", "per_s"), [([(5.0, 500), (10.0, 100), (15.0, 300)], 40.0), ([(9.0, 500), (14.0, 100)], 20.0), ([], 0.0)]
)
def test_progress_that_is_seen_afterwards_covers_the_time_before_it(moves: Batches, per_s: float) -> None:
    """The first move also has what was read before the step."""
    assert saturation_probe._drained(done_of(moves, seconds=16.0), 1e9, unseen_s=5.0) == pytest.approx(per_s)


def test_each_partition_has_progress_of_its_own() -> None:
    """Two consumers of a group, which commit each 5 s and a tenth of a second after each other, seen twice or once."""
    record, other = (done_of([(each + at, 200) for each in (0.0, 5.0)], seconds=10.0) for at in (2.0, 2.1))
    # Moves of another consumer are batches of their own.
    record.trial_log.deliveries += [[replace(move, batch=move.batch + 100) for move in other.trial_log.deliveries[0]]]
    assert saturation_probe._drained(record, 1e9, unseen_s=5.0) == pytest.approx(80.0)
    record.trial_log.deliveries = [log[:1] for log in record.trial_log.deliveries]
    assert saturation_probe._drained(record, 1e9, unseen_s=5.0) == pytest.approx(40.0)


@pytest.mark.parametrize(
    ("moves", "unseen_s", "per_s"),
    [
        ([(4.0, 100), (4.1, 900), (4.2, 100), (8.0, 100)], 0.0, 1100 / 4.0),  # by batches, each counts from its read
        ([(7.0, 100), (7.1, 900)], 5.0, 100.0),  # moves close together say nothing: all of the step
        ([(5.0, 500), (10.0, 300)], 5.0, 60.0),
        (
            [(0.5, 500), (1.0, 300), (1.5, 300), (2.0, 9999)],
            0.0,
            11099 / 9.5,
        ),  # then it stood still, or worked on the last one
        ([(1.0, 500), (3.0, 300)], 2.0, 300 / 9.0),  # so did progress that is seen late
        ([(1.0, 9999), (6.0, 9999)], 5.0, 150.0),  # a backlog of earlier steps: no more than is offered
    ],
)
def test_drained_is_no_more_than_time_and_load_allow(moves: Batches, unseen_s: float, per_s: float) -> None:
    """In a step of 10 s."""
    assert saturation_probe._drained(done_of(moves, seconds=10.0), 150.0 if per_s == 150 else 1e9, unseen_s) == (
        pytest.approx(per_s)
    )


def test_a_ladder_asks_whether_progress_is_seen_late(monkeypatch: pytest.MonkeyPatch) -> None:
    stairs = Stairs(monkeypatch, 1e9)
    stairs.unseen_s = 5.0
    stairs.changed = lambda _: done_of([(5.0, 500), (10.0, 100), (15.0, 300)], seconds=16.0)
    assert stairs.climb(100.0).drained_per_s == pytest.approx(40.0)


def changed(parts: list[Delivery], **fields: Any) -> list[Delivery]:
    return [replace(part, **fields) for part in parts]


def test_only_what_was_drained_counts() -> None:
    """Not what is read again, by a second reader, or nothing at all; a batch of two partitions is one."""
    record = drained_at(100.0)
    log = record.trial_log.deliveries[0]
    nothing = [part for number, part in enumerate(log, 99) for part in changed([part], events=0, batch=number)]
    record.trial_log.deliveries = [log + changed(log, again=True) + changed(log, reader=1) + nothing]
    assert saturation_probe._drained(record, 1e9) == pytest.approx(100.0)
    record.trial_log.deliveries = [log, log]
    assert saturation_probe._drained(record, 1e9) == pytest.approx(200.0)


@pytest.mark.parametrize("late", [0, 1])
def test_a_batch_begins_with_the_first_of_its_parts(late: int) -> None:
    """The fifth batch came late to one of two partitions: what it and the next two took is of three seconds still."""
    record = drained_at(100.0)
    log = record.trial_log.deliveries[0]
    record.trial_log.deliveries = [log, log]
    record.trial_log.deliveries[late] = [
        replace(part, ingest_us=part.ingest_us + 900_000) if part.batch == 4 else part for part in log
    ]
    assert saturation_probe._drained(record, 1e9) == pytest.approx(200.0)


def test_the_slowest_query_says_what_a_job_drains() -> None:
    """One that has committed and never read has drained nothing."""
    record, slow = drained_at(300.0, query="fast"), drained_at(100.0, query="slow")
    record.trial_log.deliveries += slow.trial_log.deliveries
    assert saturation_probe._drained(record, 1e9) == pytest.approx(100.0)
    record.trial_log.commits = [Commit("idle", 0, "", START, START, 0, START, None, [])]
    assert saturation_probe._drained(record, 1e9) == 0.0
