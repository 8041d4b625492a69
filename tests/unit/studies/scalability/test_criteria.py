"""Whether a trial sustained its load: by the growth of its lag, or by the verdict of its run."""

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from streamgauge.artifacts import series_files
from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.results.codes import LagGrowth, WarningCode
from streamgauge.results.run import Caution
from streamgauge.results.scalability import ScaleCell
from streamgauge.results.verdict import Check
from streamgauge.studies.scalability.criteria import LAG_GROWTH_MAX, Growth, end_s, judge, lag_growth

SPAN_S = 360
SEEDS = 100
FAILED_SHARE_MAX = 0.05
"""By the interval a steady engine exceeds the limit in 2.5 % of trials."""
AT_ONCE = {"interval_s": 0.0, "busy": 0.5}
"""Triggers as soon as the batch before has ended, so that a long batch makes the next one long."""


def series(lags: Sequence[float | None], at_commits: Sequence[float | None] | None = None, warmup: int = 3) -> pa.Table:
    """A span with these lags at the end of each second, and right after the last commit in it."""
    phases = ["warm-up"] * warmup + ["measured"] * len(lags) + ["tail"]
    ends = {
        "lag_events_mean": lags,
        "lag_at_commit_mean": [None] * len(lags) if at_commits is None else at_commits,
    }
    others = {
        field.name: pa.array(range(len(phases)), field.type)
        if not field.nullable
        else pa.nulls(len(phases), field.type)
        for field in series_files.SCHEMA
        if field.name not in ("phase", *ends)
    }
    columns = {name: pa.array([9e9] * warmup + [*values] + [9e9], pa.float64()) for name, values in ends.items()}
    return pa.table({**others, "phase": phases, **columns}).select(series_files.SCHEMA.names)


def micro_batches(
    rate_per_s: float, seed: int, interval_s: float = 1.0, fixed_s: float = 0.2, busy: float = 0.3, noise: float = 0.1
) -> pa.Table:
    """An engine that takes at each trigger what is due, and commits it when it is done.

    A batch takes `fixed_s`, and `busy` of the time of the events that it takes, both within `noise`. Above 1 the
    engine falls behind. Its first trigger is at any time within an interval.
    """
    chance = random.Random(seed)
    now, taken = -60.0 - chance.random() * max(interval_s, 1.0), -61.0 - interval_s
    commits: list[tuple[float, float]] = []  # (when, event time up to which it was committed)
    while now < SPAN_S:
        since, taken = now - taken, now
        took = (fixed_s + busy * since) * max(0.1, chance.gauss(1, noise))
        commits.append((now + took, taken))
        now += max(interval_s, took)
    times = [when for when, _ in commits]
    ends: list[float | None] = []
    at_commits: list[float | None] = []
    for second in range(SPAN_S):
        earlier, number = (bisect_left(times, when) for when in (second, second + 1))  # commits before each time
        when, until = commits[number - 1]
        ends.append(rate_per_s * (second + 1 - until) if number else rate_per_s * 60)
        at_commits.append(rate_per_s * (when - until) if number > earlier else None)
    return series(ends, at_commits)


def growth_of(table: Any, span_s: float = SPAN_S, end: int = 5) -> Any:
    """`Growth`, or a remark where it is unknown."""
    return lag_growth(table, span_s, end)


def is_failed(growth: Growth) -> bool:
    return growth.low >= LAG_GROWTH_MAX


@pytest.mark.parametrize(
    "engine",
    [{}, {"interval_s": 4.0}, {"interval_s": 0.7, "noise": 0.3}, pytest.param(AT_ONCE, marks=pytest.mark.long)],
)
def test_a_steady_engine_is_rarely_failed(engine: dict[str, float]) -> None:
    """At the paper's greatest rate, at any phase of its batches: chance alone is never taken for growth."""
    grown = [growth_of(micro_batches(131_072, seed, **engine)) for seed in range(SEEDS)]
    assert sum(map(is_failed, grown)) <= FAILED_SHARE_MAX * SEEDS
    assert sum(growth.low <= 0 <= growth.high for growth in grown) >= (1 - 2 * FAILED_SHARE_MAX) * SEEDS


