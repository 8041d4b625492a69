"""A study finds demand and capacity of simulated systems of known laws; it is resumed, and says what failed."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from streamgauge.artifacts.run_folder import SCALE, read_study
from streamgauge.config.experiment import Experiment, build
from streamgauge.config.experiment_file import read
from streamgauge.core.errors import EngineError, InputError, MachineError
from streamgauge.results.matrix import CellFigures
from streamgauge.results.run import Verification
from streamgauge.results.scalability import ScaleResult
from streamgauge.results.verdict import Check, Verdict
from streamgauge.studies.matrix import cells
from streamgauge.studies.scalability import scale as scale_module
from streamgauge.studies.scalability.answer import without_undecided
from streamgauge.studies.scalability.scale import check_scale, exit_code, scale
from streamgauge.studies.study_folder import LOCK
from streamgauge.system.disk import try_lock
from tests.unit.studies.scalability.helpers_scale import (
    LAWS,
    made,
    resumed,
    scale_experiment,
    simulated,
)

pytestmark = pytest.mark.usefixtures("quick_fits")
ONE = 7000.0

Run = Callable[..., ScaleResult]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A study in a folder of the test's own, whose trials `perform` simulates."""

    def one(experiment: Experiment | None = None, perform: Any = None, observer: Any = None, **sizes: Any) -> Any:
        monkeypatch.setattr(cells, "perform", perform or simulated(LAWS["linear"])[0])
        return scale(experiment or scale_experiment(tmp_path, **sizes), observer or Mock())

    return one


@pytest.mark.parametrize("name", LAWS)
def test_the_capacity_of_a_known_law_is_found(run: Run, name: str) -> None:
    """Within one step of the loads, in no more trials than the plan says, and with the law's parameters."""
    law, observer = LAWS[name], Mock()
    perform, trials = simulated(law)
    result: Any = run(perform=perform, observer=observer)
    assert (result.finished, result.decided, exit_code(result)) == (True, True, 0)
    assert len(trials) == len(result.cells) == observer.cell.call_count <= check_scale(scale_experiment()).trials_max
    for one in result.capacities:
        assert one.load <= law.capacity(ONE, one.resources) < one.refused <= one.load * 1.06
        assert (one.decided, one.is_bound) == (True, False)
    for load in result.demands:
        assert load.resources == next((n for n in (1, 2, 4, 8) if law.capacity(ONE, n) >= load.load), None)
    universal = next(fit for fit in result.fits if fit.law == "universal")
    if name != "knee":  # which is no Universal Scalability Law
        contention = universal.parameters["contention"]
        assert contention.low - 0.02 <= law.contention <= (contention.high or 1) + 0.02
        assert universal.r_squared > 0.98
    assert result.published == (), "the paper measured another topology"


