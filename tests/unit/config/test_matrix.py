"""`[matrix]`: which cells it has, in which order, and what is refused."""

import time
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.config.experiment import Experiment, Matrix, build
from streamgauge.config.experiment_file import read, to_toml
from streamgauge.config.matrix import CELLS_MAX, Cell, expand, merge_problems, run_order, select, value_of, varied
from streamgauge.core.errors import InputError, Problem
from tests.unit.helpers_refusals import problem_of

AXES: dict[str, st.SearchStrategy[list[Any]]] = {
    "load.rate": st.lists(st.integers(1, 9).map(lambda k: f"{k}k"), min_size=1, max_size=4, unique=True),
    "load.seed": st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True),
    "tuning": st.lists(st.sampled_from(["tuned", "idiomatic"]), min_size=1, unique=True),
    "parameters.range": st.lists(st.sampled_from(["4s", "8s", "12s"]), min_size=1, max_size=3, unique=True),
    "options.spark.sql.shuffle.partitions": st.lists(st.sampled_from("2468"), min_size=1, max_size=2, unique=True),
}
matrices = st.fixed_dictionaries({}, optional=AXES)


def matrix_experiment(**matrix: Any) -> Experiment:
    return build({"workload": "windowed_aggregation", "matrix": matrix})


def settings_of(cells: tuple[Cell, ...]) -> list[dict[str, Any]]:
    return [dict(cell.settings) for cell in cells]


@given(matrices, st.integers(1, 3))
def test_each_combination_comes_once_in_each_repetition(axes: dict[str, list[Any]], repeat: int) -> None:
    """Numbered through, the last list varying fastest, and each experiment has the values of its cell."""
    cells = expand(matrix_experiment(**axes, repeat=repeat))
    expected = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    assert [cell.number for cell in cells] == list(range(1, len(expected) * repeat + 1))
    assert settings_of(cells) == expected * repeat
    assert [cell.repetition for cell in cells] == [n for n in range(1, repeat + 1) for _ in expected]
    for cell in cells:
        assert cell.experiment == build({"workload": "windowed_aggregation", **nested(dict(cell.settings))})


