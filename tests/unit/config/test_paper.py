"""The section `[paper]`: a published table is found, its rows are chosen, and what is wrong is refused at once."""

from pathlib import Path
from typing import Any

import pytest

from streamgauge.config.experiment import build
from streamgauge.config.experiment_file import read, read_published
from streamgauge.core.errors import InputError
from tests.helpers_modules import ROOT
from tests.unit.helpers_refusals import problem_of

TABLE = "# of other hardware\nsystem,nodes,latency_avg_s\nSpark,2,3.6\nFlink,2,0.5\nFlink,4,\n"
PAPER = {"work": "Paper 2018", "table": "table I", "hardware": "two nodes", "published": "table.csv"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "table.csv").write_text(TABLE)
    (tmp_path / "more").mkdir()
    return tmp_path


def experiment_in(folder: Path, **paper: Any) -> Any:
    lines = (f"{name} = {value!r}" for name, value in {**PAPER, **paper}.items())
    (folder / "one.toml").write_text("\n".join(['workload = "identity"', "[paper]", *lines]))
    return read(folder / "one.toml")


@pytest.mark.parametrize("place", [".", "more"])
def test_the_table_is_beside_the_file_or_above_it(folder: Path, place: str) -> None:
    """Lines of comment are left out; without `columns` those remain that choose no rows."""
    found = read_published(experiment_in(folder / place).paper)
    assert (found.work, found.table, found.hardware) == ("Paper 2018", "table I", "two nodes")
    assert found.columns == ("system", "nodes", "latency_avg_s")
    assert found.rows == (("Spark", "2", "3.6"), ("Flink", "2", "0.5"), ("Flink", "4", ""))


def test_rows_and_columns_are_chosen(folder: Path) -> None:
    paper = build({"workload": "identity", "paper": {
        **PAPER, "published": str(folder / "published" / "table.csv"), "where": {"system": "Flink", "nodes": 4},
    }}).paper  # fmt: skip
    assert paper is not None
    assert read_published(paper).rows == (("",),)
    chosen = read_published(paper.model_copy(update={"columns": ("nodes", "system")}))
    assert (chosen.columns, chosen.rows) == (("nodes", "system"), (("4", "Flink"),))


def test_every_wrong_name_is_refused_at_once(folder: Path) -> None:
    """Each with the nearest column."""
    paper = experiment_in(folder).paper.model_copy(update={"where": {"sistem": "Flink"}, "columns": ("node", "nodes")})
    with pytest.raises(InputError) as refused:
        read_published(paper)
    assert [(one.setting, one.got, one.way_out) for one in refused.value.problems] == [
        ("paper.where", "sistem", "system"), ("paper.columns", "node", "nodes"),
    ]  # fmt: skip


@pytest.mark.parametrize(("changes", "setting", "way_out"), [
    ({"published": "tabel.csv"}, "paper.published", "check the name"),
    ({"where": {"system": "Storm", "nodes": 2}}, "paper.where", "system: Spark, Flink; nodes: 2, 4"),
])  # fmt: skip
def test_no_file_and_no_row_are_refused(folder: Path, changes: dict[str, Any], setting: str, way_out: str) -> None:
    problem = problem_of(read_published, experiment_in(folder).paper.model_copy(update=changes))
    assert (problem.setting, problem.way_out) == (setting, way_out)


@pytest.mark.parametrize(("changes", "setting", "rule", "way_out"), [
    ({"work": ""}, "paper.work", "must not be empty", 'work = "..." below [paper]'),
    ({"wrok": "Paper"}, "paper.wrok", "is not a setting", 'work = "Paper" below [paper]'),
])  # fmt: skip
def test_a_wrong_key_is_refused(changes: dict[str, Any], setting: str, rule: str, way_out: str) -> None:
    with pytest.raises(InputError) as refused:
        build({"workload": "identity", "paper": {**PAPER, **changes}})
    problem = refused.value.problems[0]
    assert (problem.setting, problem.rule, problem.way_out) == (setting, rule, way_out)


@pytest.mark.parametrize(("name", "rows"), [("exp1_aggregation", 18), ("exp1_dstream", 6), ("exp2_join", 12)])
def test_the_shipped_files_have_the_papers_tables(name: str, rows: int) -> None:
    paper = read(ROOT / "experiments" / "karimov" / f"{name}.toml").paper
    assert paper is not None
    assert len(read_published(paper).rows) == rows
