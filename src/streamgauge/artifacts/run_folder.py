"""Run folders, with everything about one run, or about one study and its trials.

    runs/<utc time>-<workload>-<engine>/
        experiment.toml     the complete experiment
        result.json         the result; "interrupted" until the verdict replaces it
        series.parquet      per second (see series_files.py)
        latency.hlog        HdrHistogram log, one tag per kind of latency (see hlog.py)
        verification.json   the comparison of the results with the expected ones
        results.parquet     with --keep-results: every result; results-<sink>.parquet if there are several sinks
        report.html         made from these files (see report/)
        engine/             output of the SUT: logs, and tables of its own reports (see series_files.py)
        trials/NN/          a study's trials, each a run folder
        cells/NNN/          the cells of a matrix or of scale, each with a run folder or the folder of a study

The driver writes each file beside its place and renames it, so a file is complete or absent; all but results.parquet
are synced before. Logs are exceptions. A run that is killed at any time leaves a readable folder.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

import pyarrow as pa
from pydantic import ValidationError

from streamgauge.artifacts.atomic_write import OUT, RUN, disk, write_table, write_text
from streamgauge.artifacts.series_files import SERIES, conform, read_table
from streamgauge.config.experiment import Experiment
from streamgauge.config.experiment_file import to_toml
from streamgauge.core.errors import (
    InputError,
    Problem,
    Rule,
    faults_of,
    first_broken,
)
from streamgauge.core.exit_codes import ExitCode
from streamgauge.core.formatting import format_size
from streamgauge.results.breakdown import LatencyBreakdown
from streamgauge.results.codes import Cause
from streamgauge.results.matrix import MatrixResult
from streamgauge.results.profile import OperatorProfile, ProfileRequest
from streamgauge.results.run import Result, Verification
from streamgauge.results.scalability import ScaleResult
from streamgauge.results.verdict import Verdict

Reopened = TypeVar("Reopened", MatrixResult, ScaleResult)
StudyResult = LatencyBreakdown | MatrixResult | OperatorProfile | ScaleResult

STARTED = "The run has no verdict: it is still running, or it was killed."


class Study(NamedTuple):
    """A kind of study: its command, a description of its folder, and the model of its file."""

    command: str
    what: str
    model: type[StudyResult]


CHARACTERIZATION, ANATOMY, MATRIX, SCALE = "characterization.json", "anatomy.json", "matrix.json", "scale.json"
STUDIES = {
    CHARACTERIZATION: Study("characterize", "a characterization, which has no trial", OperatorProfile),
    ANATOMY: Study("anatomy", "an anatomy, whose trials are below it", LatencyBreakdown),
    MATRIX: Study("experiment", "a matrix, whose cells are below it", MatrixResult),
    SCALE: Study("scale", "a scalability study, whose trials are below it", ScaleResult),
}
"""The kinds of studies by the file in their folder that replaces result.json."""
_FILES = (
    "experiment.toml", "result.json", "series.parquet", "latency.hlog", "verification.json", "report.html",
    *STUDIES,
)  # fmt: skip


FREE_BYTES = 64 * 2**20
"""Room for the files of some runs without --keep-results, and for an engine's log."""


