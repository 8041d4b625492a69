"""A matrix runs its cells, keeps each that ended, and goes on where it was stopped. No engine is started."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest

from streamgauge.artifacts.run_folder import MATRIX, read_study
from streamgauge.config.experiment import Experiment, Quick, build
from streamgauge.config.experiment_file import read, to_toml
from streamgauge.config.matrix import with_settings
from streamgauge.core.errors import InputError, MachineError
from streamgauge.results.matrix import MatrixResult
from streamgauge.studies.matrix import cells
from streamgauge.studies.matrix import matrix as matrix_module
from streamgauge.studies.matrix.matrix import plan_matrix, run_matrix, stored_experiment
from streamgauge.studies.study_folder import LOCK
from streamgauge.system.disk import try_lock
from tests.unit.studies.matrix.helpers_matrix import RecordingObserver, matrix_experiment, performing

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A matrix whose cells end with these verdicts: (its result, the experiments of its cells, its observer)."""

    def one(
        *verdicts: Any, experiment: Experiment | None = None, resume: str | None = None, numbers: Any = None
    ) -> Any:
        perform, given = performing(*verdicts)
        monkeypatch.setattr(cells, "perform", perform)
        experiment = experiment or (stored_experiment(resume, None) if resume else matrix_experiment(tmp_path))
        result = run_matrix(experiment, observer := RecordingObserver(), numbers=numbers, resume=resume)
        return result, given, observer

    return one


def rates(experiments: list[Experiment]) -> list[float]:
    return [experiment.load.rate for experiment in experiments]


def numbers(result: MatrixResult) -> list[tuple[int, Any]]:
    return [(row.number, row.verdict) for row in result.cells]


def test_one_folder_has_every_cell_and_one_table(tmp_path: Path, run: Run) -> None:
    """A folder per cell, named in its row from the matrix's folder; the result can be read back."""
    result, given, observer = run("sustained", "not_sustained", "sustained")
    (folder,) = tmp_path.iterdir()
    assert folder.name.endswith("-identity-matrix")
    assert rates(given) == [1000, 2000, 3000]
    assert numbers(result) == [(1, "sustained"), (2, "not_sustained"), (3, "sustained")]
    assert [row.folder for row in result.cells] == ["cells/001/run", "cells/002/run", "cells/003/run"]
    assert (result.cells[0].report, result.finished) == ("cells/001/run/report.html", True)
    assert read_study(folder, MATRIX) == result
    assert rates([with_settings(result.experiment, row.settings) for row in result.cells]) == [1000, 2000, 3000]
    assert str(tmp_path) not in str(result.experiment)
    assert read(folder / "experiment.toml") == matrix_experiment(tmp_path)
    assert pq.read_table(folder / "cells.parquet").column("load.rate").to_pylist() == [1000.0, 2000.0, 3000.0]
    assert (folder / "cells.csv").read_text().splitlines()[0].startswith('"number","load.rate","repetition","verdict"')
    assert (observer.began, observer.cells) == ([([], 3)], list(result.cells))


def test_a_stopped_matrix_keeps_what_ended_and_goes_on(run: Run) -> None:
    """Ctrl-C in the second cell ends the matrix; --resume runs it again, and the third."""
    stopped, *_ = run("sustained", KeyboardInterrupt())
    assert (numbers(stopped), stopped.finished) == ([(1, "sustained"), (2, "interrupted")], False)
    result, given, observer = run("undecided", "sustained", resume=stopped.folder)
    assert (rates(given), observer.began) == ([2000, 3000], [([1, 2], 2)])
    assert numbers(result) == [(1, "sustained"), (2, "undecided"), (3, "sustained")]
    assert result.cells[0] == stopped.cells[0]
    assert (result.finished, result.start_time) == (True, stopped.start_time)


