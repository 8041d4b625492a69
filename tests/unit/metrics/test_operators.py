"""Rows of operators: the engine's counts of a trial made by rule, the driver's at both ends, and rows dropped late."""

from dataclasses import replace
from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.core.engine_reports import LATE_ROWS, BatchProgress, OperatorRows, SeriesSample
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import flow, source
from streamgauge.dataflow.nodes import Flow
from streamgauge.metrics import operators
from streamgauge.metrics.operators import late_rows, late_rows_warning
from streamgauge.metrics.trial_record import TrialRecord
from streamgauge.results.run import Operator

PURCHASES = source("purchases", Schema.from_types(user_id="int", price="int"))
HALVES = PURCHASES.where("price > 50", name="half").where("price > 75", name="quarter").sink("dear")
BATCHES = range(20)


def trial(make: Any, seconds: int = 20) -> TrialRecord:
    """1000 events in each batch of a second, of which the recorder took 250; from 5 s to 5 s before the end."""
    record = make.story(seconds=seconds).record()
    record.spans = replace(record.spans, measured_to_us=record.spans.start_us + (seconds - 5) * US)
    record.trial_log.sinks = ("dear",)
    record.trial_log.commits = [replace(commit, sink="dear", rows=250) for commit in record.trial_log.commits]
    return record


def counts(**gave: int) -> list[OperatorRows]:
    """The same of each batch."""
    return [OperatorRows("", batch, name, rows) for batch in BATCHES for name, rows in gave.items()]


def summed(flow_: Flow, rows: list[OperatorRows], record: TrialRecord) -> dict[str, Operator]:
    known = operators.operator_row_counts(flow_, rows, record.trial_log)
    return {one.name: one for one in operators.summaries(known, record.trial_log, record.spans)}


def test_each_operator_takes_in_what_the_one_before_it_gave(make: Any) -> None:
    """Ten batches of the measured span, a second apart: half of the rows go on, then half of those."""
    sums = summed(HALVES, counts(purchases=1000, half=500, quarter=250), trial(make))
    assert {name: (one.rows_in, one.rows_out, one.selectivity) for name, one in sums.items()} == {
        "purchases": (None, 10_000, None),
        "half": (10_000, 5000, 0.5),
        "quarter": (5000, 2500, 0.5),
    }
    assert {name: one.throughput_per_s for name, one in sums.items()} == pytest.approx(
        {"purchases": 1000, "half": 1000, "quarter": 500}
    )
    assert [one.lost for one in sums.values()] == [0, None, 0]


@pytest.mark.parametrize(
    ("rows", "lost"),
    [
        (counts(purchases=990, half=500, quarter=250), (100, 0)),
        (counts(purchases=1000, half=500, quarter=251), (0, 10)),
        ([OperatorRows("", batch, "purchases", 1010 if batch % 2 else 990) for batch in BATCHES], (0, None)),
        ([OperatorRows("", batch, "purchases", 990) for batch in BATCHES if batch != 8], (None, None)),
    ],
)
def test_rows_that_are_lost_at_an_edge_are_seen(
    make: Any, rows: list[OperatorRows], lost: tuple[int | None, int | None]
) -> None:
    """Ten of a batch that the driver delivered and the engine did not count; one that the recorder never got.

    A batch that is re-read counts once here and again there: what is lost is the difference over the span. Where one
    batch was not counted, what the others lost is not all of it.
    """
    sums = summed(HALVES, rows, trial(make))
    assert (sums["purchases"].lost, sums["quarter"].lost) == lost


def test_what_enters_and_leaves_is_the_drivers_count(make: Any) -> None:
    """Whatever an engine says of its edges, and where it says nothing there: as packed lowerings."""
    for gave in ({"purchases": 1, "half": 500, "quarter": 1}, {"half": 500}):
        sums = summed(HALVES, counts(**gave), trial(make))
        assert (sums["purchases"].rows_out, sums["half"].rows_in, sums["quarter"].rows_out) == (10_000, 10_000, 2500)
    assert (sums["purchases"].lost, sums["quarter"].lost) == (None, None)


def test_an_operator_of_which_nothing_is_known_has_no_figures(make: Any) -> None:
    """Between two that are: its neighbours have what they have."""
    sums = summed(HALVES, [], trial(make))
    half = sums["half"]
    assert (half.rows_in, half.rows_out, half.selectivity, half.lost) == (10_000, None, None, None)
    assert half.throughput_per_s == pytest.approx(1000)
    assert (sums["quarter"].rows_in, sums["quarter"].rows_out, sums["quarter"].selectivity) == (None, 2500, None)


