"""Run folders: names, round trips, refusals, and that a kill at any moment leaves a folder that can be read."""

import errno
import os
import re
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.artifacts.run_folder import FREE_BYTES, STARTED, RunFolder, place_problems
from streamgauge.config.experiment import Experiment
from streamgauge.config.experiment_file import read
from streamgauge.core.errors import InputError, MachineError
from streamgauge.core.exit_codes import ExitCode
from tests.unit.helpers_refusals import problem_of
from tests.unit.report.conftest import made_up_result, made_up_series


def test_name_is_utc_time_workload_engine(tmp_path: Path, now: datetime) -> None:
    """The folder is named after the time in UTC, whatever zone `now` is given in. Two runs of the same second get
    folders of their own. A job in a file is named without its folders, its ending and characters that paths dislike.
    """
    elsewhere = now.astimezone(timezone(timedelta(hours=5)))
    folders = [RunFolder.create(tmp_path / "runs", "word_count", "spark", elsewhere) for _ in range(3)]
    assert folders[0].path == tmp_path / "runs" / "2026-01-02T03-04-05Z-word_count-spark"
    assert len({folder.path for folder in folders}) == 3
    assert folders[0].engine.is_dir()
    assert RunFolder.create(tmp_path, "jobs/my job.py", "spark", now).name.endswith("Z-my_job-spark")


def _failing(number: int) -> Mock:
    return Mock(side_effect=OSError(number, os.strerror(number)))


@pytest.mark.parametrize(("free", "codes"), [(FREE_BYTES, []), (FREE_BYTES - 1, [ExitCode.ENVIRONMENT])])
def test_a_run_folder_needs_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, codes: list[ExitCode]
) -> None:
    """On the disk of the nearest folder that exists."""
    usage = Mock(return_value=Mock(free=free))
    monkeypatch.setattr(shutil, "disk_usage", usage)
    assert [one.code for one in place_problems(tmp_path / "runs", is_made=False)] == codes
    assert usage.call_args.args == (tmp_path,)


