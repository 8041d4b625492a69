"""studies/compare: differences between two groups of runs, their direction, and what makes them incomparable."""

from typing import Any

import pytest

from streamgauge.report.documents import comparison as comparison_document
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.run import Verification
from streamgauge.studies.compare.compare import compare
from tests.unit.studies.compare.helpers_compare import Make, Three, asked, figure


def test_a_planted_slowdown_is_found_in_single_runs(make_run: Make) -> None:
    """Two runs of forty seconds: 20 % more latency is worse, by an interval that holds it."""
    comparison = compare(str(make_run("a", 1)), str(make_run("b", 2, slower=1.2)))
    p50 = figure(comparison, "event_time_p50")
    assert (p50.says, p50.method) == ("worse", "seconds")
    assert 0 < p50.low < 0.2 < p50.high < 0.35
    assert any("one run a side" in warning for warning in comparison.warnings)


def test_a_planted_slowdown_is_found_over_runs(three: Three) -> None:
    """Three a side: a rate 10 % lower and latency 10 % higher are found, and what is equal is not."""
    comparison = compare(three("a", 10), three("b", 20, slower=1.1, rate=9e4))
    for name, planted in (("ingested", -0.1), ("event_time_p99", 0.1)):
        one = figure(comparison, name)
        assert (one.says, one.method) == ("worse", "runs"), name
        assert one.difference == pytest.approx(planted, abs=0.04)
        assert len(one.a_runs) == len(one.b_runs) == 3
    assert figure(comparison, "event_time_p99").label == "event time, mean of the runs' p99"
    assert (figure(comparison, "ingested").label, figure(comparison, "event_time_mean").label) == (
        "ingested",
        "event time mean",
    )
    assert figure(comparison, "memory").says == "no_difference"
    assert (comparison.not_the_same, comparison.kind) == ((), "run")


@pytest.mark.parametrize("seed", [30, 40, 50])
def test_equal_sides_differ_in_nothing(three: Three, seed: int) -> None:
    """The same made-up engine on both sides: the interval holds 0."""
    comparison = compare(three("a", seed), three("b", seed + 5))
    for one in (figure(comparison, "event_time_p50"), figure(comparison, "ingested")):
        assert one.low <= 0.01
        assert one.high >= -0.01


def test_rates_that_were_kept_up_with_make_no_side_better(make_run: Make) -> None:
    """They say what was requested; the difference and its interval stand, and other figures are compared as ever."""
    comparison = compare(str(make_run("a", 1, slower=1.3)), str(make_run("b", 2, rate=5e4, offered=5e4)))
    one = figure(comparison, "ingested")
    assert (one.says, one.difference, one.low is None) == ("unknown", pytest.approx(-0.5, abs=0.01), False)
    assert "only say what was asked" in one.reason
    assert figure(comparison, "event_time_p50").says == "better"
    *_, last = comparison_document.sentences(comparison)
    assert "1 of" in last
    assert last.endswith("figures do not show which side is better.")


def test_of_two_workloads_neither_is_better(make_run: Make) -> None:
    """A rate of another question says nothing; user jobs are named after their files, and may ask the same."""
    for files, says in (({}, set()), ({"job.py": "0" * 64}, {"better", "worse"})):
        a = make_run(f"a{len(files)}", 1, slower=1.3, job_files=files)
        comparison = compare(str(a), str(make_run(f"b{len(files)}", 2, rate=5e4, workload="filter", job_files=files)))
        assert {one.says for one in comparison.figures} & {"better", "worse"} == says
        assert ("workloads differ" in figure(comparison, "ingested").reason) is not bool(files)
        assert comparison_document.headline(comparison).endswith("no figure shows which side is better") is not bool(
            files
        )


def test_one_against_several_borrows_the_spread(make_run: Make, three: Three) -> None:
    """A single run has no spread of its own; that of the other side stands for it, and it is reported."""
    comparison = compare(str(make_run("single", 1)), three("b", 20))
    assert figure(comparison, "event_time_p50").method == "runs"
    assert any("single run" in warning for warning in comparison.warnings)


def test_a_figure_that_is_missing_is_unknown(make_run: Make) -> None:
    """A percentile that one run cannot carry has no difference, and the run is named."""
    few = Latencies(event_time_us=Latency(p50=2e5, count=10, effective_count=10))
    p99 = figure(compare(str(make_run("a", 1)), str(make_run("b", 2, latency=few))), "event_time_p99")
    assert (p99.says, p99.difference, p99.method) == ("unknown", None, "none")
    assert "B: 10 independent results are too few for p99 (b)" in p99.reason


