"""Verification of trials that ended early: what is owed of what was committed, and what is not known to be."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamgauge.core.clock import US
from streamgauge.core.schema import EVENT_TIME, WINDOW_END
from streamgauge.verification import expected as module
from streamgauge.verification import sink_comparison
from streamgauge.verification.expected import verify
from tests.unit.dataflow.test_reach import PassThrough
from tests.unit.helpers_answers import (
    FIELDS,
    PAIRS,
    PURCHASES,
    ROWS,
    START,
    UPDATES,
    WINDOWS,
    Case,
    last_before,
    latency_of,
    without,
)

DEAD = {"drained": False, "engine_failed": "the engine died"}


@pytest.mark.parametrize("cut_us", [7 * US, 10 * US, 9_999_000])
def test_a_watermark_is_that_of_the_stream_that_is_behind(case: Callable[..., Case], make: Any, cut_us: int) -> None:
    """Of its partition that is ahead, and in whole milliseconds: what an engine is sure to have come to."""
    trial = case(PAIRS)
    trial.record.trial_log.plan = make.plan(rate=710.0, streams=2)
    behind, ahead = sorted(last_before(trial, START + cut_us, [stream]) for stream in (0, 1))
    assert behind // 1000 < ahead // 1000
    assert behind % 1000
    assert sink_comparison._watermark_us(trial.record.trial_log.plan, START + cut_us) == behind // 1000 * 1000


def test_a_window_that_had_not_ended_is_no_lower_bound(case: Callable[..., Case], make: Any) -> None:
    """Its results were not late yet when the trial ended: at 9.5 s only windows until 8 s were."""
    trial = case(WINDOWS, deadline_us=START + 9_500_000, **DEAD)
    trial.receive(make, windows=[])
    rows = trial.answer()
    ends = pc.cast(rows.column(WINDOW_END), pa.int64()).to_numpy()
    ended = (ends <= START + 9_500_000) & (rows.column(EVENT_TIME).to_numpy() >= START + 5 * US)
    found = latency_of(verify(trial.resolved, trial.record))
    assert found.count == found.lower_bounds == np.count_nonzero(ended) > 0
    assert found.min >= 1_500_000


@pytest.mark.parametrize(("odd", "owed"), [(None, {"missing": 1}), (4, {"missing": 1}), (9, {})])
def test_updates_of_what_was_not_committed_are_not_missing(
    case: Callable[..., Case], make: Any, odd: int | None, owed: dict[str, int]
) -> None:
    """Ten batches were: the last update of each of their keys is owed where it is known, and nothing later.

    `odd`: the batch whose readers ended at different times.
    """
    trial = case(UPDATES, **DEAD)
    log = trial.record.trial_log.deliveries[0]
    for place, part in enumerate(log):
        if part.batch == odd:
            log[place] = replace(part, to_us=part.to_us - 1000)
    tables = trial.updates()[:10]
    assert trial.faults(make, updates=tables) == {}
    assert trial.faults(make, updates=[*tables[:9], without(tables[9], 50)]) == owed


def test_updates_that_never_came_are_lower_bounds(case: Callable[..., Case], make: Any) -> None:
    """Ten batches came before the engine died; of what was offered after them each key has one latency at least."""
    trial = case(UPDATES, **DEAD)
    found = latency_of(trial.verified(make, updates=trial.updates()[:10]))
    assert found.lower_bounds == 100
    assert found.max >= trial.record.deadline_us - (START + 15 * US)


@pytest.mark.parametrize(("reach", "held_us"), [("3s", 3 * US), (None, None)])
def test_how_long_a_process_holds_results_back_is_what_it_says(reach: str | None, held_us: int | None) -> None:
    """Where it does not say, nothing of a trial that ended early is known to be owed."""
    gathered = PURCHASES.process(PassThrough, gives=FIELDS, keys="user_id", identity="user_id", reach=reach).sink("all")
    assert module._held_us(gathered) == held_us
    assert module._held_us(ROWS) == 0


def test_a_joins_result_counts_from_the_last_delivery_of_its_window(case: Callable[..., Case], make: Any) -> None:
    """Partitions are read one after the other: a pair could not be made before the second one was."""
    trial = case(PAIRS)
    later = [replace(part, ingest_us=part.ingest_us + 7000) for part in trial.record.trial_log.deliveries[1]]
    trial.record.trial_log.deliveries[1] = later
    ends = np.array([START + 4 * US, START + 2 * US], np.int64)
    rule: Any = module.rule_of(trial.resolved, trial.record)
    assert rule.window_ingest_time(ends).tolist() == (ends + 12_000).tolist()
