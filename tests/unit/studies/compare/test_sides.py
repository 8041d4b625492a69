"""studies/compare/groups.py: how runs are named, which are refused, and their figures by second."""

import shutil
from pathlib import Path

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.metrics.histogram import Histogram, counts_of, log_lines
from streamgauge.results.latency import Latencies
from streamgauge.results.run import Result, SinkResult, Verification
from streamgauge.results.verdict import Verdict
from streamgauge.studies.compare import groups
from streamgauge.studies.compare.compare import compare
from tests.unit.helpers_refusals import problem_of
from tests.unit.studies.compare.helpers_compare import Make, figure, refused, search

START = 1_767_323_045


def test_sides_may_be_named_in_four_ways(make_run: Make) -> None:
    """A folder, a file in it, a folder of folders, several with commas."""
    a = make_run("runs/one", 1)
    make_run("runs/two", 2)
    b = str(make_run("b", 3))
    for given_as, many in ((a, 1), (a / "result.json", 1), (a.parent, 2), (f"{a}, {a.parent / 'two'}", 2)):
        assert len(compare(str(given_as), b).a.runs) == many


def test_what_is_wrong_with_many_runs_is_reported_once(make_run: Make) -> None:
    """With the names of all, side by side."""
    full, other = (Verdict(value="invalid", sentence=f"{why}.") for why in ("the disk was full", "the clock stood"))
    a = ",".join(str(make_run(f"a{n}", n, verdict=other if n == 3 else full)) for n in range(4))
    message = refused(a, str(make_run("b", 9)))
    assert message.count("the disk was full") == message.count("the clock stood") == 1
    assert all(name in message for name in a.split(","))


@pytest.mark.parametrize(("sustained", "confirmed"), [(None, False), (1e6, False)])
def test_a_search_without_a_confirmed_rate_is_refused(make_run: Make, sustained: float | None, confirmed: bool) -> None:
    """What was not confirmed is a guess; and a run is no search."""
    b = str(search(make_run, "b", 2, 1e6))
    assert "confirmed a rate; said so" in refused(str(search(make_run, "a", 1, sustained, confirmed)), b)
    assert "runs on both sides, or searches" in refused(str(make_run("run", 1)), b)


def test_a_run_counts_once(make_run: Make) -> None:
    """Named twice, copied, or of the other side too: none is another observation."""
    a, b = make_run("a", 1), make_run("b", 2)
    shutil.copytree(a, copy := a.parent / "copy")
    for twice in (a, copy):
        assert "is there twice" in refused(f"{a},{twice}", str(b))
    for other, way_out in ((a, "a run of its own"), (copy, "a run of its own"), (f"{b},{a}", "leave out")):
        problem = problem_of(compare, str(a), str(other))
        assert (problem.setting, problem.way_out.startswith(way_out)) == ("B", True)


def test_everything_wrong_is_reported_at_once(make_run: Make, tmp_path: Path) -> None:
    """Both sides, the rule and the confidence."""
    (tmp_path / "empty").mkdir()
    message = refused("nowhere", str(tmp_path / "empty"), ["speed -5%"], 1.5)
    parts = ("A: must be there", "B: must hold a result.json", "--fail-if: FIGURE", "--confidence: must be from 50%")
    assert [part for part in parts if part not in message] == []


def test_a_log_that_cannot_be_read_is_refused(make_run: Make) -> None:
    """A damaged histogram is no histogram of zeros."""
    a = make_run("a", 1)
    (a / "latency.hlog").write_text("Tag=event_time,1.0,1.0,1.0,HISTnonsense\n")
    assert "latency.hlog must be whole" in refused(str(a), str(make_run("b", 2)))


def test_a_second_of_nothing_is_no_second(make_run: Make) -> None:
    """A second that holds only errors of the clocks has an empty histogram; it weighs nothing."""
    a, b = make_run("a", 1), make_run("b", 2)
    before = figure(compare(str(a), str(b)), "event_time_p50")
    path = a / "latency.hlog"
    path.write_text(path.read_text() + log_lines({START + 99: Histogram()}, "event_time"))
    assert figure(compare(str(a), str(b)), "event_time_p50") == before


def test_of_several_sinks_the_slowest_ones_seconds_are_compared(make_run: Make) -> None:
    """Its latency is the run's; lines of the other sink are not mixed in."""
    a, b = make_run("a", 1), make_run("b", 2)
    before = figure(compare(str(a), str(b)), "event_time_p50")
    for path in (a, b):
        result = RunFolder(path).read_result()
        quick = SinkResult(name="quick", rows=9, latency=Latencies())
        slow = SinkResult(name="slow", rows=9, latency=result.latency)
        RunFolder(path).write_result(result.model_copy(update={"sinks": (quick, slow)}))
        log = (path / "latency.hlog").read_text()
        other = log_lines({START: Histogram(counts_of([7, 7]))}, "event_time/quick")
        (path / "latency.hlog").write_text(other + log.replace("Tag=event_time,", "Tag=event_time/slow,"))
    assert figure(compare(str(a), str(b)), "event_time_p50") == before


RIGHT = Verification(judged=True, independent=True, reference="", expected=9, matched=9)
WRONG = RIGHT.model_copy(update={"matched": 6, "missing": 2, "wrong": 1})
HELD = Verdict(value="sustained")


@pytest.mark.parametrize(
    ("verdict", "verification", "message"),
    [
        (HELD, RIGHT, ""),
        (HELD, None, "answers not judged"),
        (HELD, RIGHT.model_copy(update={"judged": False}), "answers not judged"),
        (Verdict(value="not_sustained", decided_by=("answers",)), WRONG, "wrong answers (2 missing, 1 wrong)"),
        (
            Verdict(value="not_sustained", decided_by=("backlog_trend", "answers")), WRONG,
            "wrong answers (2 missing, 1 wrong), not sustained by backlog_trend",
        ),
        (Verdict(value="not_sustained", decided_by=("connected",)), RIGHT, "not sustained by connected"),
        (Verdict(value="undecided", decided_by=("evidence",)), RIGHT, "undecided by evidence"),
        (Verdict(value="undecided", decided_by=("answers",)), None, "answers not judged"),
        (Verdict(value="not_sustained"), RIGHT, "not sustained"),
    ],
)  # fmt: skip
def test_why_a_run_did_not_do_its_work(verdict: Verdict, verification: Verification | None, message: str) -> None:
    """Answers before anything else, then the checks that decided; nothing where all is well."""
    result = Result(
        run_id="r", start_time="t", workload="w", engine="e", isolation="shared", experiment={}, verdict=verdict,
        verification=verification,
    )  # fmt: skip
    assert groups._failed(result) == message
