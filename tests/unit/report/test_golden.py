"""Whole outputs: what the terminal shows of a result or study, and its page as text without its drawings."""

import html
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import Experiment
from streamgauge.report.document_blocks import Document
from streamgauge.report.documents import breakdown, comparison, matrix, profile, run, run_summary, scalability, sweep
from streamgauge.report.page import render
from streamgauge.report.terminal.console import show
from streamgauge.results.comparison import ComparedSide, NotTheSame
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.matrix import MatrixPlan, PlannedCell, Sweep
from streamgauge.results.profile import AppliedAdvice, ParallelismPlan, ParallelismPlans
from streamgauge.results.run import MalformedRecords, Rates, Verification
from streamgauge.results.text.sentences import in_words
from streamgauge.results.verdict import Verdict
from streamgauge.verdict.verdict import judge
from tests import helpers_study_results as studies
from tests.helpers_golden import assert_golden
from tests.unit.report.conftest import NOW, made_up_flow, made_up_result, made_up_search, whole_run
from tests.unit.report.documents import test_breakdown, test_comparison, test_matrix, test_scalability, test_sweep
from tests.unit.report.documents.test_comparison import check_page
from tests.unit.verdict.helpers_evidence import RIGHT, evidence, ramp

GOLDEN = Path(__file__).parent / "golden"
WRONG = RIGHT.model_copy(update={"matched": 8, "wrong": 2, "examples": ({"kind": "wrong", "got": "<b>"},)})
STOPPED = in_words(judge(evidence(interrupted=True)))
JUDGED = Verification(judged=True, independent=True, reference="DuckDB", expected=2, matched=2, duplicate=12)
MALFORMED = {
    "lines": MalformedRecords(rule="line IS NULL", malformed=1203, records=100_000),
    "others": MalformedRecords(rule="abc < " * 90, malformed=0, records=7),
    "logs": MalformedRecords(rule=f"line NOT RLIKE '{'[^ ]* ' * 90}'", malformed=0, records=7),
}
NEWEST = Latency(p50=8e5, p90=9e5, max=1e6, count=40, effective_count=10)
UPDATES = Latencies(
    event_time_us=NEWEST,
    until_counted_us=Latency(p50=2.8e6, p90=4.4e6, p99=4.8e6, max=4.8e6, count=4000, effective_count=100),
    processing_time_us=Latency(p50=7e5, p90=8e5, max=9e5, count=40, effective_count=10),
)
RESULT = made_up_result()
SLOWER = RESULT.latency.model_copy(update={"notes": ("later",)})
SINKS = tuple(
    RESULT.sinks[0].model_copy(
        update={"name": name, "latency": latency, "verification": RESULT.verification, "rows_per_s": per_s}
    )
    for name, latency, per_s in (("fast", RESULT.latency, 250.0), ("alerts", SLOWER, 12_500.0))
)
NO_RATE = Rates(offered_per_s=0.0, achieved_per_s=0.0, ingested_per_s=0.0, planned_per_s=200_000.0)
RUNS: dict[str, Any] = {
    "sustained": {},
    "not_sustained": {
        "verdict": in_words(judge(evidence(backlog=ramp(0.05), verification=WRONG, user_job=False))),
        "verification": WRONG, "warnings": ("background processes used 12% of the CPU",),
        "notes": ("the input was made up",), "environment": {"generators": 2, "partitions": 4},
        "rate": RESULT.rate and RESULT.rate.model_copy(update={"maximum_per_s": 190_000.0}),
    },
    "invalid": {"verdict": in_words(judge(evidence(core_wait_us=50_000.0, background_share=0.8)))},
    "interrupted": {"verdict": STOPPED, "verification": None},
    "nothing": {"verdict": in_words(judge(evidence(driver_reason="it ended"))), "rate": None, "phases": (),
                "latency": Latencies(), "sinks": (), "verification": None},
    "ended_in_warm_up": {"verdict": STOPPED, "phases": RESULT.phases[:1], "rate": NO_RATE, "sinks": (),
                         "latency": Latencies(notes=("not measured: too early",)), "verification": None},
    "late": {"latency": Latencies(event_time_us=Latency(p50=1e6, p99=2e6, max=4e6, count=500, lower_bounds=4)),
             "verification":
             Verification(judged=False, independent=False, reference="", sentence="The reference crashed.")},
    "updates": {"latency": UPDATES, "sinks": (), "verification": JUDGED.model_copy(
        update={"delivery": "at_least_once", "allowed": {"duplicate": 12}, "malformed": MALFORMED})},
    "updates_late": {"latency": UPDATES.model_copy(update={"until_counted_us": Latency(
        p50=2.8e6, p99=4.8e6, count=4000, lower_bounds=3)}), "sinks": ()},
    "updates_unknown": {"latency": UPDATES.model_copy(update={"until_counted_us": Latency(
        note="not known: no batch is")}), "sinks": ()},
    "two_sinks": {"latency": SLOWER, "sinks": SINKS, "tuning": "idiomatic", "changed_settings": ("spark.ui.enabled",),
                  "settings": {"source": "rows", "spark.ui.enabled": "false"}},
    "no_results": {"latency": Latencies(event_time_us=Latency()), "sinks": (),
                   "verdict": Verdict(value="undecided", sentence="undecided: too few")},
}  # fmt: skip