def test_an_easy_study_ends_after_its_hardest_load_and_goes_on_from_what_it_saw(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """13 M/s for each unit of resources: the share of the first trial says that the hardest load will hold."""
    perform, trials = simulated(LAWS["linear"], 13e6)

    def busy(experiment: Experiment, observers: cells.Observers) -> CellFigures:
        observers.on_judged(Mock(record=0.9 * experiment.load.rate / 13e6 / (experiment.parallelism or 1)))
        return perform(experiment, observers)

    monkeypatch.setattr(scale_module, "busy_share", lambda resolved, record: record)
    observer = Mock(**{"cell.side_effect": [None, KeyboardInterrupt]})
    with pytest.raises(KeyboardInterrupt):
        run(perform=busy, observer=observer, resources="1,2", loads="16384..1048576")
    (folder,) = tmp_path.iterdir()
    result = run(resumed(folder), busy)
    assert [(one.parallelism, one.load.rate) for one in trials] == [(2, 131100), (2, 1048576), (1, 1048576)]
    assert [(one.load, one.is_bound, one.measured) for one in result.capacities] == [(1048576, True, True)] * 2
    assert [cell.busy_share for cell in result.cells] == pytest.approx([0.0045, 0.0363, 0.0726], abs=1e-4)


def test_every_level_needs_its_resources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first trial runs, and before a folder is made."""
    require_machine = Mock(side_effect=MachineError("no such cluster"))
    monkeypatch.setattr(scale_module, "require_machine", require_machine)
    with pytest.raises(MachineError):
        scale(scale_experiment(tmp_path), Mock())
    assert {trial.experiment.parallelism for trial in require_machine.call_args.args} == {1, 2, 4, 8}
    assert list(tmp_path.iterdir()) == []


def test_a_parameter_may_be_the_load(run: Run, tmp_path: Path) -> None:
    """A smaller window period is harder; the rate is that of every trial, and there is no published figure."""

    def perform(experiment: Experiment, observers: cells.Observers) -> CellFigures:
        slide = float(experiment.parameters["slide"].removesuffix("ms"))
        return made(experiment, "sustained" if slide * (experiment.parallelism or 1) >= 1000 else "not_sustained")

    experiment = build({
        "command": "scale", "workload": "windowed_aggregation", "engine": "known", "out": str(tmp_path),
        "load": {"rate": "2k", "warmup": "1s", "duration": "20s"}, "parameters": {"range": "4s"},
        "scale": {"resources": "1,2,4", "loads": "4s,2s,1s,500ms,250ms", "load": "slide"},
    })  # fmt: skip
    result = run(experiment, perform)
    assert (result.metric, result.parameters["range"], "slide" in result.parameters) == ("smallest slide", 4.0, False)
    assert [one.load for one in result.capacities] == [1.0, 0.5, 0.25]
    assert [one.resources for one in result.demands] == [1, 1, 1, 2, 4]
    assert (result.fits, result.published, result.load_unit) == ((), (), "s")


def hierarchy(out: Path, load: str, loads: str, **parameters: Any) -> Experiment:
    """A study of trees whose sensors measure once a second; an instance keeps up with 500 of them."""
    return build({
        "command": "scale", "workload": "scalability_hierarchical", "engine": "known", "out": str(out),
        "load": {"warmup": "2s", "duration": "10s"}, "parameters": {"frequency": 1, "range": "1s", **parameters},
        "options": {"capacity": "500"}, "scale": {"resources": "1,4", "loads": loads, "load": load},
    })  # fmt: skip


@pytest.mark.parametrize(
    ("load", "loads", "fixed", "metric", "greatest"),
    [
        ("height", "1,2,3", {"children": 10}, "greatest height", 2),
        ("children", "2,5,10", {"height": 3}, "greatest number of children", 5),
    ],
)
def test_the_greatest_hierarchy_is_found(
    run: Run, tmp_path: Path, load: str, loads: str, fixed: Any, metric: str, greatest: int
) -> None:
    """The rate grows with the number of sensors."""
    result = run(hierarchy(tmp_path, load, loads, **fixed), simulated(LAWS["linear"], 500)[0])
    assert (result.metric, result.decided) == (metric, True)
    assert [(one.load, one.is_bound) for one in result.capacities] == [(greatest, False), (result.loads[-1], True)]


@pytest.mark.parametrize(("frequency", "points"), [(1, 4), (2, 0)])
def test_keys_with_a_record_per_second_stand_beside_the_paper(
    run: Run, tmp_path: Path, frequency: int, points: int
) -> None:
    """Its figure 5 counts the same. Keys at another frequency do not."""
    experiment = build({
        "command": "scale", "workload": "scalability_sink", "engine": "known", "out": str(tmp_path),
        "load": {"warmup": "1s", "duration": "4s"}, "parameters": {"frequency": frequency},
        "scale": {"resources": "1,2", "loads": "4096,8192", "load": "keys"},
    })  # fmt: skip
    assert len(run(experiment).published) == points


def test_a_study_that_was_stopped_goes_on(run: Run, tmp_path: Path) -> None:
    """With the same answer as one that was not; the interrupted trial is made again."""
    whole, trials = simulated(LAWS["contended"])
    expected = run(scale_experiment(tmp_path / "whole"), whole)
    count, perform = len(trials), simulated(LAWS["contended"])[0]
    started: list[Experiment] = []

    def stopping(experiment: Experiment, observers: cells.Observers) -> CellFigures:
        started.append(experiment)
        if len(started) == 5:
            raise KeyboardInterrupt
        return perform(experiment, observers)

    stopped = run(scale_experiment(tmp_path / "stopped"), stopping)
    assert (stopped.finished, exit_code(stopped), stopped.cells[-1].outcome) == (False, 130, "interrupted")
    result = run(resumed(stopped.folder), stopping, observer := Mock())
    assert (len(observer.begin.call_args.args[0].cells), len(started)) == (4, count + 1)
    assert (result.capacities, result.demands) == (expected.capacities, expected.demands)
    assert len({cell.number for cell in result.cells}) == len(result.cells)
    again = run(resumed(stopped.folder), stopping)
    assert (len(started), again.capacities) == (count + 1, expected.capacities)


def test_what_decided_nothing_is_tried_again_after_a_resume(run: Run) -> None:
    """An undecided cell is no proof that it fails: the study says so by its exit code, 4 if the driver failed."""
    perform, trials = simulated(LAWS["linear"])
    verdicts: dict[float, Any] = {4000.0: "undecided", 2000.0: "invalid"}

    def doubtful(experiment: Experiment, observers: cells.Observers) -> CellFigures:
        figures = perform(experiment, observers)
        return figures.model_copy(update={"verdict": verdicts.get(experiment.load.rate, figures.verdict)})

    first = run(perform=doubtful, resources="1", loads="1k,2k,4k")
    assert [(cell.load, cell.outcome) for cell in first.cells] == [
        (2000, "invalid"), (2000, "invalid"), (1000, "sustained")
    ]  # fmt: skip
    assert (first.capacities[0].load, first.capacities[0].is_bound, first.decided) == (1000, True, False)
    assert exit_code(first) == 4
    del verdicts[2000.0]
    second = run(resumed(first.folder, workload="identity"), doubtful)
    assert (second.capacities[0].load, exit_code(second)) == (2000, 3)
    verdicts.clear()
    assert exit_code(run(resumed(first.folder), doubtful)) == 0
    assert [experiment.load.rate for experiment in trials].count(1000) == 1


def test_an_engine_that_does_not_start_is_no_invalid_driver(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The study ends with the code of what left its cell undecided."""
    real, start = cells.perform, Mock(side_effect=EngineError("the engine did not start"))
    monkeypatch.setattr(cells, "run_judged", start)
    result = run(perform=real, resources="1", loads="1k")
    assert ({cell.outcome for cell in result.cells}, exit_code(result)) == ({"invalid"}, 1)


@pytest.mark.parametrize(
    ("ends", "stay"),
    [
        (["sustained", "sustained", "undecided"], [1, 2, 3]),
        (["invalid", "sustained"], [1, 2]),
        (["sustained", "invalid", "sustained"], [1, 2, 3]),
        (["sustained", "undecided", "undecided"], [1]),
        (["sustained", "not_sustained"], []),
        (["invalid", "invalid"], []),
    ],
)
def test_trials_that_decided_something_stay_after_a_resume(run: Run, ends: list[str], stay: list[int]) -> None:
    """All of a decided cell. The number of repetitions is that of the trials that were valid."""
    perform, _ = simulated(LAWS["linear"])
    first = run(perform=perform, resources="1", loads="1k", repeat=max(1, len(ends) - ends.count("invalid")))
    cells = [first.cells[0].model_copy(update={"number": n, "outcome": end}) for n, end in enumerate(ends, 1)]
    kept = without_undecided(first.model_copy(update={"cells": tuple(cells)}))
    assert [cell.number for cell in kept] == stay


def test_a_tie_of_repetitions_is_tried_again_after_a_resume(run: Run) -> None:
    """Each of both trials decided, and together they did not."""
    verdicts: Any = Mock(side_effect=["not_sustained", *["sustained"] * 3])
    first = run(perform=lambda trial, _: made(trial, verdicts()), resources="1", loads="1k", repeat=2)
    assert (verdicts.call_count, first.finished, first.decided, exit_code(first)) == (2, True, False, 3)
    second = run(resumed(first.folder), lambda trial, _: made(trial, verdicts()))
    assert (verdicts.call_count, second.capacities[0].load, exit_code(second)) == (4, 1000, 0)


def test_wrong_answers_end_the_study(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lower load would only hide them. A resumed study makes the trial again."""
    perform, trials = simulated(LAWS["linear"])
    wrong = {"outcome": "not_sustained", "wrong_answers": "3 missing of 10 expected results"}
    with monkeypatch.context() as patch:
        patch.setattr(scale_module, "judge", lambda cell, *_: cell.model_copy(update=wrong))
        result = run(perform=perform)
    assert (len(trials), result.finished, result.capacities, exit_code(result)) == (1, False, (), 1)
    stopped = result.cells[0].model_copy(update={"outcome": "interrupted"})
    assert exit_code(result.model_copy(update={"cells": (*result.cells, stopped)})) == 130
    assert run(resumed(result.folder), perform).decided
    assert trials[0].load.rate == trials[1].load.rate


@pytest.mark.parametrize("criterion", ["ehrenstein", "slope"])
def test_a_trial_is_judged_from_its_own_folder(
    run: Run, tmp_path: Path, make_run: Callable[..., Path], criterion: str
) -> None:
    """From any working folder: a trial names its folder from that of the study."""

    def perform(experiment: Experiment, observers: cells.Observers) -> CellFigures:
        at = Path(experiment.out or "").relative_to(tmp_path) / "run"
        verification = Verification(judged=True, independent=True, reference="DuckDB", expected=9, matched=6, missing=3)
        failed = Check(name="answers", value=1, limit=0, unit="rows", ok=False, state="failed", sentence="")
        verdict = Verdict(value="not_sustained", decided_by=("answers",), checks=(failed,))
        folder = make_run(str(at), seed=1, verdict=verdict, verification=verification)
        return CellFigures(verdict="not_sustained", folder=str(folder), faults=3)

    result = run(scale_experiment(tmp_path / "studies", {"duration": "20s"}, criterion=criterion), perform)
    assert (len(result.cells), result.cells[0].outcome) == (1, "not_sustained")
    assert result.cells[0].wrong_answers.startswith("3 missing of 9 expected results")


def test_the_folder_has_everything(run: Run, tmp_path: Path) -> None:
    """The result can be read back; the tables have a row for each trial, which name its folder."""
    result = run()
    (folder,) = tmp_path.iterdir()
    assert folder.name.endswith("-identity-scale")
    assert read_study(folder, SCALE) == result
    assert read(folder / "experiment.toml") == scale_experiment(tmp_path)
    with (folder / "trials.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["folder"] for row in rows] == [f"cells/{n:03d}/run" for n in range(1, len(rows) + 1)]
    assert list(rows[0])[:6] == ["number", "resources", "load", "repetition", "outcome", "lag_growth"]


def test_what_contradicts_a_study_is_refused(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that runs it, other settings by their names, and a folder of another kind."""
    folder = Path(run().folder)
    with monkeypatch.context() as patch, try_lock(folder / LOCK):
        patch.setattr(scale_module, "study_of", lambda _: 1 / 0)
        with pytest.raises(InputError, match="another process is still running"):
            run(resumed(folder))
    other = {"scale": {"resources": "1,2", "criterion": "ehrenstein"}, "load": {"seed": 2}}
    with pytest.raises(InputError) as refusal:
        run(resumed(folder, workload="filter", **other))
    settings = {problem.setting for problem in refusal.value.problems}
    assert {"workload", "scale.resources", "scale.criterion", "load.seed"} <= settings
    with pytest.raises(InputError, match=r"must be the folder of a scalability study, which holds a scale\.json"):
        run(resumed(tmp_path))