@pytest.mark.parametrize("root", ["gone/runs", "file", "file/runs"])
def test_impossible_root_is_refused(tmp_path: Path, now: datetime, root: str) -> None:
    """A missing parent, a file in the way, a file as parent: one clear refusal that names --out."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--out"):
        RunFolder.create(tmp_path / root, "a", "b", now)


def test_a_place_in_which_nothing_can_be_made_is_no_missing_folder(
    tmp_path: Path, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `/proc`: the system says that there is no such file, but the folder above is there."""
    monkeypatch.setattr(os, "mkdir", _failing(errno.ENOENT))
    for root in (tmp_path / "new", tmp_path):
        problem = problem_of(RunFolder.create, root, "word_count", "spark", now)
        assert (problem.setting, problem.got) == ("out", str(root))
        assert problem.way_out == "--out DIR in a folder you may write to"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_unwritable_root_is_refused(
    tmp_path: Path, now: datetime, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """What cannot be written to is the user's to change."""
    monkeypatch.setattr(Path, "mkdir", _failing(number))
    with pytest.raises(InputError, match="can be written to"):
        RunFolder.create(tmp_path / "runs", "a", "b", now)


def test_full_disk_is_the_machines_fault(run_folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk says so, keeps the old result and leaves no half file behind."""
    before = sorted(path.name for path in run_folder.path.iterdir())
    monkeypatch.setattr(os, "fsync", _failing(errno.ENOSPC))
    with pytest.raises(MachineError, match="full"):
        run_folder.write_result(made_up_result(workload="other"))
    assert run_folder.read_result().workload == "made_up_aggregation"
    assert sorted(path.name for path in run_folder.path.iterdir()) == before


def test_new_folder_is_readable_and_interrupted(tmp_path: Path, now: datetime) -> None:
    """From the first moment there is a result, and it says that nothing was judged."""
    result = RunFolder.open(RunFolder.create(tmp_path, "word_count", "spark", now).path).read_result()
    assert (result.verdict.value, result.verdict.sentence) == ("interrupted", STARTED)
    assert (result.workload, result.engine) == ("word_count", "spark")
    assert result.start_time == "2026-01-02T03:04:05.678901Z"


def test_experiment_goes_into_the_interrupted_result(tmp_path: Path, now: datetime, experiment: Experiment) -> None:
    """The experiment is in both files at once, and the file gives the same one back."""
    folder = RunFolder.create(tmp_path, "made_up_aggregation", "spark", now)
    folder.write_experiment(experiment)
    assert read(folder.path / "experiment.toml") == experiment
    assert folder.read_result().experiment == experiment.model_dump(mode="json")


def test_experiment_does_not_replace_a_judged_result(run_folder: RunFolder, experiment: Experiment) -> None:
    """A late write of the experiment leaves the judgement alone."""
    before = run_folder.read_result()
    run_folder.write_experiment(experiment)
    assert run_folder.read_result() == before


def test_results_and_tables_come_back(run_folder: RunFolder) -> None:
    """They are read as they were written, series and batches in the documented types."""
    assert run_folder.read_result() == made_up_result()
    assert run_folder.read_series().equals(made_up_series())
    assert run_folder.read_engine_table("batches").num_rows == 44


def test_columns_that_an_older_version_did_not_have_are_unknown(run_folder: RunFolder) -> None:
    """A folder from before the broker had a role of its own still opens."""
    older = run_folder.read_series().drop_columns(["broker_cpu_percent", "broker_memory_bytes"])
    pq.write_table(older, run_folder.path / "series.parquet")
    assert set(run_folder.read_series()["broker_cpu_percent"].to_pylist()) == {None}
    pq.write_table(older.drop_columns(["phase"]), run_folder.path / "series.parquet")
    with pytest.raises(InputError, match="columns phase"):  # it is never null
        run_folder.read_series()


def test_missing_files_are_empty(tmp_path: Path, now: datetime) -> None:
    """A run that did not get far has no seconds, no batches and no histogram."""
    folder = RunFolder.create(tmp_path, "a", "b", now)
    assert folder.read_series().num_rows == folder.read_engine_table("batches").num_rows == 0
    assert folder.read_hlog() is None


def test_wrong_series_is_refused(run_folder: RunFolder) -> None:
    """A column that is not documented never gets onto the disk."""
    with pytest.raises(ValueError, match="surprise"):
        run_folder.write_series(run_folder.read_series().append_column("surprise", pa.nulls(92)))
    assert "surprise" not in run_folder.read_series().column_names


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_kill_between_writes_leaves_the_old_file(
    run_folder: RunFolder, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A write that is cut off before its rename leaves the result that was there."""
    monkeypatch.setattr(os, step, Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        run_folder.write_result(made_up_result(workload="other"))
    monkeypatch.undo()
    assert RunFolder.open(run_folder.path).read_result().workload == "made_up_aggregation"


def test_open_takes_a_file_of_the_folder(run_folder: RunFolder) -> None:
    """Naming the result.json of a run is naming the run."""
    assert RunFolder.open(run_folder.path / "result.json") == run_folder


@pytest.mark.parametrize("name", ["nowhere", "", "notes.txt"])
def test_open_refuses_what_is_no_run(tmp_path: Path, name: str) -> None:
    """A path without a result is refused with what a run folder is."""
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(InputError, match="must be a run folder"):
        RunFolder.open(tmp_path / name)


@pytest.mark.parametrize(("text", "message"), [
    ("", "damaged or cut off"), ("{}", "of this version"), ("[1", "damaged or cut off"), ("[1]", "of this version"),
])  # fmt: skip
def test_open_refuses_a_result_of_another_kind(run_folder: RunFolder, text: str, message: str) -> None:
    """A result that cannot be understood is refused by one sentence."""
    (run_folder.path / "result.json").write_text(text)
    assert re.search(message, problem_of(RunFolder.open, run_folder.path).rule)


@pytest.mark.parametrize("layout", [0, 99])
def test_a_result_of_another_layout_is_refused(run_folder: RunFolder, layout: int) -> None:
    """Although it has every field of this one."""
    path = run_folder.path / "result.json"
    path.write_text(path.read_text().replace('"schema_version": 1', f'"schema_version": {layout}'))
    with pytest.raises(InputError, match=r"schema_version.*\n.*the version that wrote it"):
        RunFolder.open(run_folder.path)


def test_broken_series_is_refused(run_folder: RunFolder) -> None:
    """A series that is no Parquet file is refused by name."""
    (run_folder.path / "series.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match=r"series\.parquet"):
        run_folder.read_series()


def test_trials_are_run_folders(run_folder: RunFolder, now: datetime) -> None:
    """A study's trials lie under it in order, and asking again for one keeps what it holds."""
    for number in (10, 2, 1):
        run_folder.trial(number, now)
    run_folder.trial(2, now).write_result(made_up_result(isolation="pinned"))
    assert run_folder.trial(2, now).read_result().isolation == "pinned"
    assert [trial.name for trial in run_folder.trials()] == ["01", "02", "10"]
    assert run_folder.trial(1, now).read_result().run_id.endswith("-spark/trials/01")