def test_a_kill_between_two_cells_loses_none(tmp_path: Path, run: Run) -> None:
    """A killed matrix has no row of the cell that ran; its figures are written after each."""
    with pytest.raises(SystemExit):
        run("sustained", SystemExit(9))
    (folder,) = tmp_path.iterdir()
    assert [row["number"] for row in json.loads((folder / MATRIX).read_text())["cells"]] == [1]
    experiment = stored_experiment(str(folder), matrix_experiment(tmp_path))
    result, given, _ = run("sustained", "sustained", experiment=experiment, resume=str(folder))
    assert (len(given), result.finished) == (2, True)


def test_a_finished_matrix_runs_nothing_again(run: Run) -> None:
    """But named cells that decided nothing are repeated; cells that decided something never are."""
    folder = run("sustained", "invalid", "undecided")[0].folder
    result, given, _ = run(resume=folder)
    assert (len(result.cells), given) == (3, [])
    assert plan_matrix(stored_experiment(folder, None), None, folder).cells == ()
    again, given, _ = run("sustained", resume=folder, numbers="1,2")
    assert rates(given) == [2000]
    assert numbers(again) == [(1, "sustained"), (2, "sustained"), (3, "undecided")]


def test_a_look_repeats_a_disturbed_cell_once(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its second verdict stands. A look without time for it repeats nothing, as a whole experiment."""
    quick = matrix_experiment(tmp_path).model_copy(update={"quick": Quick(look=True)})
    assert quick.is_quick_look
    result, given, _ = run("invalid", "sustained", "invalid", "invalid", "sustained", experiment=quick)
    assert rates(given) == [1000, 1000, 2000, 2000, 3000]
    assert numbers(result) == [(1, "sustained"), (2, "invalid"), (3, "sustained")]
    assert numbers(run("invalid", "sustained", "sustained")[0])[0] == (1, "invalid")
    seconds = plan_matrix(quick).seconds
    for look_s, repeated in ((seconds + 60.0, True), (seconds - 1.0, False)):
        monkeypatch.setattr(matrix_module, "LOOK_S_MAX", look_s)
        _, given, _ = run("invalid", *["sustained"] * (2 + repeated), experiment=quick)
        assert (len(given) > 3) == repeated


def test_only_named_cells_run(run: Run) -> None:
    """The others are missing, and the matrix is not finished."""
    result, given, _ = run("sustained", "sustained", numbers="3,1")
    assert rates(given) == [1000, 3000]
    assert (numbers(result), result.planned, result.finished) == ([(1, "sustained"), (3, "sustained")], 3, False)


def test_random_order_is_the_same_after_a_stop(tmp_path: Path, run: Run) -> None:
    """The rest of the same order. The stored experiment is what was requested."""
    experiment = matrix_experiment(tmp_path, order="random", seed=4, repeat=2)
    result, whole, _ = run(*["sustained"] * 6, experiment=experiment)
    stopped, first, _ = run("sustained", "sustained", KeyboardInterrupt(), experiment=experiment)
    _, rest, _ = run(*["sustained"] * 4, resume=stopped.folder)
    assert rates([*first[:2], *rest]) == rates(whole)
    file = Path(result.folder) / "experiment.toml"
    assert to_toml(read(file)) == file.read_text()


def test_every_cell_needs_its_resources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first one runs, and before a folder is made."""
    require_machine = Mock(side_effect=MachineError("no such cluster"))
    monkeypatch.setattr(matrix_module, "require_machine", require_machine)
    with pytest.raises(MachineError):
        run_matrix(matrix_experiment(tmp_path, parallelism=[1, 2]), RecordingObserver())
    assert sorted(one.experiment.parallelism for one in require_machine.call_args.args) == [1] * 3 + [2] * 3
    assert list(tmp_path.iterdir()) == []


def test_two_processes_do_not_run_one_matrix(run: Run) -> None:
    """They would overwrite each other's rows."""
    folder = run("sustained", KeyboardInterrupt())[0].folder
    with try_lock(Path(folder) / LOCK), pytest.raises(InputError, match="another process is still running"):
        run(resume=folder)


def test_another_folder_or_file_is_no_matrix_to_resume(tmp_path: Path, run: Run) -> None:
    """The way out says how to go on."""
    with pytest.raises(InputError, match=r"must be the folder of a matrix, which holds a matrix\.json"):
        stored_experiment(str(tmp_path), None)
    folder = run(*["sustained"] * 3)[0].folder
    assert stored_experiment(folder, matrix_experiment(tmp_path)) == matrix_experiment(tmp_path)
    with pytest.raises(InputError, match="must be the folder of the experiment in FILE") as refusal:
        stored_experiment(folder, matrix_experiment(tmp_path, repeat=2))
    assert refusal.value.problems[0].way_out == f"leave FILE out: streamgauge experiment --resume {folder}"


def test_data_that_changed_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """Cells before and after would answer different questions. Relative paths are found from another place."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("user_id,gem_pack_id,price\n1,2,3\n")
    experiment = build({**matrix_experiment(tmp_path / "runs").model_dump(), "parameters": {"data": "rows.csv"}})
    folder = run("sustained", KeyboardInterrupt(), experiment=experiment)[0].folder
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    stored = stored_experiment(folder, None)
    assert len(plan_matrix(stored, None, folder).cells) == 2
    (tmp_path / "rows.csv").write_text("user_id,gem_pack_id,price\n1,2,4\n")
    with pytest.raises(InputError, match="must be unchanged since that run"):
        run_matrix(stored, RecordingObserver(), resume=folder)


PAPER = {"work": "Paper 2018", "table": "table I", "hardware": "two nodes", "published": "table.csv"}


def test_an_experiment_with_a_paper_has_cells_and_its_table(tmp_path: Path, run: Run) -> None:
    """Also without a matrix. The rows are in the result, so that a stopped one needs the file no more."""
    (table := tmp_path / "table.csv").write_text("system,latency_avg_s\nSpark,3.6\n")
    values = {**matrix_experiment(tmp_path / "runs").model_dump(exclude={"matrix"})}
    experiment = build({**values, "paper": {**PAPER, "published": str(table)}})
    stopped, (given,), _ = run(KeyboardInterrupt(), experiment=experiment)
    assert (stopped.published.columns, stopped.published.rows) == (("system", "latency_avg_s"), (("Spark", "3.6"),))
    assert (given.paper, given.matrix) == (None, None)
    table.unlink()
    result, *_ = run("sustained", resume=stopped.folder)
    assert (result.planned, result.finished, result.published) == (1, True, stopped.published)


def test_a_papers_problems_are_among_those_of_the_cells(tmp_path: Path, run: Run) -> None:
    """Before anything is written."""
    values = matrix_experiment(tmp_path, **{"parameters.nothing": [1]}).model_dump()
    with pytest.raises(InputError) as refusal:
        run(experiment=build({**values, "paper": PAPER}))
    assert {problem.setting for problem in refusal.value.problems} == {"paper.published", "set nothing"}
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused_leaves_no_folder(tmp_path: Path, run: Run) -> None:
    """Every problem of every cell, each once, before anything is written or performed."""
    experiment = matrix_experiment(tmp_path, **{"load.frontier": ["common", "free"], "parameters.nothing": [1]})
    with pytest.raises(InputError) as refusal:
        run(experiment=experiment)
    rules = {problem.setting: problem.rule for problem in refusal.value.problems}
    assert "(cells 2, 4, 6 of the matrix)" in rules["load.frontier"]
    assert "of the matrix" not in rules["set nothing"]
    assert list(tmp_path.iterdir()) == []


def test_a_plan_has_every_cell_with_its_seconds(tmp_path: Path) -> None:
    """In the order in which they would run; nothing is written."""
    plan = plan_matrix(matrix_experiment(tmp_path, repeat=2), "1,5")
    assert [(cell.number, cell.settings, cell.repetition) for cell in plan.cells] == [
        (1, {"load.rate": "1k"}, 1), (5, {"load.rate": "2k"}, 2)
    ]  # fmt: skip
    assert all(cell.seconds is not None and 5 < cell.seconds < 20 for cell in plan.cells)
    assert plan.seconds == sum(cell.seconds or 0 for cell in plan.cells)
    assert list(tmp_path.iterdir()) == []