@pytest.mark.parametrize("rate_per_s", [1000, 131_072])
@pytest.mark.parametrize("engine", [{"busy": 1.02}, {"busy": 1.1}, {"busy": 1.05, "noise": 0.05}])
def test_an_engine_that_falls_behind_is_failed(rate_per_s: float, engine: dict[str, float]) -> None:
    """It needs longer for the events than they took to come, at any phase of its batches."""
    assert all(is_failed(growth_of(micro_batches(rate_per_s, seed, **engine))) for seed in range(20))


@pytest.mark.parametrize(("records", "failed"), [(99, False), (101, True), (5000, True)])
def test_a_steady_growth_is_known_without_scatter(records: float, failed: bool) -> None:
    """The windows of both ends are shorter than the span, and the growth is that of the whole span."""
    lags = [1000 + records * second / SPAN_S for second in range(SPAN_S)]
    growth = growth_of(series(lags, lags))
    assert growth.records == pytest.approx(records)
    assert growth.high - growth.low == pytest.approx(0, abs=1e-6)
    assert is_failed(growth) is failed


def test_scatter_above_the_limit_leaves_it_open() -> None:
    """And is reported."""
    lags: list[float | None] = [5000.0 if second % 2 else 15_000.0 for second in range(SPAN_S)]
    growth = growth_of(series(lags, lags))
    assert growth.low < LAG_GROWTH_MAX <= growth.high
    assert growth.scatter == pytest.approx(5000, rel=0.05)


def test_the_ends_of_seconds_do_not_matter_where_there_are_commits() -> None:
    """They are another phase at each second."""
    saw_tooth = [1e6 * (second * 0.37 % 1) for second in range(SPAN_S)]
    assert growth_of(series(saw_tooth, [50.0] * SPAN_S)) == (0.0, 0.0, 0.0, 0.0)


TOOTH = [10.0, 40.0, 20.0, 30.0]


@pytest.mark.parametrize(
    ("table", "span_s", "end", "records"),
    [
        # Within one batch interval; a second sampled alone would show a difference that is none.
        (series(TOOTH * 5), 20, 4, 0),
        (series([10.0, *TOOTH * 5]), 20, 4, 0),
        (series([n * 30 + one for n, one in enumerate(TOOTH * 5)]), 20, 4, 16 * 30),
        (series([30.0] * 4 + [10.0] * 12 + [30.0] * 4), 20, 4, 0),
        (series(TOOTH * 5), 20, 1, 20),
        # An extension of the planned span does not count.
        (series([5.0] * 10 + [500.0] * 5), 10, 1, 0),
        (series([5.0] * 15, [5.0] * 10 + [500.0] * 5), 10, 1, 0),
        # An end grows until it has enough commits, because long batches need longer ends.
        (series([0.0] * SPAN_S, [7.0 if second % 20 == 0 else None for second in range(SPAN_S)]), SPAN_S, 5, 0),
    ],
)
def test_without_commits_the_least_lag_of_each_end_counts(table: Any, span_s: float, end: int, records: float) -> None:
    assert growth_of(table, span_s, end).records == records


RARE: list[float | None] = [None if second % 90 else 7.0 for second in range(SPAN_S)]


@pytest.mark.parametrize(
    ("table", "span_s", "code"),
    [
        (series([5.0] * 9), 10, LagGrowth.SPAN_INCOMPLETE),
        (series([5.0] * 9 + [None]), 10, LagGrowth.SPAN_INCOMPLETE),
        (series([5.0] * 10, [None] * 8 + [1.0, 2.0]), 10, LagGrowth.TOO_FEW_COMMITS),
        # An end grows at most to half of the span.
        (series([0.0] * SPAN_S, RARE), SPAN_S, LagGrowth.TOO_FEW_COMMITS),
    ],
)
def test_a_growth_that_cannot_be_known_has_a_reason(table: Any, span_s: float, code: LagGrowth) -> None:
    """A span that was cut short, an unknown lag, and batches that are too few."""
    assert growth_of(table, span_s, 1 if span_s == 10 else 5).code == code