@pytest.mark.parametrize(("gave", "rows"), [({"half": 500}, 10_000), ({}, None)])
def test_an_uncounted_select_gives_as_many_rows_as_it_reads(make: Any, gave: dict[str, int], rows: int | None) -> None:
    """Row by row; in batches of which the engine reported nothing at all it is unknown what passed there."""
    seen = (
        PURCHASES.select(price="price", name="seen").where("price > 50", name="half").where("price > 75").sink("dear")
    )
    sums = summed(seen, counts(**gave), trial(make))
    assert (sums["seen"].rows_in, sums["seen"].rows_out, sums["half"].rows_in) == (10_000, rows, rows)


def test_re_reads_and_second_readers_count_once(make: Any) -> None:
    """A query that reads a stream at two places, one of them twice over."""
    record = trial(make)
    for log in record.trial_log.deliveries:
        log += [replace(part, reader=1, shared=True) for part in log] + [replace(part, again=True) for part in log]
    assert summed(HALVES, counts(half=500), record)["purchases"].rows_out == 10_000


def test_a_low_throughput_needs_twenty_batches(make: Any) -> None:
    """Of 30, where one in ten takes a third of the rows, the 5th percentile is that third."""
    assert summed(HALVES, counts(half=500), trial(make))["half"].throughput_per_s_p5 is None
    record = trial(make, seconds=40)
    rows = [OperatorRows("", batch, "half", 150 if batch % 10 == 0 else 500) for batch in range(40)]
    sums = summed(HALVES, rows, record)["quarter"]
    assert sums.rows_in == 3 * (150 + 9 * 500)
    assert sums.throughput_per_s_p5 == pytest.approx(150)


def test_operators_of_a_second_query_stand_once(make: Any) -> None:
    """Two queries do the same work on a source: its figures are the first one's, and the table has both."""
    both = flow(HALVES, PURCHASES.running(keys="user_id", n="count(*)").sink("counts"))
    record = trial(make)
    for log in record.trial_log.deliveries:
        log[:] = [replace(part, query=query) for part in log for query in ("q0", "q1")]
    record.trial_log.commits = [
        replace(commit, query=query, sink=sink)
        for commit in record.trial_log.commits
        for query, sink in (("q0", "dear"), ("q1", "counts"))
    ]
    rows = [OperatorRows("q0", batch, "half", 500) for batch in BATCHES]
    sums = summed(both, rows, record)
    assert sums["purchases"].rows_out == 10_000
    assert sums["running"].rows_out == 2500
    table = operators.table(operators.operator_row_counts(both, rows, record.trial_log))
    assert table.num_rows == 20 * (3 + 2)
    assert set(table["query"].to_pylist()) == {"q0", "q1"}


def test_batches_of_a_trial_before_are_left_out(make: Any) -> None:
    """A warm test bed's engine counts on; late reports of earlier batches belong to no trial."""
    rows = [OperatorRows("", batch, "half", 500) for batch in range(-40, 20)]
    table = operators.table(operators.operator_row_counts(HALVES, rows, trial(make).trial_log))
    assert set(table["batch_id"].to_pylist()) == set(BATCHES)


def test_idle_batches_count_with_their_time(make: Any) -> None:
    """Behind what gives rows in every fourth batch alone: its throughput is a quarter, and its 5th percentile none."""
    record = trial(make, seconds=40)
    rows = [OperatorRows("", batch, "half", 500 if batch % 4 == 0 else 0) for batch in range(40)]
    sums = summed(HALVES, rows, record)["quarter"]
    assert sums.rows_in == 7 * 500
    assert sums.throughput_per_s == pytest.approx(sums.rows_in / 30)
    assert sums.throughput_per_s_p5 == 0


def test_a_source_that_stands_still_has_idle_seconds(make: Any) -> None:
    """The driver delivered nothing in half of the batches: it knows that, and so it is a 0."""
    record = trial(make, seconds=40)
    for log in record.trial_log.deliveries:
        log[:] = [replace(part, events=0) if part.batch % 2 else part for part in log]
    sums = summed(HALVES, [], record)["purchases"]
    assert (sums.throughput_per_s, sums.throughput_per_s_p5) == (pytest.approx(500), 0)


def test_a_stream_that_a_batch_did_not_read_gave_nothing(make: Any) -> None:
    """Beside another one that it did read."""
    other = source("ads", Schema.from_types(user_id="int")).select(user_id="user_id", name="seen")
    both = PURCHASES.select(user_id="user_id", name="bought").union(other, name="all").sink("dear")
    assert summed(both, [], trial(make))["ads"].rows_out == 0


