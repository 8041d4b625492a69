"""`streamgauge scale`: its options, refusals and exit codes. No engine is started."""

import json
from pathlib import Path

import pytest

from streamgauge.core.exit_codes import ExitCode
from streamgauge.preflight.dry_run import START_S
from streamgauge.results.dry_run import ScaleTrialPlan
from streamgauge.results.scalability import ScaleResult
from streamgauge.studies.matrix import cells
from tests.unit.cli.helpers_commands import Invoke, assert_one_refusal
from tests.unit.studies.scalability.helpers_scale import LAWS, simulated

WORDS = ("scale", "identity", "--engine", "known", "--warmup", "1s", "--duration", "4s")
EHRENSTEIN = sorted((Path(__file__).parents[3] / "experiments" / "ehrenstein").glob("*.toml"))
GRID = ("--resources", "1,2,4", "--loads", "4096..131072x2")


@pytest.fixture(autouse=True)
def no_ceiling_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge.studies.scalability.scale.ceiling_of", lambda *_: 5e6)


def test_the_answer_stands_in_the_terminal_and_on_a_page(
    stand: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke
) -> None:
    """With each trial, the capacity of each level, and the laws."""
    monkeypatch.setattr(cells, "perform", simulated(LAWS["linear"], 20_000)[0])
    done = invoke(*WORDS, *GRID)
    assert done.returncode == 0
    assert "capacity by parallelism: 1: 16.4 k/s, 2: 32.8 k/s, 4: 65.5 k/s" in done.stdout
    assert "note   simulated: the engine known" in done.stderr
    assert "parallelism 2, rate 32.8 k/s   sustained" in done.stderr
    assert "at most" in done.stderr
    (folder,) = (stand / "runs").iterdir()
    assert (folder / "report.html").exists()
    again = invoke("report", str(folder))
    assert (again.returncode, again.stdout.strip()) == (0, str(folder / "report.html"))


def test_the_result_is_json(stand: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    """A capacity that no load exceeded is a lower bound, and exit code 0."""
    monkeypatch.setattr(cells, "perform", simulated(LAWS["linear"], 1e6)[0])
    done = invoke(*WORDS, *GRID, "--json")
    result = ScaleResult.model_validate_json(done.stdout)
    assert done.returncode == 0
    assert [(one.load, one.refused) for one in result.capacities] == [(131072, None)] * 3
    monkeypatch.setattr("streamgauge.studies.scalability.scale.exit_code", lambda _: ExitCode.UNDECIDED)
    again = invoke("scale", "--resume", result.folder, "--quiet")
    assert (again.returncode, again.stderr) == (3, "")
    assert "1: >= 131 k/s" in invoke("scale", "--resume", result.folder).stdout


def test_a_dry_run_counts_trials_and_minutes(stand: Path, invoke: Invoke) -> None:
    """For people and for programs; nothing is written."""
    text, document = invoke(*WORDS, *GRID, "--dry-run"), invoke(*WORDS, *GRID, "--dry-run", "--json")
    assert (text.returncode, text.stderr) == (0, "")
    plan = json.loads(document.stdout)
    assert f"at most {plan['trials_max']} trials for 18 cells" in text.stdout
    trial_s = plan["warmup_s"] + plan["duration_s"] + plan["tail_s"]
    assert plan["seconds"] == plan["trials"] * (trial_s + START_S)
    assert plan["loads"] == [4096 * 2**n for n in range(6)]
    assert list(stand.iterdir()) == []


@pytest.mark.parametrize("file", EHRENSTEIN, ids=lambda path: path.stem)
def test_the_papers_experiments_can_be_planned(stand: Path, invoke: Invoke, file: Path) -> None:
    """Each file of Ehrenstein 2020, figure 5 among them; nothing is started."""
    done = invoke("experiment", str(file), "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing was started" in done.stdout


def test_figure_5_has_the_grid_of_the_paper(invoke: Invoke) -> None:
    """Doublings of keys with a record per second, over up to 16 instances."""
    (file,) = (file for file in EHRENSTEIN if file.stem == "figure5")
    plan = ScaleTrialPlan.model_validate_json(invoke("experiment", str(file), "--dry-run", "--json").stdout)
    assert (plan.resources, plan.dimension) == ((1, 2, 4, 8, 16), "parameters.keys")
    assert plan.loads == plan.rates == tuple(4096.0 * 2**n for n in range(6))


@pytest.mark.parametrize(
    ("words", "setting"),
    [
        (("--resources", "1,two", "--loads", "1k..2k"), "--resources"),
        (("--resources", "1,2", "--loads", "slow..fast"), "--loads"),
        (("--resources", "1,2"), "--loads"),
        (("--loads", "1k..2k"), "--resources"),
        ((*GRID, "--criterion", "paper"), "--criterion"),
        ((*GRID, "--criterion", "ehrenstein", "--duration", "2s"), "--duration"),
        ((*GRID, "--repeat", "0"), "--repeat"),
        (("--resources", "1,2", "--loads", "1..1e30"), "--loads"),
        ((*GRID, "--resource", "cores"), "--resource"),
        ((*GRID, "--rate", "100k"), "--rate"),
        ((*GRID, "--rate=100k", "--dry-run"), "--rate"),
    ],
)
def test_bad_input_is_one_message(stand: Path, invoke: Invoke, words: tuple[str, ...], setting: str) -> None:
    """And nothing is written."""
    assert_one_refusal(invoke(*WORDS, *words), setting)
    assert list(stand.iterdir()) == []