def test_an_end_has_room_for_three_batches() -> None:
    """And at least five seconds."""
    assert (end_s(0.0), end_s(1.0), end_s(4.0), end_s(7.5)) == (5, 5, 12, 23)


@pytest.fixture
def folder(make_run: Callable[..., Path]) -> RunFolder:
    return RunFolder.open(make_run("one", seed=1))


def store(folder: RunFolder, lags: Any, verdict: Any = "sustained", *cautions: Caution, **states: Any) -> None:
    """The run of `folder`, with these lags and the states of its checks."""
    checks = tuple(
        Check(name=name, value=1, limit=0, unit="rows", ok=state == "ok", state=state, sentence=f"{name} {state}")
        for name, state in {"connected": "ok", "answers": "ok", **states}.items()
    )
    result = folder.read_result().warned(*cautions)
    judged = result.verdict.model_copy(update={"value": verdict, "checks": checks})
    folder.write_result(result.model_copy(update={"verdict": judged}))
    folder.write_series(lags)


@pytest.mark.parametrize(
    ("verdict", "checks", "lags", "outcome"),
    [
        ("sustained", {}, [50.0] * 10, "sustained"),
        ("not_sustained", {"backlog_trend": "failed"}, [50.0] * 5 + [149.0] * 5, "sustained"),
        ("sustained", {}, [50.0] * 5 + [150.0] * 5, "not_sustained"),
        ("undecided", {"evidence": "undecided"}, [50.0] * 10, "sustained"),
        ("not_sustained", {"answers": "failed"}, [50.0] * 10, "not_sustained"),
        ("undecided", {"answers": "not_judged"}, [50.0] * 10, "undecided"),
        ("not_sustained", {"connected": "failed"}, [50.0] * 10, "not_sustained"),
        ("not_sustained", {"backlog_trend": "failed"}, [50.0] * 4, "not_sustained"),
        ("sustained", {}, [50.0] * 4, "undecided"),
        ("invalid", {"driver": "invalid"}, [50.0] * 10, "invalid"),
    ],
)
def test_the_growth_decides_where_answers_are_right(
    folder: RunFolder, verdict: Any, checks: dict[str, str], lags: list[float | None], outcome: str
) -> None:
    """The run's own slope does not; a dead system, wrong answers and a failed driver do."""
    store(folder, series(lags), verdict, **checks)
    assert judged(folder.path, verdict=verdict).outcome == outcome
    assert judged(folder.path, "slope", verdict=verdict).outcome == verdict


def judged(run: Path, criterion: str = "ehrenstein", span_s: float = 10, **figures: Any) -> ScaleCell:
    """A trial with these figures by a criterion."""
    cell = ScaleCell(number=1, resources=1, load=1, repetition=1, outcome=figures["verdict"], **figures)
    return judge(cell, criterion, run, span_s, 0.0)


def test_an_interval_across_the_limit_is_undecided(folder: RunFolder) -> None:
    """With the scatter that was seen, and what decides it."""
    lags: list[float | None] = [5000.0 if second % 2 else 15_000.0 for second in range(60)]
    store(folder, series(lags, lags))
    cell = judged(folder.path, span_s=60, verdict="sustained")
    assert (cell.outcome, cell.lag_growth is None) == ("undecided", False)
    assert "scatters by 5,477 records. Use a longer --duration, a lower rate or --criterion slope" in cell.sentence


@pytest.mark.parametrize(("verdict", "outcome"), [("sustained", "undecided"), ("not_sustained", "not_sustained")])
def test_a_lag_that_is_not_known_cannot_decide(folder: RunFolder, verdict: Any, outcome: str) -> None:
    """A program that commits no offsets: everything due counts as its lag. Its run may still have failed."""
    caution = Caution(WarningCode.LAG_UNKNOWN, "has committed no offset")
    store(folder, series([1e6 * second for second in range(10)]), verdict, caution)
    cell = judged(folder.path, verdict=verdict)
    assert (cell.outcome, cell.lag_growth) == (outcome, None)
    assert cell.sentence.startswith("the lag is unknown, because the program commits no offsets")


def test_a_trial_that_never_started_is_invalid() -> None:
    """It has no folder to look into."""
    assert judged(Path("none"), verdict="invalid").outcome == "invalid"