def place_problems(root: Path, is_made: bool) -> list[Problem]:
    """Why no run folder can stand below `root`. `is_made`: whether the folders above it are created too."""
    existing = next((path for path in (root, *root.absolute().parents) if path.exists()), Path("/"))
    above = is_made or root.absolute().parent.is_dir()
    problems = first_broken(
        Rule(existing.is_dir(), "out", "must be a folder, and a file has that name", str(root), "--out DIR"),
        Rule(above, "out", "must be in an existing folder", str(root), "--out DIR with a folder you may write to"),
        Rule(os.access(existing, os.W_OK), "out", f"must be a writable folder ({existing} is not)", str(root),
             "--out DIR"),
    )  # fmt: skip
    if not problems and (free := shutil.disk_usage(existing).free) < FREE_BYTES:
        rule, way_out = f"must have {format_size(FREE_BYTES)} free", "free some space, or --out DIR on a larger disk"
        problems.append(Problem("out", rule, f"{format_size(free)} in {existing}", way_out, ExitCode.ENVIRONMENT))
    return problems


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run; `path` exists and has a readable result.json."""

    path: Path

    @classmethod
    def create(cls, root: str | Path, workload: str, engine: str, now: datetime) -> RunFolder:
        """A new folder with a unique name under `root`, named after `now` (aware) in UTC.

        Creates `root`, but not its parents.
        Raises `InputError` if `root` cannot hold folders, `MachineError` if the disk is full.
        """
        folder = cls(new_folder(root, workload, engine, now))
        folder._begin(folder.path.name, workload, engine, now)
        return folder

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """The run folder at `path`, or the folder of the file `path`. Raises `InputError` if it does not exist."""
        path = Path(path)
        folder = cls(path.parent if path.is_file() and path.name in _FILES else path)
        folder.read_result()
        return folder

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def engine(self) -> Path:
        """The subfolder for the SUT's output, created on first use."""
        with disk(self.path / "engine"):
            (self.path / "engine").mkdir(exist_ok=True)
        return self.path / "engine"

    def trial(self, number: int, now: datetime) -> RunFolder:
        """The run folder `trials/NN` of a study. A resumed study reuses its folders."""
        path = self.path / "trials" / f"{number:02d}"
        with disk(path):
            path.mkdir(parents=True, exist_ok=True)
        folder = RunFolder(path)
        if not (path / "result.json").exists():
            study = self.read_result()
            folder._begin(f"{study.run_id}/trials/{path.name}", study.workload, study.engine, now)
        return folder

    def trials(self) -> tuple[RunFolder, ...]:
        """The trials of a study in the order of their numbers; empty for a single run."""
        paths = [path.parent for path in self.path.glob("trials/*/result.json") if path.parent.name.isdecimal()]
        return tuple(RunFolder(path) for path in sorted(paths, key=lambda path: int(path.name)))

    def write_experiment(self, experiment: Experiment, job_files: Mapping[str, str] | None = None) -> None:
        """Writes the experiment. Until there is a verdict, result.json gets it too, with the digests of a user job."""
        self._write("experiment.toml", to_toml(experiment))
        result = self.read_result()
        if result.verdict.cause == Cause.UNFINISHED:
            self.write_result(result.model_copy(update={
                "experiment": experiment.model_dump(mode="json"), "isolation": experiment.isolation,
                "tuning": experiment.tuning, "quick": experiment.is_quick_look, "job_files": dict(job_files or {}),
            }))  # fmt: skip

    def write_result(self, result: Result) -> None:
        self._write("result.json", result.to_json() + "\n")

    def write_verification(self, verification: Verification) -> None:
        self._write("verification.json", verification.model_dump_json(indent=2) + "\n")

    def write_hlog(self, text: str) -> None:
        self._write("latency.hlog", text)

    def forget_answers(self) -> None:
        """Removes the files of a stopped trial, because the repeated trial may not write all of them."""
        for answers in ("latency.hlog", "verification.json", "results*.parquet", "engine/*.parquet"):
            for path in self.path.glob(answers):
                path.unlink()

    def write_series(self, table: pa.Table) -> None:
        """Writes the per-second series."""
        write_table(self.path / SERIES, conform(table))

    def write_engine_table(self, name: str, table: pa.Table) -> None:
        """Writes a table of the engine's own reports (`series_files.TABLES`) to engine/NAME.parquet."""
        write_table(self.engine / f"{name}.parquet", table)

    def read_result(self) -> Result:
        """The result. Raises `InputError` if this is no run folder, or its result cannot be read."""
        path = self.path / "result.json"
        try:
            return Result.model_validate(json.loads(path.read_bytes()))
        except (FileNotFoundError, NotADirectoryError):
            rule = "must be a run folder, which holds a result.json"
            way_out = "a folder under runs/, or trials/NN of a search"
            if (study := next((file for file in STUDIES if (self.path / file).is_file()), None)) is not None:
                rule = f"must be a run folder, and this is {STUDIES[study].what}"
                way_out = f"streamgauge report {self.path} shows it, and {study} holds its figures"
        except PermissionError:
            rule, way_out = "must be readable", f"look at who may read {path}"
        except ValueError as error:
            rule, instead = _unreadable(path.name, error)
            way_out = f"{instead}, or run it again"
        raise InputError(Problem("RUN", rule, str(self.path), way_out))

    def read_series(self) -> pa.Table:
        """The per-second series; no rows if the run ended before it was written."""
        return read_table(self.path, SERIES)

    def read_engine_table(self, name: str) -> pa.Table:
        """A table of the engine's own reports (`series_files.TABLES`); no rows if the engine reported none."""
        return read_table(self.path, f"engine/{name}.parquet")

    def read_verification(self) -> Verification | None:
        """The comparison of the results, or None if the run ended before it was written."""
        path = self.path / "verification.json"
        with self.whole(path.name):
            return Verification.model_validate(json.loads(path.read_bytes())) if path.exists() else None

    @contextmanager
    def whole(self, file: str) -> Iterator[None]:
        """Turns a ValueError about the content of a file into an InputError that names it."""
        try:
            yield
        except ValueError as error:
            rule, instead = _unreadable(file, error)
            raise InputError(Problem("RUN", rule, str(self.path / file), f"{instead}, or run it again")) from None

    def read_hlog(self) -> str | None:
        """The HdrHistogram log, or None if the run ended before it was written."""
        path = self.path / "latency.hlog"
        return path.read_text() if path.exists() else None

    def _begin(self, run_id: str, workload: str, engine: str, now: datetime) -> None:
        verdict = Verdict(
            value="interrupted", cause=Cause.UNFINISHED, sentence=STARTED,
            advice="Run it again and do not use the figures here.",
        )  # fmt: skip
        self.write_result(
            Result(
                run_id=run_id,
                start_time=now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
                workload=workload,
                engine=engine,
                isolation="shared",
                experiment={},
                verdict=verdict,
                folder=str(self.path),
            )
        )

    def _write(self, name: str, text: str) -> None:
        write_text(self.path / name, text, OUT)