FEW = dict.fromkeys(("tasks_share", "batches", "commit_after_us", "contradicting_batches", "first_of_batch"))
BROKER = {"contradicting_results": 7, "contradiction_us_max": 900, "sampled": 1000, "batch_window": ""}
APPLIED = AppliedAdvice(
    setting="s", before="2", after="9", verdict="not_sustained", sentence="slow <er>", run="runs/made/trial",
    experiment="runs/made/applied.toml",
)  # fmt: skip
NO_PLANS = ParallelismPlans(formula=None, one_each=(ParallelismPlan(times=1, instances=(1,)),), source_only=None)
UNTIMED = studies.profiled_operator("lines", "source", None, "only reading", None, thesis=())
CELL, MATRIX, SCALE, LINEAR = test_matrix.cell, test_matrix.matrix, test_scalability.study, test_scalability.LINEAR
ROW = test_scalability.cell
FAILED_SIDE = ComparedSide(
    given="new",
    runs=tuple(one.model_copy(update={"failed": "answers not judged"}) for one in test_comparison.side("new").runs[:1]),
)
OTHER_RATE = NotTheSame(setting="load.rate", a=("5000",), b=("20000",))
PLANNED = [PlannedCell(number=n, settings={"load.rate": f"{n}k"}, repetition=1, seconds=90.0 * n) for n in (2, 1)]
STUDIES: dict[str, Callable[[], Document]] = {
    "anatomy": lambda: breakdown.document(studies.breakdown(
        studies.breakdown_trial(), studies.breakdown_trial(doubts=("contradictions",), verdict="undecided"),
        test_breakdown.FAILED, finished=False)),
    "anatomy_by_broker": lambda: breakdown.document(
        studies.breakdown(studies.breakdown_trial(**(FEW | BROKER)))),
    "matrix": lambda: matrix.document(MATRIX(
        *(CELL(n, repetition=n) for n in (1, 2, 3)), CELL(4, "20k", verdict="not_sustained", sentence="grew <1 %"),
        CELL(5, repetition=5, verdict="invalid", ingested_per_s=9e9), planned=6)),
    "matrix_of_paper": lambda: matrix.document(test_matrix.matrix_of_paper()),
    "matrix_plan": lambda: matrix.plan_document(MatrixPlan(
        workload="identity", command="run", varied=("load.rate",),
        cells=(*PLANNED, PLANNED[0].model_copy(update={"seconds": None})))),
    "sweep": lambda: sweep.document(test_sweep.whole()),
    "sweep_plan": lambda: matrix.plan_document(MatrixPlan(
        workload="identity", command="sweep", varied=("load.rate",), search_s=480.0,
        sweep=Sweep(loads=(0.5, 1), full_per_s=None, p99_needs_s=400), cells=tuple(
            one.model_copy(update={"settings": {"load.rate": None}}) for one in PLANNED))),
    "characterization": lambda: profile.document(studies.operator_profile(applied=APPLIED), apply=True),
    "characterization_untimed": lambda: profile.document(
        studies.operator_profile(operators=(UNTIMED,), ways=NO_PLANS, memory=None, thesis=())),
    "comparison": lambda: comparison.document(test_comparison.comparison(test_comparison.GATES)),
    "comparison_of_a_failed_side": lambda: comparison.document(test_comparison.comparison().model_copy(
        update={"b": FAILED_SIDE, "not_the_same": (OTHER_RATE,), "asked_otherwise": ("parameters.range", "tuning")})),
    "scale": lambda: scalability.document(SCALE(*LINEAR)),
    "scale_undecided": lambda: scalability.document(SCALE(
        *LINEAR[:3], ROW(4, 1, 2e4, "undecided"), *LINEAR[4:5], ROW(6, 4, 8e4), ROW(7, 4, 1e4, "not_sustained"))),
    "scale_unfinished": lambda: scalability.document(SCALE(*LINEAR[:3])),
    "scale_wrong": lambda: scalability.document(SCALE(ROW(1, 2, 2e4, "not_sustained", wrong_answers="3 missing"))),
    "scale_none": lambda: scalability.document(SCALE(*(
        ROW(n, *cell, "not_sustained") for n, cell in enumerate(((2, 2e4), (2, 1e4), (4, 2e4), (4, 1e4)), 1)))),
}  # fmt: skip