def test_figures_are_of_the_batches_that_are_known(make: Any) -> None:
    """Three of thirty are not, as where Spark forgot them: they are counted, and the seconds that they reach into are
    in no figure. What may have been lost in them nobody knows.
    """
    record = trial(make, seconds=40)
    rows = [
        OperatorRows("", batch, name, number)
        for batch in range(40)
        if batch not in (10, 11, 20)
        for name, number in (("half", 500), ("quarter", 250 if batch % 9 else 0))
    ]
    sums = summed(HALVES, rows, record)
    half, quarter = sums["half"], sums["quarter"]
    assert (half.batches, half.batches_unknown, quarter.batches_unknown) == (30, 3, 3)
    assert (half.rows_in, half.rows_out, half.selectivity) == (30_000, 13_500, 0.5)
    assert (half.throughput_per_s, half.throughput_per_s_p5) == (pytest.approx(1000), pytest.approx(1000))
    assert (quarter.throughput_per_s, quarter.throughput_per_s_p5) == (pytest.approx(500), pytest.approx(500))
    assert (quarter.lost, sums["purchases"].batches_unknown) == (None, 0)


def test_throughput_is_rows_by_time_and_not_the_mean_of_batches(make: Any) -> None:
    """Every second batch is long and full, the others are short and nearly empty."""
    record = trial(make)
    late = {batch: 900_000 if batch % 2 else 0 for batch in BATCHES}
    record.trial_log.commits = [
        replace(commit, committed_us=commit.committed_us + late[commit.batch]) for commit in record.trial_log.commits
    ]
    rows = [OperatorRows("", batch, "half", 1000 if batch % 2 else 100) for batch in BATCHES]
    assert summed(HALVES, rows, record)["quarter"].throughput_per_s == pytest.approx(5 * 1100 / 10)


def test_a_batch_ends_where_its_first_sink_has_it(make: Any) -> None:
    """Of two sinks, the second of which gets the last batch of the span 5 s later."""
    record = trial(make)
    commits = record.trial_log.commits
    record.trial_log.commits = [
        *commits, *(replace(each, sink="other", committed_us=each.committed_us + 5 * US) for each in commits[14:15])
    ]  # fmt: skip
    assert summed(HALVES, counts(half=500), record)["quarter"].throughput_per_s == pytest.approx(500)


def test_batches_that_took_no_time_are_in_no_rate(make: Any) -> None:
    """Committed with the one before, or ahead of it: nobody knows how long it took."""
    record = trial(make)
    before = record.trial_log.commits[9].committed_us
    for early_us in (0, US // 2):
        record.trial_log.commits[10] = replace(record.trial_log.commits[10], committed_us=before - early_us)
        sums = summed(HALVES, counts(half=500), record)["quarter"]
        assert sums.rows_in == 5000
        assert sums.throughput_per_s == pytest.approx(9 * 500 / (10 + early_us / US))


def test_only_what_was_read_in_the_span_is_summed(make: Any) -> None:
    """From its begin, which belongs to the batch before, to its end, which belongs to the last."""
    rows = [OperatorRows("", batch, "half", 10**batch if batch < 17 else 0) for batch in BATCHES]
    assert summed(HALVES, rows, trial(make))["quarter"].rows_in == sum(10**batch for batch in range(5, 15))


START = 1_700_000_000 * US


def test_the_last_report_of_each_batch_counts() -> None:
    """Without those of earlier trials; an engine that reports none is not said to have dropped none."""
    reports = [
        BatchProgress("a", 1, START - 1, late_rows=7), BatchProgress("a", 2, START, late_rows=1),
        BatchProgress("a", 2, START, late_rows=2), BatchProgress("b", 2, START + 1, late_rows=3),
    ]  # fmt: skip
    assert late_rows(reports, [], START) == 5
    assert late_rows([BatchProgress("a", 1, START)], [], START) is None
    assert late_rows([BatchProgress("a", 1, START, late_rows=0)], [], START) == 0


def test_a_series_of_late_rows_is_counted_from_the_begin_of_the_trial() -> None:
    """It goes on from earlier trials. A job that began later counts from 0."""
    series = [SeriesSample(START + at, LATE_ROWS, "rows", value) for at, value in ((-2, 1), (-1, 3), (0, 3), (5, 9))]
    other = SeriesSample(START + 6, "busy share", "%", 50.0)
    assert late_rows([], [*series, other], START) == 6
    assert late_rows([], series[2:], START) == 9
    assert late_rows([], [other], START) is None


def test_the_delay_is_the_skew_rounded_up(make: Any) -> None:
    """To tenths of a second, and more than the present delay; a user's job sets it by its own watermark."""
    record = make.story().record()
    log = record.trial_log.deliveries[1]
    log[:] = [replace(part, from_us=max(part.from_us - 730_000, START), to_us=part.to_us - 730_000) for part in log]
    facts = late_rows_warning(1234, record, is_user_job=True).facts
    assert facts == {"rows": 1234, "skew_s": 0.728, "delay_s": 0.8, "is_user_job": True}
    facts = late_rows_warning(1234, record, is_user_job=False, delay_us=2 * US).facts
    assert (facts["skew_s"], facts["delay_s"]) == (2.0, 2.1)
