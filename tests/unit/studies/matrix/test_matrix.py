"""A matrix runs its cells, keeps each that ended, and goes on where it was stopped. No engine is started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamgauge.artifacts.run_folder import MATRIX, read_study
from streamgauge.config.options_and_settings import build, read, to_toml
from streamgauge.core.errors import InputError, MachineError
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.results.matrix import MatrixResult
from streamgauge.studies.exclusive_folder import LOCK
from streamgauge.studies.matrix import cells
from streamgauge.studies.matrix import matrix as matrix_module
from streamgauge.studies.matrix.matrix import plan_matrix, run_matrix, stored_experiment
from streamgauge.system.disk import try_lock
from tests.unit.studies.matrix.helpers_matrix import RecordingObserver, matrix_experiment, performing


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the verdicts of the next cells; gives the list of their experiments."""

    def set_verdicts(*verdicts: Any) -> list[Any]:
        perform, given = performing(*verdicts)
        monkeypatch.setattr(cells, "perform", perform)
        return given

    return set_verdicts


def numbers(result: MatrixResult) -> list[tuple[int, Any]]:
    return [(row.number, row.verdict) for row in result.cells]


def test_one_folder_has_every_cell_and_one_table(tmp_path: Path, ends: Any) -> None:
    """A folder per cell, named in its row from the matrix's folder; the result can be read back."""
    given, seen = ends("sustained", "not_sustained", "sustained"), RecordingObserver()
    result = run_matrix(matrix_experiment(tmp_path), seen)
    (folder,) = tmp_path.iterdir()
    assert folder.name.endswith("-identity-matrix")
    assert [experiment.load.rate for experiment in given] == [1000, 2000, 3000]
    assert numbers(result) == [(1, "sustained"), (2, "not_sustained"), (3, "sustained")]
    assert [row.folder for row in result.cells] == ["cells/001/run", "cells/002/run", "cells/003/run"]
    assert result.cells[0].report == "cells/001/run/report.html"
    assert result.finished
    assert read_study(folder, MATRIX) == result
    assert read(folder / "experiment.toml") == matrix_experiment(tmp_path)
    table = pq.read_table(folder / "cells.parquet")
    assert table.column("load.rate").to_pylist() == [1000.0, 2000.0, 3000.0]
    assert (folder / "cells.csv").read_text().splitlines()[0].startswith('"number","load.rate","repetition","verdict"')
    assert seen.began == [([], 3)]
    assert seen.cells == list(result.cells)


def test_a_stopped_matrix_keeps_what_ended_and_goes_on(tmp_path: Path, ends: Any) -> None:
    """Ctrl-C in the second cell ends the matrix; --resume runs it again, and the third."""
    ends("sustained", KeyboardInterrupt())
    stopped = run_matrix(matrix_experiment(tmp_path), RecordingObserver())
    assert numbers(stopped) == [(1, "sustained"), (2, "interrupted")]
    assert not stopped.finished
    given, seen = ends("undecided", "sustained"), RecordingObserver()
    result = run_matrix(stored_experiment(stopped.folder, None), seen, resume=stopped.folder)
    assert [experiment.load.rate for experiment in given] == [2000, 3000]
    assert seen.began == [([1, 2], 2)]
    assert numbers(result) == [(1, "sustained"), (2, "undecided"), (3, "sustained")]
    assert result.cells[0] == stopped.cells[0]
    assert result.finished
    assert result.start_time == stopped.start_time


def test_a_kill_between_two_cells_loses_none(tmp_path: Path, ends: Any) -> None:
    """A killed matrix has no row of the cell that ran; its figures are written after each."""
    ends("sustained", SystemExit(9))
    with pytest.raises(SystemExit):
        run_matrix(matrix_experiment(tmp_path), RecordingObserver())
    (folder,) = tmp_path.iterdir()
    assert [row["number"] for row in json.loads((folder / MATRIX).read_text())["cells"]] == [1]
    given = ends("sustained", "sustained")
    result = run_matrix(
        stored_experiment(str(folder), matrix_experiment(tmp_path)), RecordingObserver(), resume=str(folder)
    )
    assert len(given) == 2
    assert result.finished


def test_a_finished_matrix_runs_nothing_again(tmp_path: Path, ends: Any) -> None:
    """But named cells that decided nothing are repeated; cells that decided something never are."""
    ends("sustained", "invalid", "undecided")
    folder = run_matrix(matrix_experiment(tmp_path), RecordingObserver()).folder
    experiment = stored_experiment(folder, None)
    given = ends("sustained", "sustained", "sustained")
    assert len(run_matrix(experiment, RecordingObserver(), resume=folder).cells) == 3
    assert given == []
    assert plan_matrix(experiment, None, folder).cells == ()
    again = run_matrix(experiment, RecordingObserver(), numbers="1,2", resume=folder)
    assert [one.load.rate for one in given] == [2000]
    assert numbers(again) == [(1, "sustained"), (2, "sustained"), (3, "undecided")]


def test_only_named_cells_run(tmp_path: Path, ends: Any) -> None:
    """The others are missing, and the matrix is not finished."""
    given = ends("sustained", "sustained")
    result = run_matrix(matrix_experiment(tmp_path), RecordingObserver(), numbers="3,1")
    assert [one.load.rate for one in given] == [1000, 3000]
    assert (numbers(result), result.planned, result.finished) == ([(1, "sustained"), (3, "sustained")], 3, False)