def as_text(page: str) -> str:
    """The tags of a page one a line, without style and drawings, whose numbers are not the same on every machine."""
    page = re.sub(r"<style>.*?</style>|<svg class=.swatch.*?</svg>", "", page, flags=re.DOTALL)
    page = re.sub(r"<svg.*?</svg>", "(drawing)", page, flags=re.DOTALL)
    blocks = re.sub(r"</(?:title|p|tr|li|h\d|figcaption|caption|dt|dd|pre)>", "\n", page)
    lines = (" ".join(re.sub(r"<(?!!)[^>]*>", " ", line).split()) for line in blocks.splitlines())
    return "".join(f"{line}\n" for line in lines if line)


FIGURE = re.compile(r"(>= )?[\d,.]+ ([kMG] )?(events/s|[mun]?s|% of a core)")
"""One figure with one unit."""


def in_terminal(document: Document) -> str:
    console = Console(file=(file := io.StringIO()), width=200, color_system=None)
    show(document, on=console)
    return file.getvalue()


@pytest.mark.parametrize("name", [*RUNS, "search"])
def test_each_tile_has_one_figure_in_the_words_of_the_terminal(name: str) -> None:
    """Its name and its figure are in one line of the terminal, in that order; an unknown figure has no tile."""
    document = run_summary.brief(made_up_search() if name == "search" else made_up_result(**RUNS[name]))
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", html.unescape(render(document)).replace("\xa0", " "))
    assert found
    for label, figure in found:
        assert FIGURE.fullmatch(figure)
        assert re.search(".*".join(map(re.escape, f"{label} {figure}".split())), in_terminal(document))


def assert_shown(name: str, document: Document, page: str, verbose: bool) -> None:
    """In the terminal and on the page, as the golden file has it; the page is well-formed and needs nothing else."""
    check_page(page)
    console = Console(file=(file := io.StringIO()), width=200, color_system=None)
    for whole in (False, True)[: 1 + verbose]:
        show(document, f"{name}/report.html", whole, console)
        console.print("---")
    assert_golden(GOLDEN / f"{name}.txt", "\n".join(map(str.rstrip, f"{file.getvalue()}{as_text(page)}".split("\n"))))


@pytest.mark.parametrize("name", [*RUNS, "search"])
def test_a_run(tmp_path: Path, experiment: Experiment, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Brief and verbose in the terminal, then the page. A reason stands once on it."""
    monkeypatch.chdir(tmp_path)
    whole = name == "sustained"
    made = RunFolder.create(Path(), "made_up_aggregation", "spark", NOW)
    folder = whole_run(tmp_path, experiment) if whole else made
    folder.write_result(made_up_search() if name == "search" else made_up_result(**RUNS[name]))
    document = run.whole(folder, made_up_flow() if whole else None)
    assert_shown(name, document, render(document).replace(str(tmp_path), ""), verbose=True)


@pytest.mark.usefixtures("quick_fits")
@pytest.mark.parametrize("name", STUDIES)
def test_a_study(name: str) -> None:
    """The terminal, then the page."""
    document = STUDIES[name]()
    assert_shown(name, document, render(document), verbose=False)
