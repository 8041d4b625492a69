"""bench/metrics/journal.py: the trials that it makes up are what a journal would get."""

import pytest

from bench.metrics.journal import CASES, GENERATORS, START_US, Case, empty, look
from streamgauge.core.clock import US


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_trials_go_well(case: Case) -> None:
    """All chunks, every batch read by each generator's reader and committed once, every process once a second."""
    seconds = 14
    trial_log = empty()
    for tick in range(2 * seconds):
        look(case, trial_log, tick)
    batches = seconds * US // case.batch_us
    assert [len(log) for log in trial_log.chunks] == [seconds * US // case.chunk_us] * GENERATORS
    assert [len(log) for log in trial_log.deliveries] == [batches] * GENERATORS
    assert len(trial_log.commits) == batches
    assert trial_log.committed_until() == START_US + batches * case.batch_us
    assert len(trial_log.usages) == 12 * seconds
