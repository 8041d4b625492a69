"""Two scalability studies compared: decided only where intervals do not overlap. All figures are made up."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from streamgauge.artifacts.run_folder import SCALE, read_study, write_study
from streamgauge.core.errors import InputError
from streamgauge.report.documents.comparison import scale_document
from streamgauge.report.page import render
from streamgauge.results.comparison import ScaleComparison
from streamgauge.results.scalability import ScaleResult
from streamgauge.studies.compare.scale_studies import compare_studies
from streamgauge.studies.matrix import cells
from streamgauge.studies.scalability.scale import scale
from tests.unit.cli.helpers_commands import call_and_read
from tests.unit.studies.scalability.helpers_scale import LAWS, scale_experiment, simulated

pytestmark = pytest.mark.usefixtures("quick_fits")
Make = Callable[..., str]


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """The studies made so far, because several tests compare the same ones."""
    return {}


@pytest.fixture
def study(made: dict[str, str], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Make:
    """The folder of a study of a system that scales linearly from `of_one_per_s`."""

    def make(of_one_per_s: float, **scale_of: Any) -> str:
        key = f"{of_one_per_s} {scale_of}"
        if key not in made:
            monkeypatch.setattr(cells, "perform", simulated(LAWS["linear"], of_one_per_s)[0])
            experiment = scale_experiment(tmp_path_factory.mktemp("runs"), **{"loads": "1k..64kx2", **scale_of})
            made[key] = scale(experiment, Mock()).folder
        return made[key]

    return make


def changed(folder: str, tmp_path: Path, **fields: Any) -> str:
    """A copy of a study, with other fields than it found."""
    copy = shutil.copytree(folder, tmp_path / f"{Path(folder).name}-{len(list(tmp_path.iterdir()))}")
    write_study(copy, SCALE, stored(folder).model_copy(update=fields))
    return str(copy)


def stored(folder: str) -> ScaleResult:
    result: Any = read_study(Path(folder), SCALE)
    return cast(ScaleResult, result)


def outcomes(comparison: ScaleComparison) -> list[str]:
    return [one.says for one in comparison.capacities]


def test_b_is_better_where_the_intervals_do_not_overlap(study: Make) -> None:
    """Doublings: 4 to 8 k/s against 8 to 16 k/s. A difference within a step is none."""
    a, b, like_a = study(7000), study(14_000), study(7900)
    comparison = compare_studies(a, b)
    assert outcomes(comparison) == ["better"] * 4
    first = comparison.capacities[0]
    assert (first.a.held, first.a.failed, first.b.held, first.b.failed) == (4000, 8000, 8000, 16_000)
    assert (first.low, first.high) == (0.0, 3.0)
    assert outcomes(compare_studies(b, a)) == ["worse"] * 4
    assert set(outcomes(compare_studies(a, like_a))) == {"no_difference"}


def test_the_demand_of_a_load_is_compared_too(study: Make) -> None:
    """Fewer resources are better; a load that every system sustains with the least level shows nothing."""
    demands = {one.load: one for one in compare_studies(study(7000), study(14_000)).demands}
    assert [demands[load].says for load in (4000, 8000, 64_000)] == ["no_difference", "better", "better"]
    assert (demands[8000].a.above, demands[8000].a.most, demands[8000].b.most) == (1, 2, 1)
    assert (demands[64_000].a.above, demands[64_000].a.most) == (8, None)


def test_an_open_end_decides_nothing(study: Make) -> None:
    """A capacity that no load exceeded may be any higher one; a load that no level sustained has no demand."""
    comparison = compare_studies(study(7000), study(70_000, loads="1k,2k"))
    assert outcomes(comparison) == ["no_difference"] * 4
    assert {one.high for one in comparison.capacities} == {None}
    both = compare_studies(study(70_000, loads="1k,2k"), study(70_000, loads="1k,2k", resources="1,2"))
    assert outcomes(both) == ["unknown"] * 2
    assert outcomes(compare_studies(study(500), study(70_000, loads="1k,2k,4k")))[0] == "better"


def test_an_undecided_failure_bounds_nothing(study: Make, tmp_path: Path) -> None:
    """Above a cell that was not decided the capacity stays open, and so does the demand below it."""
    a, b = study(7000), study(14_000)
    doubtful = tuple(one.model_copy(update={"decided": False}) for one in stored(a).capacities)
    comparison = compare_studies(changed(a, tmp_path, capacities=doubtful), b)
    assert outcomes(comparison) == [*["no_difference"] * 3, "unknown"]
    assert {one.a.above for one in comparison.demands} == {0}


def test_smaller_is_better_where_smaller_is_harder(study: Make, tmp_path: Path) -> None:
    """For a period, 500 ms against 1 s."""

    def of_periods(folder: str, held: float, failed: float) -> str:
        one = stored(folder).capacities[0].model_copy(update={"load": held, "refused": failed, "decided": True})
        axis = {"loads": (1.0, 0.5, 0.25), "load_unit": "s", "dimension": "parameters.slide", "demands": ()}
        return changed(folder, tmp_path, capacities=(one,), metric="smallest slide", **axis)

    comparison = compare_studies(of_periods(study(7000), 1.0, 0.5), of_periods(study(14_000), 0.5, 0.25))
    assert outcomes(comparison) == ["better"]
    assert comparison.capacities[0].high == 0.0
    assert "smallest slide: B is better with parallelism 1" in " ".join(render(scale_document(comparison)).split())


def test_what_differs_is_named(study: Make) -> None:
    """Another grid is none; another criterion or load is another question."""
    a, b = study(7000), study(7000, resources="1,2", loads="1k..8kx2")
    comparison = compare_studies(a, b)
    assert (comparison.not_the_same, comparison.warnings) == ((), ())
    assert [one.resources for one in comparison.capacities] == [1, 2]
    comparison = compare_studies(a, study(7000, of_load={"duration": "8s"}, repeat=3))
    assert {one.setting for one in comparison.not_the_same} == {"load.duration", "scale.repeat"}
    assert comparison.warnings == ("load.duration: the studies ask different questions",)


def test_studies_of_two_environments_are_compared(study: Make, tmp_path: Path) -> None:
    """The machines' differences are named beside the difference of the capacities."""
    a, b = study(7000), study(14_000)
    cloud = stored(b).environment | {"cpu_model": "a cloud's", "cpus": 64, "memory_bytes": 2**38}
    comparison = compare_studies(a, changed(b, tmp_path, environment=cloud))
    named = {one.setting for one in comparison.not_the_same}
    assert {"environment.cpu_model", "environment.cpus", "environment.memory_bytes"} <= named
    assert "environment.cpu_model" in comparison.warnings[0]
    assert outcomes(comparison) == ["better"] * 4


