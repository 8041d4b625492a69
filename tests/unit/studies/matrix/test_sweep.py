"""A sweep runs its loads, after a search if 100 % is not known, and finds their knee. No engine is started."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.artifacts.run_folder import MATRIX, read_study
from streamgauge.config.experiment import Experiment, build
from streamgauge.config.experiment_file import read
from streamgauge.config.matrix import expand
from streamgauge.core.errors import InputError
from streamgauge.results.matrix import CellFigures, MatrixCell, MatrixResult, Sweep
from streamgauge.studies.matrix import cells
from streamgauge.studies.matrix.matrix import stored_experiment
from streamgauge.studies.matrix.quick_look import quick_look
from streamgauge.studies.matrix.sweep import exit_code, plan_sweep, run_sweep, with_knee
from streamgauge.studies.study_folder import LOCK
from streamgauge.system.disk import try_lock
from tests.unit.helpers_refusals import problem_of
from tests.unit.studies.matrix.helpers_matrix import (
    RecordingObserver,
    performing,
    queue,
    sweep_experiment,
)

CAPACITY = 8000.0
Run = Callable[..., MatrixResult]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A sweep in a folder of the test's own, whose trials `perform` makes up."""

    def one(perform: Any, experiment: Experiment | None = None, observer: Any = None, **sweep: Any) -> MatrixResult:
        monkeypatch.setattr(cells, "perform", perform)
        return run_sweep(experiment or sweep_experiment(tmp_path, **sweep), observer or RecordingObserver())

    return one


def resumed(result: MatrixResult, **values: Any) -> Experiment:
    return build({"command": "sweep", "workload": "", "search": {"resume": result.folder}, **values})


def of(result: MatrixResult) -> Sweep:
    assert result.sweep is not None
    return result.sweep


def searches(result: MatrixResult) -> list[CellFigures]:
    return [one for one in [of(result).search] if one is not None]


