"""A study finds demand and capacity of simulated systems of known laws; it is resumed, and says what failed."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import SCALE, read_study
from streamgauge.config.options_and_settings import Experiment, build, read
from streamgauge.core.errors import InputError, MachineError
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.results.matrix import CellFigures
from streamgauge.results.run import Verification
from streamgauge.results.scalability import ScaleResult
from streamgauge.results.verdict import Check, Verdict
from streamgauge.studies.exclusive_folder import LOCK
from streamgauge.studies.matrix import cells
from streamgauge.studies.matrix.cells import Observers
from streamgauge.studies.run.run import run_single
from streamgauge.studies.scalability import scale as scale_module
from streamgauge.studies.scalability.criteria import Judged, judge
from streamgauge.studies.scalability.monotone_search import Point
from streamgauge.studies.scalability.scale import exit_code, plan_scale, scale
from streamgauge.studies.scalability.study import study_of
from streamgauge.system.disk import try_lock
from tests.unit.studies.scalability.helpers_scale import LAWS, RecordingObserver, made, scale_experiment, simulated

ONE = 7000.0


@pytest.mark.parametrize("name", LAWS)
def test_the_capacity_of_a_known_law_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Within one step of the loads, in no more trials than the plan says, and with the law's parameters."""
    law = LAWS[name]
    perform, given = simulated(law)
    monkeypatch.setattr(cells, "perform", perform)
    result = scale(scale_experiment(tmp_path), observer := RecordingObserver())
    assert (result.finished, result.decided, exit_code(result)) == (True, True, 0)
    assert len(given) == len(result.cells) == len(observer.cells) <= plan_scale(scale_experiment()).trials_max
    for one in result.capacities:
        true = law.capacity(ONE, one.resources)
        assert one.load is not None
        assert one.refused is not None
        assert one.load <= true < one.refused <= one.load * 1.06
        assert one.decided
        assert not one.is_bound
    for load in result.demands:
        least = next((n for n in (1, 2, 4, 8) if law.capacity(ONE, n) >= load.load), None)
        assert load.resources == least
    universal = next(fit for fit in result.fits if fit.law == "universal")
    if name != "knee":  # which is no Universal Scalability Law
        contention = universal.parameters["contention"]
        assert contention.low - 0.02 <= law.contention <= (contention.high or 1) + 0.02
        assert (universal.r_squared or 0) > 0.98
    assert result.published == (), "the paper measured another topology"


def test_every_level_needs_its_resources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first trial runs, and before a folder is made."""
    needed: set[int | None] = set()

    def require_machine(*trials: ResolvedExperiment) -> None:
        needed.update(one.experiment.parallelism for one in trials)
        raise MachineError("no such cluster")

    monkeypatch.setattr(scale_module, "require_machine", require_machine)
    with pytest.raises(MachineError):
        scale(scale_experiment(tmp_path), RecordingObserver())
    assert needed == {1, 2, 4, 8}
    assert list(tmp_path.iterdir()) == []


def test_a_noisy_system_is_found_by_repetitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Majorities of three, within the noise."""
    law = LAWS["linear"].__class__(noise=0.03)
    monkeypatch.setattr(cells, "perform", simulated(law)[0])
    result = scale(scale_experiment(tmp_path, repeat=3), RecordingObserver())
    assert result.decided
    for one in result.capacities:
        assert one.load == pytest.approx(ONE * one.resources, rel=0.12)
    trials = [(cell.load, cell.resources) for cell in result.cells]
    assert all(2 <= trials.count(cell) <= 3 for cell in trials)


def test_what_no_load_exceeds_is_a_lower_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is decided all the same; no law is fitted to it."""
    monkeypatch.setattr(cells, "perform", simulated(LAWS["linear"])[0])
    result = scale(scale_experiment(tmp_path, loads="1k..12k"), RecordingObserver())
    assert [(one.load, one.is_bound) for one in result.capacities][1:] == [(12000, True)] * 3
    assert (result.decided, exit_code(result)) == (True, 0)
    assert next(fit for fit in result.fits if fit.law == "universal").reason


def test_a_parameter_may_be_the_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A smaller window period is harder; the rate is that of every trial, and there is no published figure."""

    def perform(experiment: Experiment, observers: Observers) -> CellFigures:
        slide = float(experiment.parameters["slide"].removesuffix("ms"))
        return made(experiment, "sustained" if slide * (experiment.parallelism or 1) >= 1000 else "not_sustained")

    monkeypatch.setattr(cells, "perform", perform)
    experiment = build({
        "command": "scale", "workload": "windowed_aggregation", "engine": "known", "out": str(tmp_path),
        "load": {"rate": "2k", "warmup": "1s", "duration": "20s"}, "parameters": {"range": "4s"},
        "scale": {"resources": "1,2,4", "loads": "4s,2s,1s,500ms,250ms", "load": "slide"},
    })  # fmt: skip
    result = scale(experiment, RecordingObserver())
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: str, loads: str, fixed: Any, metric: str, greatest: int
) -> None:
    """The rate grows with the number of sensors."""
    monkeypatch.setattr(cells, "perform", simulated(LAWS["linear"], 500)[0])
    result = scale(hierarchy(tmp_path, load, loads, **fixed), RecordingObserver())
    assert (result.metric, result.decided) == (metric, True)
    assert [(one.load, one.is_bound) for one in result.capacities] == [(greatest, False), (result.loads[-1], True)]