def nested(settings: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in settings.items():
        section, _, key = name.partition(".")
        (values.setdefault(section, {}) if key else values)[key or section] = value
    return values


def test_settings_of_the_engine_and_the_transport_may_stand_in_tables() -> None:
    """As outside of a matrix: `engine.parallelism` is `parallelism`."""
    cells = expand(matrix_experiment(engine={"parallelism": [1, 2]}, transport={"partitions": [4]}, exclude=[
        {"engine": {"parallelism": 2}, "transport": {"partitions": 4}}
    ]))  # fmt: skip
    assert settings_of(cells) == [{"parallelism": 1, "partitions": 4}]
    assert [(cell.experiment.parallelism, cell.experiment.partitions) for cell in cells] == [(1, 4)]
    with pytest.raises(InputError, match="parallelism: must be given once"):
        expand(matrix_experiment(engine={"parallelism": [1, 2]}, parallelism=[1]))


@given(st.data())
def test_exclude_takes_out_and_include_adds(data: st.DataObject) -> None:
    """As a loop over all combinations does."""
    axes = {name: data.draw(AXES[name]) for name in ("load.rate", "load.seed", "parameters.range")}
    crossed = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    names = data.draw(st.lists(st.sampled_from(list(axes)), min_size=1, max_size=2, unique=True))
    entry = {name: data.draw(st.sampled_from(axes[name])) for name in names}
    more = {"load.rate": "77k", "load.seed": 7, "parameters.range": "16s"}
    left = [one for one in crossed if any(one[name] != value for name, value in entry.items())]
    assert settings_of(expand(matrix_experiment(**axes, exclude=[entry], include=[more]))) == [*left, more]


@given(st.integers(0, 1000), st.integers(1, 4), st.integers(1, 6))
def test_random_order_is_drawn_by_its_seed_within_each_repetition(seed: int, repeat: int, rates: int) -> None:
    """Every combination has run once before any runs twice, so that drift of the machine hits them alike."""
    matrix = {"load.rate": [f"{n}k" for n in range(1, rates + 1)], "repeat": repeat, "order": "random", "seed": seed}
    experiment = matrix_experiment(**matrix)
    cells = expand(experiment)
    ordered = run_order(cells, experiment.matrix or Matrix())
    assert sorted(ordered, key=lambda cell: cell.number) == list(cells)
    assert [cell.repetition for cell in ordered] == [cell.repetition for cell in cells]
    assert ordered == run_order(cells, experiment.matrix or Matrix())


def test_another_seed_is_another_order() -> None:
    """And without `order` cells run as they are listed."""
    rates = [f"{n}k" for n in range(1, 9)]
    orders = {
        tuple(cell.number for cell in run_order(expand(one), one.matrix or Matrix()))
        for one in (matrix_experiment(**{"load.rate": rates}, order="random", seed=seed) for seed in range(5))
    }
    assert len(orders) == 5
    listed = matrix_experiment(**{"load.rate": rates})
    assert run_order(expand(listed), listed.matrix or Matrix()) == expand(listed)


def test_a_file_may_nest_keys_or_quote_them(tmp_path: Path) -> None:
    """TOML reads `load.rate` as a table in a table; a quoted key is one name. What is written is read again."""
    texts = (
        '[matrix]\nload.rate = ["1k", "2k"]\noptions.spark.sql.shuffle.partitions = ["2"]\n'
        'exclude = [{ load.rate = "2k" }]\n',
        '[matrix]\n"load.rate" = ["1k", "2k"]\n"options.spark.sql.shuffle.partitions" = ["2"]\n'
        '[[matrix.exclude]]\n"load.rate" = "2k"\n',
    )
    for text in texts:
        (tmp_path / "a.toml").write_text(f'workload = "identity"\n{text}')
        experiment = read(tmp_path / "a.toml")
        (cell,) = expand(experiment)
        assert dict(cell.settings) == {"load.rate": "1k", "options.spark.sql.shuffle.partitions": "2"}
        (tmp_path / "b.toml").write_text(to_toml(experiment))
        assert expand(read(tmp_path / "b.toml")) == expand(experiment)


def test_without_lists_a_matrix_has_the_files_own_cell_or_the_included_ones() -> None:
    """`repeat` alone repeats one experiment; `include` alone lists cells one by one."""
    assert settings_of(expand(matrix_experiment())) == [{}]
    assert settings_of(expand(build({"workload": "identity"}))) == [{}]
    assert [cell.repetition for cell in expand(matrix_experiment(repeat=3))] == [1, 2, 3]
    included = [{"load.rate": "1k", "tuning": "tuned"}, {"load.rate": "5k"}]
    assert settings_of(expand(matrix_experiment(include=included))) == [
        included[0],
        {"load.rate": "5k", "tuning": "tuned"},
    ]


def test_a_setting_that_only_some_cells_change_has_the_value_in_force_elsewhere() -> None:
    """Every cell has a value of every varied setting."""
    cells = expand(matrix_experiment(**{"load.rate": ["1k"]}, include=[{"load.rate": "2k", "parameters.range": "4s"}]))
    assert varied(cells) == ("load.rate", "parameters.range")
    assert [cell.settings["parameters.range"] for cell in cells] == [None, "4s"]
    values = {"load.rate": 1000.0, "load.duration": 60.0, "workload": "windowed_aggregation"}
    assert {name: value_of(cells[0].experiment, name) for name in values} == values


def test_a_user_job_or_data_may_lie_beside_the_file(tmp_path: Path) -> None:
    """As they may outside of a matrix."""
    for name in ("job.py", "rows.csv"):
        (tmp_path / name).touch()
    (tmp_path / "a.toml").write_text(
        'workload = "identity"\n[matrix]\nworkload = ["identity", "job.py"]\n'
        'include = [{ workload = "identity", parameters.data = "rows.csv" }]\n'
    )
    cells = expand(read(tmp_path / "a.toml"))
    assert [cell.experiment.workload for cell in cells] == ["identity", str(tmp_path / "job.py"), "identity"]
    assert cells[2].experiment.parameters == {"data": str(tmp_path / "rows.csv")}


@pytest.mark.parametrize(
    ("matrix", "setting", "rule", "way_out"),
    [
        ({"load.rat": ["1k"]}, "matrix.load.rat", "is not a setting", "load.rate"),
        ({"parameter.range": ["1s"]}, "matrix.parameter.range", "is not a setting", "parameters"),
        ({"load.rate": []}, "matrix.load.rate", "must be a list with at least one value", "load.rate = [VALUE"),
        ({"load.rate": "1k"}, "matrix.load.rate", "must be a list of values", 'load.rate = ["1k"]'),
        ({"load": {}}, "matrix.load", "is not a setting", "load"),
        ({"search.tolerance": ["3%", "7%"]}, "matrix.search.tolerance", "is not a setting of run, only of", "leave"),
        ({"out": ["a", "b"]}, "matrix.out", "must be the same in all cells", "outside of [matrix]"),
        ({"command": ["run"]}, "matrix.command", "must be the same in all cells", "outside of [matrix]"),
        ({"load.rate": ["1k"], "load": {"rate": ["2k"]}}, "matrix.load.rate", "must be given once", "one list"),
        (
            {"load.rate": ["1k", "2k"], "exclude": [{"load.rate": "1k"}, {"load.rate": "2k"}]},
            "matrix.exclude", "must leave at least one cell", "remove an entry of exclude",
        ),
        ({"load.seed": [1], "exclude": [{"load.seed": 3}]}, "matrix.exclude[0]", "must match a cell", "load.seed"),
        ({"load.seed": [1], "exclude": [{"tuning": "tuned"}]}, "matrix.exclude[0]", "must match a cell", "load.seed"),
        ({"load.rate": ["1k"], "exclude": [{}]}, "matrix.exclude[0]", "must name at least one setting", "remove it"),
        ({"include": [{"load.rat": "1k"}]}, "matrix.include[0].load.rat", "is not a setting", "load.rate"),
        ({"repeat": 0}, "matrix.repeat", "must be at least 1", "another value for matrix.repeat"),
        ({"order": "shuffled"}, "matrix.order", "must be one of listed, random", 'matrix.order = "listed"'),
        ({"seed": -1}, "matrix.seed", "must be at least 0", "another value for matrix.seed"),
        ({"load.rate": ["1k", "fast"]}, "load.rate", "(cell 2 of the matrix)", "--rate"),
        ({"load.generators": [1, 0], "load.seed": [1, 2]}, "load.generators", "(cells 3, 4 of the matrix)", "--gen"),
    ],
)  # fmt: skip
def test_what_is_no_matrix_is_refused(matrix: dict[str, Any], setting: str, rule: str, way_out: str) -> None:
    """In one problem that names setting, rule, value and way out."""
    problem = problem_of(lambda: expand(matrix_experiment(**matrix)))
    assert (problem.setting, problem.got is None) == (setting, False)
    assert (rule in problem.rule, way_out in problem.way_out) == (True, True)


def test_a_million_cells_are_refused_before_one_is_made() -> None:
    """One message with the factors."""
    axes = {f"parameters.p{n}": list(range(10)) for n in range(6)}
    begun = time.process_time()
    problem = problem_of(expand, matrix_experiment(**axes))
    assert time.process_time() - begun < 1.0
    assert (problem.setting, problem.rule) == ("matrix", f"must have at most {CELLS_MAX:,} cells before exclude")
    assert "1,000,000 cells: 10 of parameters.p0 x" in str(problem.got)
    with pytest.raises(InputError, match="2,000 cells: repeat 1000"):
        expand(matrix_experiment(include=[{"load.seed": 1}], repeat=1000))


@pytest.mark.parametrize("numbers", ["0", "4", "1,9", "x", "", "1;2", "-1", "01"])
def test_cells_are_selected_by_number(numbers: str) -> None:
    """In the order in which they would run. Others are refused, with the numbers that there are and how to see them."""
    cells = expand(matrix_experiment(**{"load.rate": ["1k", "2k", "3k"]}))
    assert [cell.number for cell in select(cells, "3, 1")] == [1, 3]
    rule = "--cells: must be numbers from 1 to 3, separated by commas(.|\n)*--dry-run"
    with pytest.raises(InputError, match=rule):
        select(cells, numbers)


def test_a_problem_of_all_cells_is_reported_once() -> None:
    """One of some cells names them, at most five."""
    everywhere, some = Problem("a", "rule", 1, "b"), Problem("c", "rule", 2, "d")
    assert merge_problems({n: [everywhere, some] if n > 1 else [everywhere] for n in range(1, 9)}) == [
        everywhere, Problem("c", "rule (cells 2, 3, 4, 5, 6 and 2 more of the matrix)", 2, "d")
    ]  # fmt: skip


def test_a_number_of_events_sets_the_span_of_each_cell() -> None:
    """By the cell's own rate, where either varies."""
    values: dict[str, Any] = {"workload": "filter", "load": {"rate": "20k", "events": "2M"}}
    cells = expand(build({**values, "matrix": {"load.rate": ["50k", "100k"]}}))
    assert [cell.experiment.load.duration for cell in cells] == [40.0, 20.0]
    cells = expand(build({"workload": "filter", "matrix": {"load.events": ["1M", "2M"]}}))
    assert [cell.experiment.load.duration for cell in cells] == [10.0, 20.0]