def test_random_order_is_the_same_after_a_stop(tmp_path: Path, ends: Any) -> None:
    """The rest of the same order."""
    experiment = matrix_experiment(tmp_path, order="random", seed=4, repeat=2)
    whole = ends(*["sustained"] * 6)
    run_matrix(experiment, RecordingObserver())
    first = ends("sustained", "sustained", KeyboardInterrupt())
    stopped = run_matrix(experiment, RecordingObserver())
    rest = ends(*["sustained"] * 4)
    run_matrix(stored_experiment(stopped.folder, None), RecordingObserver(), resume=stopped.folder)
    assert [one.load.rate for one in (*first[:2], *rest)] == [one.load.rate for one in whole]


def test_a_machine_that_lacks_something_ends_the_matrix(tmp_path: Path, ends: Any) -> None:
    """As a full disk would in every other cell; what ended is kept."""
    ends("sustained", MachineError("the disk is full"))
    with pytest.raises(MachineError):
        run_matrix(matrix_experiment(tmp_path), RecordingObserver())
    (folder,) = tmp_path.iterdir()
    result = read_study(folder, MATRIX)
    assert isinstance(result, MatrixResult)
    assert numbers(result) == [(1, "sustained")]


def test_every_cell_needs_its_resources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first one runs, and before a folder is made."""
    needed: list[int | None] = []

    def require_machine(*trials: ResolvedExperiment) -> None:
        needed.extend(one.experiment.parallelism for one in trials)
        raise MachineError("no such cluster")

    monkeypatch.setattr(matrix_module, "require_machine", require_machine)
    with pytest.raises(MachineError):
        run_matrix(matrix_experiment(tmp_path, parallelism=[1, 2]), RecordingObserver())
    assert sorted(map(str, needed)) == ["1"] * 3 + ["2"] * 3
    assert list(tmp_path.iterdir()) == []


def test_two_processes_do_not_run_one_matrix(tmp_path: Path, ends: Any) -> None:
    """They would overwrite each other's rows."""
    ends("sustained", KeyboardInterrupt())
    folder = run_matrix(matrix_experiment(tmp_path), RecordingObserver()).folder
    with try_lock(Path(folder) / LOCK), pytest.raises(InputError, match="another process is still running"):
        run_matrix(stored_experiment(folder, None), RecordingObserver(), resume=folder)


def test_another_folder_or_file_is_no_matrix_to_resume(tmp_path: Path, ends: Any) -> None:
    """The way out says how to go on."""
    with pytest.raises(InputError, match=r"must be the folder of a matrix, which holds a matrix\.json"):
        stored_experiment(str(tmp_path), None)
    ends(*["sustained"] * 3)
    folder = run_matrix(matrix_experiment(tmp_path), RecordingObserver()).folder
    assert stored_experiment(folder, matrix_experiment(tmp_path)) == matrix_experiment(tmp_path)
    with pytest.raises(InputError, match="must be the folder of the experiment in FILE") as refused:
        stored_experiment(folder, matrix_experiment(tmp_path, repeat=2))
    assert refused.value.problems[0].way_out == f"leave FILE out: streamgauge experiment --resume {folder}"


def test_data_that_changed_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: Any) -> None:
    """Cells before and after would answer different questions. Relative paths are found from another place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("user_id,gem_pack_id,price\n1,2,3\n")
    experiment = build({**matrix_experiment(tmp_path / "runs").model_dump(), "parameters": {"data": "rows.csv"}})
    ends("sustained", KeyboardInterrupt())
    folder = run_matrix(experiment, RecordingObserver()).folder
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    stored = stored_experiment(folder, None)
    assert len(plan_matrix(stored, None, folder).cells) == 2
    (tmp_path / "rows.csv").write_text("user_id,gem_pack_id,price\n1,2,4\n")
    with pytest.raises(InputError, match="must be unchanged since that run"):
        run_matrix(stored, RecordingObserver(), resume=folder)


def test_what_is_refused_leaves_no_folder(tmp_path: Path, ends: Any) -> None:
    """Every problem of every cell, each once, before anything is written."""
    given = ends()
    experiment = matrix_experiment(tmp_path, **{"load.frontier": ["common", "free"], "parameters.nothing": [1]})
    with pytest.raises(InputError) as refused:
        run_matrix(experiment, RecordingObserver())
    reported = {problem.setting: problem.rule for problem in refused.value.problems}
    assert "(cells 2, 4, 6 of the matrix)" in reported["load.frontier"]
    assert "of the matrix" not in reported["set nothing"]
    assert list(tmp_path.iterdir()) == []
    assert given == []


def test_a_plan_has_every_cell_with_its_seconds(tmp_path: Path) -> None:
    """In the order in which they would run; nothing is written."""
    plan = plan_matrix(matrix_experiment(tmp_path, repeat=2), "1,5")
    assert [(cell.number, cell.settings, cell.repetition) for cell in plan.cells] == [
        (1, {"load.rate": "1k"}, 1), (5, {"load.rate": "2k"}, 2)
    ]  # fmt: skip
    assert all(cell.seconds is not None and 5 < cell.seconds < 20 for cell in plan.cells)
    assert plan.seconds == sum(cell.seconds or 0 for cell in plan.cells)
    assert list(tmp_path.iterdir()) == []


def test_the_stored_experiment_can_be_run_as_a_file(tmp_path: Path, ends: Any) -> None:
    """It is what was requested."""
    ends(*["sustained"] * 6)
    result = run_matrix(matrix_experiment(tmp_path, repeat=2, order="random"), RecordingObserver())
    file = Path(result.folder) / "experiment.toml"
    assert to_toml(read(file)) == file.read_text()
