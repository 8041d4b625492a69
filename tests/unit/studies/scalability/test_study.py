"""A study before it runs: its trials, how many there are at most, and what is refused."""

from contextlib import nullcontext
from typing import Any

import pytest

from streamgauge.config.experiment import build
from streamgauge.core.errors import InputError
from streamgauge.studies.scalability.monotone_search import Point
from streamgauge.studies.scalability.study import study_of
from tests.unit.helpers_refusals import problem_of
from tests.unit.studies.scalability.helpers_scale import scale_experiment


def test_a_trial_is_a_run_of_its_cell() -> None:
    """With its load and resources, and without the study's own settings."""
    trial = study_of(scale_experiment(loads="1k..4kx2")).trial(Point(2, 1))
    assert (trial.command, trial.load.rate, trial.parallelism, trial.scale) == ("run", 4000, 2, None)
    assert trial.search == build({"workload": "identity"}).search


def test_a_plan_counts_trials_and_seconds() -> None:
    """Fewer than there are cells; repetitions count."""
    one, three = study_of(scale_experiment()).plan(), study_of(scale_experiment(repeat=3)).plan()
    assert one.trials_max < one.cells / 5
    assert three.trials_max == 3 * one.trials_max
    assert one.seconds_max > one.seconds > one.trials_max * (1 + 4)


def test_simulated_capacities_are_labelled() -> None:
    """And cores that the machine does not have."""
    (note,) = study_of(scale_experiment()).notes()
    assert note.startswith("simulated: ")
    (note,) = study_of(spark_experiment("1,4096")).notes()
    assert "4096 cores were asked for" in note
    assert list(study_of(spark_experiment("1")).notes()) == []


def topology(load: str, loads: str, name: str = "scalability_tumbling", rate: str = "", **parameters: Any) -> Any:
    """A study of a topology on Spark, which nothing starts."""
    return build({
        "command": "scale", "workload": name, "parameters": parameters, "load": {"rate": rate} if rate else {},
        "scale": {"resources": "1,2", "loads": loads, "load": load},
    })  # fmt: skip


@pytest.mark.parametrize(
    ("experiment", "rates"),
    [
        (topology("keys", "4096..131072x2", frequency=1), [4096 * 2**n for n in range(6)]),
        (topology("frequency", "1,10,100", keys=500), [500, 5000, 50_000]),
        (topology("keys", "10,20", rate="5k"), [5000, 5000]),
        (topology("period", "1s,100ms", "scalability_hopping", "5k", keys=500, frequency=10), [5000, 5000]),
        (topology("height", "1,2,3", "scalability_hierarchical", frequency=2), [20, 200, 2000]),
    ],
)
def test_a_fixed_frequency_sets_the_rate_of_each_load(experiment: Any, rates: list[float]) -> None:
    """Keys times frequency, as in the paper. Without a frequency every load has one rate."""
    study = study_of(experiment)
    assert list(study.plan().rates) == rates
    assert [study.trial(Point(load, 1)).load.rate for load in range(len(rates))] == rates


def spark_experiment(resources: str) -> Any:
    return build({"command": "scale", "workload": "identity", "scale": {"resources": resources, "loads": "1k,2k"}})


def test_ehrensteins_criterion_has_its_own_spans() -> None:
    """Unless others are given."""
    paper = build({"command": "scale", "workload": "identity", "scale": {"criterion": "ehrenstein"}})
    assert (paper.load.warmup, paper.load.duration) == (180, 360)
    assert scale_experiment(criterion="ehrenstein").load.duration == 4
    assert build({"command": "scale", "workload": "identity"}).load.duration == 30


@pytest.mark.parametrize(
    ("scale", "load", "setting", "rule"),
    [
        ({"criterion": "ehrenstein"}, {"duration": "3s"}, "load.duration", "must be at least 20 s"),
        ({"repeat": 99, "loads": "1..1e9"}, {}, "scale.repeat", "must need at most 1,000 trials"),
        ({}, {"rate": "5k"}, "load.rate", "must not be given with loads in events per second"),
        ({"load": "period"}, {}, "set period", "is not a parameter"),
        ({"resource": "load.rate"}, {}, "scale.load", "must be another setting"),
        ({"resource": "load.generators"}, {"generators": 2}, "load.generators", "because --resources states"),
        ({"resource": "options.capacities"}, {}, "option capacities", "is not an option of known"),
    ],
)
def test_what_cannot_be_is_refused(scale: dict[str, Any], load: dict[str, Any], setting: str, rule: str) -> None:
    """Before anything is started."""
    problem = problem_of(study_of, scale_experiment(of_load=load, **scale))
    assert (problem.setting, rule in problem.rule) == (setting, True)


@pytest.mark.parametrize(
    ("experiment", "setting", "rule", "way_out"),
    [
        (topology("rate", "1k,2k", frequency=1), "set frequency", "fixes the rate", "leave --set frequency out"),
        (topology("keys", "1k,2k", rate="5k", frequency=1), "load.rate", "must not be given", "leave --rate out"),
        (topology("keys", "1k,2k", frequency="x"), "set frequency", "must be", "--set frequency="),
        (topology("keys", "1k,2k", keys=500), "set keys", "because --loads states its values", "leave --set keys out"),
    ],
)
def test_a_setting_that_would_be_ignored_is_refused(experiment: Any, setting: str, rule: str, way_out: str) -> None:
    """Once, with a way out that a study has: a rate that the frequency contradicts, and a value of what is varied."""
    problem = problem_of(study_of, experiment)
    assert (problem.setting, rule in problem.rule) == (setting, True)
    assert problem.way_out.startswith(way_out)


@pytest.mark.parametrize(
    ("experiment", "rule"),
    [
        (topology("rate", "1k,2k"), "must not be given with loads in events per second"),
        (topology("keys", "1k,2k", frequency=1), "must not be given with a fixed frequency"),
        (topology("keys", "10,20"), None),
    ],
)
def test_a_rate_that_was_given_may_be_the_default(experiment: Any, rule: str | None) -> None:
    """Only the command line knows that it was typed: a printed file has every setting."""
    study_of(experiment)
    with pytest.raises(InputError, match=rule) if rule else nullcontext():
        study_of(experiment, rate_is_given=True)


def test_a_problem_of_some_cells_names_one() -> None:
    """With the number of the others."""
    with pytest.raises(InputError) as refused:
        study_of(scale_experiment(loads="1k,1e12"))
    assert any("(load 1000000000000 with 1, and 3 more cells)" in one.rule for one in refused.value.problems)