def test_what_cannot_be_compared_is_refused(study: Make, tmp_path: Path) -> None:
    """With a way out."""
    a, lonely = study(7000), study(7000, resources="16")
    other = changed(study(7900), tmp_path, resource="options.knee")
    copy, unfinished = changed(a, tmp_path), changed(a, tmp_path, finished=False)
    for *pair, rule in (
        (a, str(tmp_path), "must be the folder of a scalability study"),
        (str(tmp_path / "none"), a, "must be the folder of a scalability study"),
        (a, a, "must be another study than A"),
        (a, copy, "must be another study than A"),
        (a, unfinished, "must be a study that came to its end"),
        (a, other, "must have the same --resource on both sides"),
        (a, lonely, "must have a level of resources in common"),
        (a, study(7000), ["rate -5%"], "must not be given with scalability studies"),
    ):
        with pytest.raises(InputError, match=rule) as refusal:
            compare_studies(*pair)
        assert all(problem.way_out for problem in refusal.value.problems)


def test_the_command_shows_it(
    study: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 0 whatever differs, 2 for bad input; JSON and a page as of runs."""
    a, b, page = study(7000), study(14_000), tmp_path / "page.html"
    command = partial(call_and_read, monkeypatch, capsys, "compare")
    code, out, err = command(a, b, "--html", str(page))
    assert (code, err) == (0, "")
    shown = ("capacity: B is better with parallelism 1, 2, 4, 8", "4 k/s to 8 k/s", "2 (above 1)")
    assert [line for line in shown if line not in out] == []
    assert "Demand of each load" in page.read_text()
    code, out, _ = command(f"{a}/{SCALE}", b, "--json")
    assert (code, ScaleComparison.model_validate_json(out).kind, "Infinity" in out) == (0, "scale", False)
    assert command(a, str(tmp_path))[0] == 2
    assert command(a, str(changed(b, tmp_path, finished=False)))[0] == 4