def test_results_that_never_came_leave_an_end_open(make_run: Make) -> None:
    """B's p99 is at least what it says, so its interval has no upper end; its p50 is not touched."""
    late = Latencies(event_time_us=Latency(p50=2e5, p99=6e5, count=8000, effective_count=8000, lower_bounds=100))
    comparison = compare(str(make_run("a", 1)), str(make_run("b", 2, latency=late)))
    assert figure(comparison, "event_time_p99").high is None
    assert figure(comparison, "event_time_p50").high is not None


def test_wrong_answers_are_counted(make_run: Make) -> None:
    """A count of what was compared is no sample: one wrong row is one too many."""
    wrong = Verification(judged=True, independent=True, reference="DuckDB", expected=9, matched=8, wrong=1)
    one = figure(compare(str(make_run("a", 1)), str(make_run("b", 2, verification=wrong))), "wrong_answers")
    assert (one.difference, one.says, one.method) == (1.0, "worse", "counted")
    unjudged = figure(compare(str(make_run("c", 1)), str(make_run("d", 2, verification=None))), "wrong_answers")
    assert unjudged.says == "unknown"


TUNED: dict[str, Any] = {"experiment": asked()}
IDIOMATIC = {"tuning": "idiomatic", "experiment": asked(tuning="idiomatic")}
OLD = {"experiment": {name: value for name, value in TUNED["experiment"].items() if name != "tuning"}}


@pytest.mark.parametrize(
    ("of_a", "of_b", "differences"),
    [
        # A seed on both sides is none; load.rate and load.seed are compared below.
        (
            {},
            {"isolation": "pinned", "settings": {"spark.sql.shuffle.partitions": "8"},
             "environment": {"cpu_model": "another", "cpus": 2}, "experiment": asked(load={"rate": "120k", "seed": 2})},
            {"settings.spark.sql.shuffle.partitions": (("2",), ("8",)), "isolation": (("shared",), ("pinned",)),
             "environment.cpu_model": (("made up",), ("another",)), "load.rate": None, "load.seed": None},
        ),
        # A profile once, by name; results from before there were profiles are of `tuned`.
        (TUNED, IDIOMATIC, {"tuning": (("tuned",), ("idiomatic",))}),
        (TUNED, OLD, {}),
        # Versions of a job, by what is in its files, as they have one name.
        (
            {"job_files": {"my_job.py": "a" * 64}}, {"job_files": {"my_job.py": "b" * 64}},
            {"job_files.my_job.py": ((f"SHA-256 {'a' * 12}",), (f"SHA-256 {'b' * 12}",))},
        ),
        # Spark's warehouse lies where the command was given, and neither reads nor writes anything of ours.
        ({"settings": {"spark.sql.warehouse.dir": "a"}}, {"settings": {"spark.sql.warehouse.dir": "b"}}, {}),
    ],
)  # fmt: skip
def test_what_is_not_the_same_is_listed(make_run: Make, of_a: Any, of_b: Any, differences: dict[str, Any]) -> None:
    """Settings, isolation, machine and load that differ stand in the answer."""
    comparison = compare(str(make_run("a", 1, **of_a)), str(make_run("b", 2, **of_b)))
    sides_of = {one.setting: (one.a, one.b) for one in comparison.not_the_same}
    assert {name: sides if differences.get(name, 1) else None for name, sides in sides_of.items()} == differences


def test_a_side_that_is_not_of_one_kind_is_listed(make_run: Make) -> None:
    """Runs of different engine settings on one side are not repetitions."""
    a = f"{make_run('a1', 1)},{make_run('a2', 2, isolation='pinned')}"
    comparison = compare(a, f"{make_run('b1', 3)},{make_run('b2', 4, isolation='pinned')}")
    assert [one.setting for one in comparison.not_the_same] == ["isolation"]


def test_a_folder_of_an_earlier_version_has_no_other_settings(three: Three) -> None:
    """It has another name for the transport, and an empty table of processors. Another transport is a difference."""
    old = asked(load={"rate": "100k"}) | {"transport": "flight", "cpus": {}}
    comparison = compare(three("a", 10, experiment=old), three("b", 20))
    assert (comparison.not_the_same, comparison.asked_otherwise) == ((), ())
    other = compare(three("c", 10, experiment=old | {"transport": "kafka"}), three("d", 20))
    assert [one.setting for one in other.not_the_same] == ["transport"]
