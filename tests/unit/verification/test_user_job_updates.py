"""Updates of user jobs: the values of each key at the ends of batches."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamgauge.core.schema import EVENT_TIME
from streamgauge.core.trial import TrialSpans
from streamgauge.verification import user_job_updates
from tests.unit.helpers_duckdb import duckdb_session
from tests.unit.verification.helpers_user_jobs import UPDATES, WINDOWS, Case, faults


def updates(trial: Case) -> list[pa.Table]:
    """After each batch, the values of all keys, as a running count gives them."""
    ends = trial.record.trial_log.batch_ends()
    return [trial.answer(UPDATES, ends[commit.query, commit.batch]) for commit in trial.record.trial_log.commits]


def test_updates_are_compared_at_every_batchs_end(job_case: Callable[..., Case]) -> None:
    """The last values of each key, as long as an answer of the reference is cheap."""
    trial = job_case(f'mode="update", keys="user_id", reference="{UPDATES}"')
    found = trial.verify(*updates(trial))
    assert faults(found) == {}
    assert found.expected == 20 * 100
    assert "last values of user_id at 20 of 20 batches' ends" in found.sentence


def test_updates_are_compared_at_a_few_ends_where_answers_are_dear(
    job_case: Callable[..., Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(user_job_updates, "COMPARISON_BUDGET_S", 0.0)
    trial = job_case(f'mode="update", keys="user_id", reference="{UPDATES}"')
    found = trial.verify(*updates(trial))
    assert faults(found) == {}
    assert found.expected == 4 * 100
    assert "last values of user_id at 4 of 20 batches' ends" in found.sentence


def added_to(rows: pa.Table, more: int, event_time: pa.Array | pa.ChunkedArray | None = None) -> pa.Table:
    """Updates whose count is so much greater, of another event time where that is given."""
    changed = rows.set_column(1, "n", pc.add(rows.column("n"), more))
    return changed if event_time is None else changed.set_column(2, EVENT_TIME, event_time)


def older(rows: pa.Table) -> pa.Table:
    return added_to(rows, 1_000_000, pc.subtract(rows.column(EVENT_TIME), 1))


def timeless(rows: pa.Table) -> pa.Table:
    return added_to(rows, 1_000_000, pa.nulls(len(rows), pa.int64()))


# What comes beside each batch's own rows, before or after them; how many of which fault; what the sentence says.
GARBAGE = [
    ("older by 1 us, after", lambda rows: [rows, older(rows)], {"extra": 2000, "wrong": 2000}, "beside another"),
    ("older by 1 us, before", lambda rows: [older(rows), rows], {"extra": 2000}, "beside another of their key"),
    ("without a time, before", lambda rows: [timeless(rows), rows], {"extra": 2000}, "without an event_time"),
    (
        "without a time, after", lambda rows: [rows, timeless(rows)], {"extra": 2000, "wrong": 2000},
        "2,000 came without an event_time, which the truth never lacks",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("beside", "expected", "message"), [each[1:] for each in GARBAGE], ids=[e[0] for e in GARBAGE])
def test_garbage_beside_each_update_is_extra(
    job_case: Callable[..., Case], beside: Callable[[pa.Table], list[pa.Table]], expected: dict[str, int], message: str
) -> None:
    """A batch owes one value of a key; the last is the one that arrived last, whatever time it claims."""
    trial = job_case(f'mode="update", keys="user_id", reference="{UPDATES}"')
    found = trial.verify(*[pa.concat_tables(beside(rows)) for rows in updates(trial)])
    assert faults(found) == expected
    assert message in found.sentence
    assert any(example["fault"] == "extra" for example in found.examples)


def test_a_last_batch_that_takes_values_back_is_wrong(job_case: Callable[..., Case]) -> None:
    """Alone or beside the right ones: of what a key had before, the last is no longer that with the newest events."""
    for alone in (True, False):
        trial = job_case(f'mode="update", keys="user_id", reference="{UPDATES}"')
        rows = updates(trial)
        back = added_to(rows[-6], 7)
        rows[-1] = back if alone else pa.concat_tables([rows[-1], back])
        found = trial.verify(*rows)
        assert faults(found) == {"extra": 100, "wrong": 100}
        assert {example["fault"] for example in found.examples} == {"extra", "wrong"}
        assert "before that of their key in an earlier batch" in found.sentence


@pytest.mark.parametrize(
    ("change", "found"),
    [
        # Right at the four ends that alone were compared once.
        (lambda rows, number: added_to(rows, int(number not in (4, 8, 13, 19))), {"wrong": 1600}),
        (lambda rows, number: pa.concat_tables([rows, rows.slice(0, int(number == 3))]), {"duplicate": 1}),
    ],
    ids=["wrong on the way", "twice"],
)
def test_faults_of_updates_are_counted(
    job_case: Callable[..., Case], change: Callable[[pa.Table, int], pa.Table], found: dict[str, int]
) -> None:
    trial = job_case(f'mode="update", keys="user_id", reference="{UPDATES}"')
    assert faults(trial.verify(*[change(rows, number) for number, rows in enumerate(updates(trial))])) == found


def test_updates_differ_by_their_window_too(job_case: Callable[..., Case]) -> None:
    text = WINDOWS.replace("\n", " ")
    trial = job_case(f'mode="update", keys="user_id", reference="{text}"')
    ends = trial.record.trial_log.batch_ends()
    answers = [trial.answer(WINDOWS, ends[commit.query, commit.batch]) for commit in trial.record.trial_log.commits]
    newest = [rows.filter(pc.equal(rows.column(0), pc.max(rows.column(0)))) for rows in answers]
    assert faults(trial.verify(*newest)) == {}


@pytest.mark.parametrize(
    ("measured_s", "expected"),
    [((5, 15), [4, 8, 13]), ((5, 16), [4, 9, 14]), ((5, 9), [4, 5, 7]), ((5, 7), [4, 5]), ((5, 6), [4]), ((5, 5), [])],
)
def test_moments_are_spread_over_the_measured_span(make: Any, measured_s: tuple[int, int], expected: list[int]) -> None:
    """Batch n reads up to second n + 1: the first and the last that end in the span, one between, and the very last."""
    record = make.story().record()
    measured_from_us, measured_to_us = (make.start + second * 1_000_000 for second in measured_s)
    spans = TrialSpans(make.start, measured_from_us, measured_to_us, record.spans.end_us)
    record = replace(record, spans=spans)
    inside = [(batch, make.start + (batch + 1) * 1_000_000) for batch in expected]
    assert user_job_updates.compared_batch_ends(record, 3) == [*inside, (19, None)]


def over_broker(trial: Case, lag_us: int = 300_000) -> list[pa.Table]:
    """Makes it a trial over a broker, in which partition 1 is read less far until the last batch; its updates."""
    experiment = trial.resolved.experiment.model_copy(update={"transport": "kafka"})
    trial.resolved = replace(trial.resolved, experiment=experiment)
    trial_log, tables = trial.record.trial_log, []
    log, plan = trial_log.deliveries[1], trial_log.plan
    log[:] = [
        replace(
            part, from_us=max(part.from_us - lag_us, plan.start_us),
            to_us=part.to_us - (lag_us if part is not log[-1] else 0),
        )
        for part in log
    ]  # fmt: skip
    for batch in range(len(log)):
        ends = [deliveries[batch].to_us for deliveries in trial_log.deliveries]
        counts = [plan.count_before(0, partition, end) for partition, end in enumerate(ends)]
        names = ["user_id", "event_time"]
        read = pa.Table.from_batches([plan.batch(0, each, 0, count, names) for each, count in enumerate(counts)])
        with duckdb_session() as connection:
            connection.register("purchases", read)
            tables.append(connection.sql(UPDATES).to_arrow_table())
    return tables


def test_updates_over_a_broker_are_of_what_their_batches_had_read(job_case: Callable[..., Case]) -> None:
    """Of each partition its own prefix, which no event time gives."""
    trial = job_case(f'mode="update", keys="user_id", reference="{UPDATES}"')
    tables = over_broker(trial)
    found = trial.verify(*tables)
    assert faults(found) == {}
    assert found.expected == 20 * 100
    tables[9] = tables[9].set_column(1, "n", tables[10].column("n"))
    assert faults(trial.verify(*tables))["wrong"] >= 90


def test_batches_of_a_broker_are_in_their_own_order(make: Any) -> None:
    """A batch may read only a partition that is behind, and so end before an earlier one."""
    record = make.story().record()
    for log in record.trial_log.deliveries:
        log[7] = replace(log[7], to_us=log[5].to_us)
    ends = user_job_updates.compared_batch_ends(record, 30, by_batch=True)
    assert ends == [*((batch, batch + 1) for batch in range(19)), (19, None)]
