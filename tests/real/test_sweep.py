"""`sweep` on the engine of known capacity, as a user types it: the search, the loads and their page."""

import subprocess
import sys
from pathlib import Path

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.results.matrix import MatrixResult


@pytest.mark.long
@pytest.mark.process
def test_loads_up_to_the_capacity_are_sustained_and_the_next_is_not(tmp_path: Path) -> None:
    """100 % is what the search finds. The figures of each load are those of its run."""
    words = ("identity", "--engine", "known", "--option", "capacity=20k", "--warmup", "2s", "--duration", "10s")
    command = [sys.executable, "-m", "streamgauge", "sweep", *words, "--loads", "40%,80%,160%", "--json", "--quiet"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    result = MatrixResult.model_validate_json(done.stdout)
    assert result.sweep is not None, done.stderr
    full_per_s = result.sweep.full_per_s or 0.0
    assert full_per_s == pytest.approx(20e3, rel=0.25)
    assert [row.verdict for row in result.cells][-1] == "not_sustained"
    folder = tmp_path / result.folder
    assert (folder / "report.html").exists()
    assert result.sweep.search is not None
    assert (folder / result.sweep.search.report).exists()
    for row, load in zip(result.cells, result.sweep.loads, strict=True):
        run = RunFolder.open(folder / row.folder).read_result()
        assert run.verdict.value == row.verdict
        assert run.experiment["load"]["rate"] == pytest.approx(load * full_per_s, abs=1e-3)
