"""The experiment files that ship can be planned, whole and as a quick look, and a tiny form of each runs."""

import json
from pathlib import Path

import pytest
import tomli_w

from streamgauge.config.experiment_file import read_values
from streamgauge.core.exit_codes import ExitCode
from streamgauge.preflight import generator_ceiling
from streamgauge.results.matrix import MatrixPlan, MatrixResult
from streamgauge.studies.capacity import sustain
from streamgauge.studies.matrix.cells import LOOK_S_MAX
from streamgauge.studies.matrix.quick_look import CELLS_MAX
from tests.helpers_modules import ROOT
from tests.unit.cli.helpers_commands import call_and_read, command

EXPERIMENTS = sorted((ROOT / "experiments").rglob("*.toml"))
every_file = pytest.mark.parametrize("file", EXPERIMENTS, ids=[path.stem for path in EXPERIMENTS])
TINY = {"warmup": "2s", "duration": "4s"}
JUDGED = (ExitCode.HOLDS, ExitCode.FAILS, ExitCode.UNDECIDED, ExitCode.INVALID)


@every_file
def test_a_file_can_be_planned(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its whole form, and its quick look, which fits into 10 minutes. Nothing is started."""
    monkeypatch.chdir(tmp_path)
    for module in (generator_ceiling, sustain):  # a file may ask for a rate that this machine cannot make
        monkeypatch.setattr(module, "ceiling_of", lambda *_: 1e9)
    code, shown, said = call_and_read(monkeypatch, capsys, "experiment", file, "--dry-run")
    assert (code, said, "nothing was started" in shown) == (0, "", True)
    code, shown, said = call_and_read(monkeypatch, capsys, "experiment", file, "--quick", "--dry-run", "--json")
    assert (code, said) == (0, "")
    plan = MatrixPlan.model_validate_json(shown)
    assert (plan.quick, 1 <= len(plan.cells) <= CELLS_MAX, 0 < plan.seconds <= LOOK_S_MAX) == (True, True, True)
    assert plan.no_cells == read_values(file).get("matrix", {}).get("no_cells", {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
@pytest.mark.process
@pytest.mark.spark
@pytest.mark.broker
@every_file
def test_a_tiny_form_of_a_file_runs(file: Path, tmp_path: Path) -> None:
    """The first cell of its look, with a span of 4 s, ends with a verdict."""
    values = read_values(file)
    look = {**values.get("quick", {}), **TINY}
    if "profile" in look:
        look["profile"] = "step:1k@2s"
    (tmp_path / "tiny.toml").write_text(tomli_w.dumps({**values, "quick": look}))
    words = ("experiment", str(tmp_path / "tiny.toml"), "--quick", "--cells", "1", "--out", str(tmp_path / "runs"))
    done = command(*words, "--json", "--quiet")
    assert done.returncode in JUDGED, done.stderr
    (cell,) = MatrixResult.model_validate_json(done.stdout).cells
    assert cell.report, cell.sentence
    (result,) = (tmp_path / "runs").rglob("result.json")
    assert json.loads(result.read_text())["quick"] is True