def new_folder(root: str | Path, workload: str, kind: str, now: datetime) -> Path:
    """A new, empty folder under `root`, named after a workload and an engine or a study. Errors as in `create`."""
    root = Path(root)
    with disk(root):
        root.mkdir(exist_ok=True)
    file = Path(workload)
    # Programs of the user's own are all called so, and their folder tells them apart.
    name = file.absolute().parent.name if file.name == "program.toml" else file.stem
    name = f"{now.astimezone(UTC):%Y-%m-%dT%H-%M-%SZ}-{_plain(name)}-{_plain(kind)}"
    for number in range(1, 10_000):
        path = root / (name if number == 1 else f"{name}-{number}")
        with disk(root), suppress(FileExistsError):
            path.mkdir()
            return path
    raise InputError(Problem("out", "must have room for another run of this second", str(root), "another --out"))


def write_study(folder: Path, file: str, study: StudyResult | ProfileRequest) -> None:
    """Writes a study's findings so far to its `file` in a folder."""
    write_text(folder / file, study.to_json() + "\n", OUT)


def read_study(folder: Path, file: str) -> StudyResult:
    """Reads a study from its `file`. Raises `InputError` if it is too incomplete, or another version wrote it."""
    study = STUDIES[file]
    try:
        stored = json.loads((folder / file).read_bytes())
        # A breakdown can be shown from its first trial on, a grid even before its first cell, a profile only whole.
        if stored["finished"] or stored.get("trials") or file in (MATRIX, SCALE):
            return study.model.model_validate(stored)
        rule = f"must hold {study.what.partition(',')[0]} with something to show: this one was not finished"
        way_out = f"streamgauge {study.command} {stored['workload']}"
    except (KeyError, TypeError, ValueError) as error:
        rule, _ = _unreadable(file, error)
        way_out = f"streamgauge {study.command} makes one anew"
    raise InputError(Problem(RUN.setting, rule, str(folder), way_out))


def reopen(folder: Path, file: str, model: type[Reopened]) -> Reopened:
    """Reads a study that goes on, in the folder in which it is now."""
    study = read_study(folder, file)
    assert isinstance(study, model)
    return study.model_copy(update={"folder": str(folder)})


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text) or "unnamed"


def _unreadable(file: str, error: Exception) -> tuple[str, str]:
    """(what is wrong with a file of a run folder that could not be read, what can be read instead)."""
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError) or not file.endswith(".json"):
        return f"{file} must be whole, and this one is damaged or cut off ({error})", "a copy of the folder"
    fault = f"{type(error).__name__}: {error}"
    if isinstance(error, ValidationError):
        first = faults_of(error)[0]
        fault = f"{first.name or 'file'}: {first.rule}"
    rule = f"{file} must be of this version of streamgauge ({fault})"
    return rule, f"the version that wrote it (environment in {file})"