def test_a_search_finds_the_rate_whose_shares_run(run: Run, tmp_path: Path) -> None:
    """Latency 1 / (1 - load) has its knee at half of the load. All of it lies in one folder of a matrix."""
    perform, given = queue(CAPACITY)
    observer = RecordingObserver()
    result = run(perform, observer=observer)
    (folder,) = tmp_path.iterdir()
    assert folder.name.endswith("-identity-sweep")
    assert [one.command for one in given] == ["sustain", *["run"] * 11]
    assert (given[0].search.quick, given[0].load.duration) == (True, 4)
    assert [one.load.rate for one in given[1:]] == [800.0 * n for n in range(1, 12)]
    assert [row.verdict for row in result.cells] == [*["sustained"] * 10, "not_sustained"]
    assert (of(result).full_per_s, of(result).knee) == (CAPACITY, 0.5)
    assert of(result).candidates == pytest.approx([n / 10 for n in range(1, 11)])
    assert ([one.report for one in searches(result)], exit_code(result)) == (["cells/000/run/report.html"], 0)
    assert (read_study(folder, MATRIX), observer.cells) == (result, list(result.cells))
    assert observer.began == [([], 11)] * 2
    assert read(folder / "experiment.toml") == sweep_experiment(tmp_path)
    with (folder / "cells.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [(float(row["load"]), float(row["load.rate"])) for row in rows[:2]] == [(0.1, 800), (0.2, 1600)]


def test_a_given_rate_needs_no_search(run: Run) -> None:
    perform, given = queue(CAPACITY)
    result = run(perform, of="10k", loads="50%,80%,90%")
    assert [(one.command, one.load.rate) for one in given] == [("run", 5000), ("run", 8000), ("run", 9000)]
    assert (of(result).search, of(result).knee, of(result).candidates) == (None, None, (0.5, 0.8))
    assert exit_code(result) == 1, "90 % of what was stated is not sustained"


VERDICTS = ("sustained", "not_sustained", "undecided", "invalid")
POINTS = st.lists(
    st.tuples(st.sampled_from((*["sustained"] * 4, *VERDICTS)), st.none() | st.floats(1e3, 1e9)), min_size=1, max_size=9
)


def swept(points: list[tuple[str, float | None]], finished: bool = True) -> MatrixResult:
    """A sweep whose loads ended so: verdict and p99 of 10 %, 20 % and so on."""
    rows = [
        MatrixCell(number=n, settings={}, repetition=1, verdict=verdict, event_time_p99_us=p99)
        for n, (verdict, p99) in enumerate(points, 1)
    ]
    sweep = Sweep(loads=tuple(n / 10 for n in range(1, len(points) + 1)), full_per_s=1000.0)
    return MatrixResult(
        command="sweep", workload="identity", engine="known", varied=("load.rate",), planned=len(rows), environment={},
        start_time="", folder="", cells=rows, finished=finished, sweep=sweep,
    )  # fmt: skip


@given(POINTS)
def test_the_knee_has_the_greatest_power_of_the_loads_that_count(points: list[tuple[Any, float | None]]) -> None:
    """It is sustained, below the first load that was not, has a p99, and no other such load has more rate / p99."""
    sweep = of(with_knee(swept(points)))
    below = next((n for n, (verdict, _) in enumerate(points) if verdict == "not_sustained"), len(points))
    count = [(n / 10, p99) for n, (verdict, p99) in enumerate(points[:below], 1) if verdict == "sustained" and p99]
    assert sweep.candidates == tuple(load for load, _ in count)
    assert (sweep.knee is None) == (len(count) < 3)
    if sweep.knee is not None:
        assert sweep.knee / dict(count)[sweep.knee] == max(load / p99 for load, p99 in count)


@given(POINTS, st.floats(0.01, 100))
def test_the_knee_does_not_depend_on_the_unit_of_time(points: list[tuple[Any, float | None]], factor: float) -> None:
    found, scaled = (
        of(with_knee(swept([(verdict, p99 and p99 * by) for verdict, p99 in points]))) for by in (1, factor)
    )
    power = {n / 10: n / p99 for n, (_, p99) in enumerate(points, 1) if p99}
    assert found.candidates == scaled.candidates
    assert found.knee == scaled.knee or power[found.knee or 0] == pytest.approx(power[scaled.knee or 0])


def test_a_sweep_that_goes_on_has_no_knee_yet() -> None:
    """The loads that are missing might have it, and a repeated load may change it."""
    points: list[tuple[str, float | None]] = [("sustained", 1e4)] * 4
    found = with_knee(swept(points))
    assert of(found).knee == 0.4
    again = with_knee(found.model_copy(update={"finished": False}))
    assert (of(again).knee, of(again).candidates) == (None, ())


@pytest.mark.parametrize(
    ("ends", "code"),
    [
        (("sustained", "sustained", "not_sustained"), 0),
        (("sustained", "sustained", "invalid"), 0),
        (("sustained", "not_sustained", "not_sustained"), 1),
        (("sustained", "undecided", "not_sustained"), 3),
        (("invalid", "not_sustained", "sustained"), 4),
        (("sustained", "sustained", KeyboardInterrupt()), 130),
    ],
)
def test_the_exit_code_is_that_of_the_worst_load_up_to_100_percent(run: Run, ends: Any, code: int) -> None:
    """A load beyond may fail as it likes. A sweep that was stopped says so."""
    result = run(performing(*ends)[0], of="1k", loads="50%,100%,120%")
    assert (exit_code(result), len(result.cells)) == (code, 3)


def test_a_stopped_sweep_goes_on_and_repeats_what_decided_nothing(run: Run) -> None:
    """Also by `experiment --resume`; what decided something stays."""
    stopped = run(performing("sustained", "undecided", KeyboardInterrupt())[0], of="1k", loads="50%,60%,70%,80%")
    assert (stopped.finished, exit_code(stopped), of(stopped).knee) == (False, 130, None)
    assert [cell.number for cell in plan_sweep(resumed(stopped)).cells] == [2, 3, 4]
    perform, given = queue(CAPACITY)
    result = run(perform, stored_experiment(stopped.folder, None))
    assert [one.load.rate for one in given] == [600, 700, 800]
    assert (result.finished, result.cells[0], exit_code(result)) == (True, stopped.cells[0], 0)
    again, trials = queue(CAPACITY)
    assert (run(again, resumed(result)).cells, trials) == (result.cells, [])


def test_a_search_that_was_stopped_goes_on(run: Run, tmp_path: Path) -> None:
    """In its own folder. Until it has ended nothing else runs, and its code is that of the sweep."""
    stopped = run(queue(CAPACITY, KeyboardInterrupt())[0])
    assert (stopped.cells, stopped.finished, of(stopped).full_per_s, exit_code(stopped)) == ((), False, None, 130)
    assert plan_sweep(resumed(stopped)).search_s is not None
    perform, given = queue(CAPACITY)
    result = run(perform, resumed(stopped))
    assert given[0].search.resume == str(Path(stopped.folder) / "cells" / "000" / "run")
    assert (len(given), result.finished, of(result).knee) == (12, True, 0.5)


@pytest.mark.parametrize(("searched", "code"), [("not_sustained", 1), ("undecided", 3), ("invalid", 4)])
def test_without_a_sustained_rate_no_load_runs(run: Run, searched: str, code: int) -> None:
    """The search decides the exit code."""
    perform, given = queue(CAPACITY, searched)
    result = run(perform)
    assert (len(given), result.finished, exit_code(result)) == (1, False, code)
    assert [one.sentence for one in searches(result)] == ["found so"]


@pytest.mark.parametrize(("duration", "slide", "span_s"), [("20s", "1s", 20), ("400s", "1s", 30), ("400s", "30s", 400)])
def test_a_search_is_short_unless_its_windows_need_the_whole_span(
    run: Run, tmp_path: Path, duration: str, slide: str, span_s: float
) -> None:
    """A span for a p99 would make each of its trials as long."""
    perform, given = queue(CAPACITY)
    run(perform, build({
        "command": "sweep", "workload": "windowed_aggregation", "engine": "known", "out": str(tmp_path),
        "load": {"duration": duration, "warmup": "1s"}, "parameters": {"range": "30s", "slide": slide},
        "sweep": {"loads": "50%"},
    }))  # fmt: skip
    assert [one.load.duration for one in given] == [span_s, float(duration.removesuffix("s"))]


def test_a_plan_has_cells_and_minutes(tmp_path: Path) -> None:
    """With the search where 100 % is not known, whose rates are then unknown too. Windows say what a p99 needs."""
    known, unknown = (plan_sweep(sweep_experiment(tmp_path, loads="50%,100%", **more)) for more in ({"of": "2k"}, {}))
    assert [cell.settings for cell in known.cells] == [{"load.rate": 1000.0}, {"load.rate": 2000.0}]
    assert [cell.settings for cell in unknown.cells] == [{"load.rate": None}] * 2
    assert (known.search_s, known.sweep and known.sweep.p99_needs_s) == (None, None)
    assert unknown.search_s is not None
    assert unknown.seconds == pytest.approx(unknown.search_s + known.seconds)
    windows = sweep_experiment(tmp_path, of="2k").model_copy(update={"workload": "windowed_aggregation"})
    load = windows.load.model_copy(update={"duration": 60.0})
    plan = plan_sweep(windows.model_copy(update={"load": load}))
    assert plan.sweep is not None
    assert plan.sweep.p99_needs_s == 400
    assert list(tmp_path.iterdir()) == []


def test_what_contradicts_a_sweep_is_refused(run: Run, tmp_path: Path) -> None:
    """Other settings, a folder of another study, another process that runs it, and settings of other commands."""
    result = run(queue(CAPACITY)[0], of="1k", loads="50%")
    assert problem_of(plan_sweep, resumed(result, sweep={"loads": "60%"})).setting == "sweep.loads"
    with try_lock(Path(result.folder) / LOCK), pytest.raises(InputError, match="another process is still running"):
        run(queue(CAPACITY)[0], resumed(result))
    (matrix := tmp_path / "matrix").mkdir()
    (matrix / MATRIX).write_text((Path(result.folder) / MATRIX).read_text())
    (matrix / "experiment.toml").write_text('workload = "identity"')
    assert problem_of(plan_sweep, resumed(result.model_copy(update={"folder": str(matrix)}))).setting == "search.resume"
    shaped = {**sweep_experiment(of="1k").model_dump(mode="json", exclude_none=True), "load": {"rate": "5k"}}
    assert problem_of(plan_sweep, build(shaped)).setting == "load.rate"
    with pytest.raises(InputError, match="has a grid of its own"):
        cells.check_cells(expand(sweep_experiment()))


@pytest.mark.parametrize(("sweep", "rate"), [({"of": "2k"}, 2000), ({}, 3000)])
def test_a_quick_look_has_a_short_trial_at_each_load(sweep: dict[str, str], rate: float) -> None:
    """Of the rate that is stated, else of the one for the look, which must be given then."""
    values = {"command": "sweep", "workload": "identity", "engine": "known", "sweep": {"loads": "50%,100%", **sweep}}
    look = quick_look(build({**values, "quick": {"rate": "3k", "duration": "4s", "warmup": "1s"}}))
    assert look.matrix is not None
    assert (look.command, look.load.duration) == ("run", 4)
    assert [one["load.rate"] for one in look.matrix.include] == [rate / 2, rate]
    assert sweep or problem_of(quick_look, build(values)).setting == "quick.rate"