@pytest.mark.long
@pytest.mark.process
def test_a_trial_of_a_hierarchy_is_verified(tmp_path: Path) -> None:
    """Of the engine of known capacity, with 100 sensors in 11 groups: right, however busy the machine."""
    result = run_single(study_of(hierarchy(tmp_path, "height", "1,2,3")).trial(Point(1, 1)))
    assert result.verification is not None
    assert result.verification.judged
    assert result.verification.matched >= 10 * 11
    assert result.verification.right


def test_keys_with_a_record_per_second_stand_beside_the_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its figure 5 counts the same. Keys at another frequency do not."""
    monkeypatch.setattr(cells, "perform", simulated(LAWS["linear"])[0])
    for frequency, points in ((1, 4), (2, 0)):
        experiment = build({
            "command": "scale", "workload": "scalability_sink", "engine": "known", "out": str(tmp_path),
            "load": {"warmup": "1s", "duration": "4s"}, "parameters": {"frequency": frequency},
            "scale": {"resources": "1,2", "loads": "4096,8192", "load": "keys"},
        })  # fmt: skip
        assert len(scale(experiment, RecordingObserver()).published) == points


def test_a_study_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same answer as one that was not; the interrupted trial is made again."""
    whole, given = simulated(LAWS["contended"])
    monkeypatch.setattr(cells, "perform", whole)
    expected = scale(scale_experiment(tmp_path / "whole"), RecordingObserver())
    count, perform = len(given), simulated(LAWS["contended"])[0]
    made_so_far: list[Experiment] = []

    def stopping(experiment: Experiment, observers: Observers) -> CellFigures:
        made_so_far.append(experiment)
        if len(made_so_far) == 5:
            raise KeyboardInterrupt
        return perform(experiment, observers)

    monkeypatch.setattr(cells, "perform", stopping)
    stopped = scale(scale_experiment(tmp_path / "stopped"), RecordingObserver())
    assert (stopped.finished, exit_code(stopped), stopped.cells[-1].outcome) == (False, 1, "interrupted")
    resume = build({"command": "scale", "workload": "", "search": {"resume": stopped.folder}})
    result = scale(resume, observer := RecordingObserver())
    assert observer.begun[0][0] == 4
    assert len(made_so_far) == count + 1
    assert result.capacities == expected.capacities
    assert result.demands == expected.demands
    assert len({cell.number for cell in result.cells}) == len(result.cells)
    again = scale(resume, RecordingObserver())
    assert (len(made_so_far), again.capacities) == (count + 1, expected.capacities)


def test_what_decided_nothing_is_tried_again_after_a_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An undecided cell is no proof that it fails: the study says so by its exit code, 3 if the driver failed."""
    perform, given = simulated(LAWS["linear"])
    verdicts: dict[float, Any] = {4000.0: "undecided", 2000.0: "invalid"}

    def doubtful(experiment: Experiment, observers: Observers) -> CellFigures:
        figures = perform(experiment, observers)
        return figures.model_copy(update={"verdict": verdicts.get(experiment.load.rate, figures.verdict)})

    monkeypatch.setattr(cells, "perform", doubtful)
    first = scale(scale_experiment(tmp_path, resources="1", loads="1k,2k,4k"), RecordingObserver())
    assert [(cell.load, cell.outcome) for cell in first.cells] == [
        (2000, "invalid"), (2000, "invalid"), (1000, "sustained")
    ]  # fmt: skip
    assert (first.capacities[0].load, first.capacities[0].is_bound, first.decided) == (1000, True, False)
    assert exit_code(first) == 3
    del verdicts[2000.0]
    resume = build({"command": "scale", "workload": "identity", "search": {"resume": first.folder}})
    second = scale(resume, RecordingObserver())
    assert second.capacities[0].load == 2000
    assert exit_code(second) == 1
    verdicts.clear()
    assert exit_code(scale(resume, RecordingObserver())) == 0
    assert [experiment.load.rate for experiment in given].count(1000) == 1


def test_a_tie_of_repetitions_is_tried_again_after_a_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of both trials decided, and together they did not."""
    perform, given = simulated(LAWS["linear"])
    held = [True, False]

    def doubtful(experiment: Experiment, observers: Observers) -> CellFigures:
        figures = perform(experiment, observers)
        return figures.model_copy(update={"verdict": "sustained" if not held or held.pop() else "not_sustained"})

    monkeypatch.setattr(cells, "perform", doubtful)
    first = scale(scale_experiment(tmp_path, resources="1", loads="1k", repeat=2), RecordingObserver())
    assert (len(given), first.finished, first.decided, exit_code(first)) == (2, True, False, 1)
    second = scale(build({"command": "scale", "workload": "", "search": {"resume": first.folder}}), RecordingObserver())
    assert (len(given), second.capacities[0].load, exit_code(second)) == (4, 1000, 0)


