"""`streamgauge experiment FILE --quick`: its cells, refusals and marks. No engine is started."""

import json
from pathlib import Path
from typing import Any

import pytest

from streamgauge.config.experiment import build
from streamgauge.config.experiment_file import read
from streamgauge.report.document_blocks import QUICK
from streamgauge.report.documents.breakdown import document as breakdown_document
from streamgauge.report.documents.run_summary import brief
from streamgauge.report.page import render
from streamgauge.results.matrix import MatrixPlan, MatrixResult
from streamgauge.studies.matrix import cells
from streamgauge.studies.matrix.quick_look import quick_look
from tests.helpers_study_results import breakdown, breakdown_trial
from tests.unit.cli.helpers_commands import Invoke, assert_one_refusal, result_of
from tests.unit.studies.matrix.helpers_matrix import performing

SEARCH = """
command = "sustain"
workload = "identity"
engine = "known"
[search]
tolerance = 0.1
"""
LOOK = '[quick]\nrate = "2k"\nwarmup = "1s"\nduration = "4s"\n'


def planned(invoke: Invoke, text: str, *words: str) -> MatrixPlan:
    Path("look.toml").write_text(text)
    done = invoke("experiment", "look.toml", "--quick", "--dry-run", "--json", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return MatrixPlan.model_validate_json(done.stdout)


def test_a_search_becomes_one_short_trial_at_the_stored_rate() -> None:
    look = quick_look(build({"command": "sustain", "workload": "identity", "engine": "known", "quick": {"rate": "2k"}}))
    assert (look.command, look.load.rate, look.load.warmup, look.load.duration) == ("run", 2000, 20, 20)
    assert (look.is_quick_look, look.search.tolerance) == (True, 0.05)


@pytest.mark.parametrize(
    ("text", "words", "setting"),
    [
        (SEARCH, (), "quick.rate"),
        (SEARCH + LOOK.replace("4s", "700s"), (), "quick.duration"),
        (SEARCH + LOOK + '[matrix]\nload.bound = ["1s", "no"]', (), "load.bound"),
        (SEARCH + LOOK, ("--resume", "runs/one"), "--quick"),
        ('command = "characterize"\nworkload = "word_count"', (), "--quick"),
        (SEARCH + LOOK + 'rte = "1k"', (), "quick.rte"),
    ],
)
def test_what_cannot_be_a_look_is_refused(invoke: Invoke, text: str, words: tuple[str, ...], setting: str) -> None:
    """Nothing is started. A file that searches has to say at which rate to look."""
    Path("look.toml").write_text(text)
    assert_one_refusal(invoke("experiment", "look.toml", "--quick", *words), setting)


def test_a_look_has_at_most_eight_cells_and_lists_the_others(invoke: Invoke) -> None:
    """Repetitions are no cells of it; with `--cells` others are looked at."""
    text = SEARCH + LOOK + f"[matrix]\nload.seed = {list(range(1, 11))}\nrepeat = 3\n"
    plan = planned(invoke, text)
    assert (plan.quick, [cell.settings["load.seed"] for cell in plan.cells]) == (True, [*range(1, 9)])
    assert plan.left_out == ({"load.seed": 9}, {"load.seed": 10})
    assert [cell.settings["load.seed"] for cell in planned(invoke, text, "--cells", "3,10").cells] == [3, 10]
    shown = invoke("experiment", "look.toml", "--quick", "--dry-run").stdout
    assert shown.startswith(f"{QUICK}   8 cells, about ")
    assert "load.seed" in shown.partition("nothing was started")[0].rpartition("minutes")[2]


def test_a_look_takes_at_most_ten_minutes(invoke: Invoke) -> None:
    """Cells beyond that are left out."""
    text = SEARCH + LOOK.replace("4s", "250s") + "[matrix]\nload.seed = [1, 2, 3]\n"
    plan = planned(invoke, text)
    assert (len(plan.cells), len(plan.left_out)) == (2, 1)
    assert plan.seconds <= 600


def test_each_trial_of_an_anatomy_is_a_cell(invoke: Invoke) -> None:
    text = 'command = "anatomy"\nworkload = "stamped_text"\n[anatomy]\nrates = ["1k", "2k"]\nrecord_sizes = [25, 50]'
    plan = planned(invoke, text)
    assert (plan.command, len(plan.cells)) == ("anatomy", 4)
    assert plan.cells[1].settings == {"anatomy.rates": [1000.0], "anatomy.record_sizes": [50]}


def test_of_a_scalability_study_the_least_load_runs(invoke: Invoke) -> None:
    """On the least resources; every other trial of the grid is left out."""
    text = SEARCH.replace("sustain", "scale") + '[scale]\nresources = [1, 2]\nloads = ["1k", "2k"]\n'
    plan = planned(invoke, text)
    assert (plan.command, [cell.settings for cell in plan.cells]) == ("run", [{"load.rate": 1000, "parallelism": 1}])
    assert len(plan.left_out) == 3


def test_a_look_is_called_one_everywhere(monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    """The answer, the page and its pictures, the JSON, and the experiment of each cell; also after a resume."""
    perform, given = performing("sustained", KeyboardInterrupt(), "undecided")
    monkeypatch.setattr(cells, "perform", perform)
    Path("look.toml").write_text(SEARCH + LOOK + "[matrix]\nload.seed = [1, 2]\n")
    assert invoke("experiment", "look.toml", "--quick").returncode == 130
    (folder,) = Path("runs").iterdir()
    shown = invoke("experiment", "--resume", str(folder))
    result = MatrixResult.model_validate(json.loads((folder / "matrix.json").read_text()))
    assert (result.quick, result.command, result.finished) == (True, "run", True)
    assert [one.is_quick_look for one in (*given, read(folder / "experiment.toml"))] == [True] * 4
    assert shown.stdout.startswith(f"{QUICK}   2 of 2 cells")
    page = (folder / "report.html").read_text()
    assert f"<figcaption>Each combination ({QUICK})</figcaption>" in page
    assert f"identity, matrix ({QUICK})</title>" in page
    assert "highest" not in page


@pytest.mark.parametrize("quick", [True, False])
def test_the_pages_of_its_trials_are_marked(quick: bool) -> None:
    """Those of runs and of anatomies; pages of anything else are not."""
    run = brief(result_of("sustained").model_copy(update={"quick": quick}))
    for document in (run, breakdown_document(breakdown(breakdown_trial(), quick=quick))):
        assert (document.mark, QUICK in render(document)) == (QUICK * quick, quick)


def test_without_the_option_the_section_changes_nothing() -> None:
    """The same file asks for its search, and is not marked."""
    values: dict[str, Any] = {"command": "sustain", "workload": "identity", "engine": "known", "quick": {"rate": "2k"}}
    assert not build(values).is_quick_look