def test_wrong_answers_end_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lower load would only hide them. A resumed study makes the trial again."""
    perform, given = simulated(LAWS["linear"])
    monkeypatch.setattr(cells, "perform", perform)
    wrong = Judged("not_sustained", "wrong", None, "3 missing of 10 expected results")
    monkeypatch.setattr(scale_module, "judge", lambda *_: wrong)
    result = scale(scale_experiment(tmp_path), RecordingObserver())
    assert (len(given), result.finished, result.capacities, exit_code(result)) == (1, False, (), 1)
    assert result.cells[0].wrong_answers == wrong.wrong_answers
    monkeypatch.setattr(scale_module, "judge", judge)
    resumed = scale(
        build({"command": "scale", "workload": "", "search": {"resume": result.folder}}), RecordingObserver()
    )
    assert resumed.decided
    assert given[0].load.rate == given[1].load.rate


@pytest.mark.parametrize("criterion", ["ehrenstein", "slope"])
def test_a_trial_is_judged_from_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_run: Callable[..., Path], criterion: str
) -> None:
    """From any working folder: a trial names its folder from that of the study."""

    def perform(experiment: Experiment, observers: Observers) -> CellFigures:
        at = Path(experiment.out or "").relative_to(tmp_path) / "run"
        verification = Verification(judged=True, independent=True, reference="DuckDB", expected=9, matched=6, missing=3)
        verdict = Verdict(value="not_sustained", decided_by=("answers",), checks=(failed("answers"),))
        folder = make_run(str(at), seed=1, verdict=verdict, verification=verification)
        return CellFigures(verdict="not_sustained", folder=str(folder), faults=3)

    monkeypatch.setattr(cells, "perform", perform)
    of_load = {"duration": "20s"}
    result = scale(scale_experiment(tmp_path / "studies", of_load, criterion=criterion), RecordingObserver())
    assert (len(result.cells), result.cells[0].outcome) == (1, "not_sustained")
    assert result.cells[0].wrong_answers.startswith("3 missing of 9 expected results")


def failed(name: str) -> Check:
    return Check(name=name, value=1, limit=0, unit="rows", ok=False, state="failed", sentence=f"{name} failed")


def test_the_folder_has_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result can be read back; the tables have a row for each trial, which name its folder."""
    monkeypatch.setattr(cells, "perform", simulated(LAWS["linear"])[0])
    result = scale(scale_experiment(tmp_path), RecordingObserver())
    (folder,) = tmp_path.iterdir()
    assert folder.name.endswith("-identity-scale")
    assert read_study(folder, SCALE) == result
    assert read(folder / "experiment.toml") == scale_experiment(tmp_path)
    with (folder / "trials.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["folder"] for row in rows] == [f"cells/{n:03d}/run" for n in range(1, len(rows) + 1)]
    assert list(rows[0])[:6] == ["number", "resources", "load", "repetition", "outcome", "lag_growth"]


def test_a_machine_that_lacks_something_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ended is kept."""

    def fail(*_: Any) -> Any:
        raise MachineError("the disk is full")

    monkeypatch.setattr(cells, "perform", fail)
    with pytest.raises(MachineError):
        scale(scale_experiment(tmp_path), RecordingObserver())
    (folder,) = tmp_path.iterdir()
    stored = read_study(folder, SCALE)
    assert isinstance(stored, ScaleResult)
    assert (stored.cells, stored.finished) == ((), False)


def test_two_processes_do_not_run_one_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They would overwrite each other's trials."""
    monkeypatch.setattr(cells, "perform", simulated(LAWS["linear"])[0])
    folder = Path(scale(scale_experiment(tmp_path), RecordingObserver()).folder)
    resume = build({"command": "scale", "workload": "", "search": {"resume": str(folder)}})
    with try_lock(folder / LOCK), pytest.raises(InputError, match="another process is still running"):
        scale(resume, RecordingObserver())


def test_other_settings_beside_a_resume_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by its name; a folder of another kind too."""
    monkeypatch.setattr(cells, "perform", simulated(LAWS["linear"])[0])
    folder = scale(scale_experiment(tmp_path), RecordingObserver()).folder
    other = {"scale": {"resources": "1,2", "criterion": "ehrenstein"}, "load": {"seed": 2}}
    with pytest.raises(InputError) as refused:
        scale(
            build({"command": "scale", "workload": "filter", "search": {"resume": folder}, **other}),
            RecordingObserver(),
        )
    settings = {problem.setting for problem in refused.value.problems}
    assert {"workload", "scale.resources", "scale.criterion", "load.seed"} <= settings
    with pytest.raises(InputError, match=r"must be the folder of a scalability study, which holds a scale\.json"):
        scale(build({"command": "scale", "workload": "", "search": {"resume": str(tmp_path)}}), RecordingObserver())
