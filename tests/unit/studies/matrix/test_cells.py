"""The cells of a matrix: checked before anything starts, performed, and listed in a table."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import build
from streamgauge.config.matrix import expand, varied
from streamgauge.core.errors import DriverError, EngineError, InputError, MachineError, Problem
from streamgauge.core.exit_codes import ExitCode
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.matrix import CellFigures, MatrixCell, MatrixResult, SearchFigures
from streamgauge.results.run import SinkResult
from streamgauge.results.search import SearchResult, TrialSummary
from streamgauge.studies.capacity.constants import TRIALS_TYPICAL
from streamgauge.studies.matrix import cells as module
from streamgauge.studies.matrix.cells import (
    TABLES,
    Observers,
    cells_table,
    check_cells,
    figures_of,
    perform,
    perform_within,
    write_tables,
)
from tests.helpers_study_results import breakdown, breakdown_trial, operator_profile
from tests.unit.helpers_refusals import problem_of

ON_KNOWN = {"workload": "windowed_aggregation", "engine": "known", "parameters": {"range": "2s", "slide": "1s"}}
LOAD = {"warmup": "2s", "duration": "30s"}


def seconds(command: str, **more: Any) -> Any:
    """The time of a cell, which is None if unforeseen."""
    (one,) = check_cells(expand(build({"command": command, **ON_KNOWN, "load": LOAD, **more})))
    return one.seconds


def test_a_runs_time_is_that_of_its_phases_and_its_start() -> None:
    """Warm-up, span and tail; a JVM needs longer to start."""
    assert 30 + 2 + 2 < seconds("run") < 45
    assert seconds("run", engine="spark") > seconds("run") + 10


def test_a_searchs_time_is_that_of_some_trials() -> None:
    """Without its confirmation it is shorter."""
    assert seconds("sustain", search={"quick": True}) < seconds("sustain") <= TRIALS_TYPICAL * seconds("run")


def test_an_anatomys_time_is_that_of_its_trials() -> None:
    """Each on an engine of its own."""
    of = {"workload": "identity", "engine": "spark", "parameters": {}}
    one, two = (seconds("anatomy", **of, anatomy={"rates": rates}) for rates in ("1k", "1k,2k"))
    assert two == 2 * one > 0


def test_a_characterizations_time_is_unforeseen() -> None:
    """The time of a tuple is unknown before it is measured."""
    sizes = {"slices": 10, "slice_events": 1000}
    (one,) = check_cells(expand(build({"command": "characterize", "workload": "identity", "characterize": sizes})))
    assert one.seconds is None


def test_repetitions_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the same."""
    cells = expand(build({"command": "run", **ON_KNOWN, "load": LOAD, "matrix": {"load.seed": [1, 2], "repeat": 5}}))
    monkeypatch.setattr(module, "check", check := Mock(side_effect=module.check))
    assert (len(check_cells(cells)), check.call_count) == (10, 2)


@pytest.mark.parametrize(
    ("requested", "setting", "rule"),
    [
        ({"command": "generate"}, "command", "must be run, sustain, anatomy, characterize with a matrix"),
        ({"command": "sustain", "search": {"resume": "runs/one"}}, "search.resume", "must not be given with a matrix"),
        ({"command": "anatomy"}, "engine", "must be spark"),
        ({"command": "run", "matrix": {"parameters.rang": ["4s"]}}, "set rang", "is not a parameter"),
    ],
)
def test_what_a_cell_cannot_be_is_refused(requested: dict[str, Any], setting: str, rule: str) -> None:
    """By the rules of its command."""
    problem = problem_of(check_cells, expand(build({**ON_KNOWN, "load": LOAD, **requested})))
    assert (problem.setting, rule in problem.rule) == (setting, True)


@pytest.mark.parametrize(("matrix", "setting", "incomplete"), [
    ({"load.rate": ["1k", "fast"], "parameters.rang": ["4s"]}, "load.rate", True),
    ({"load.rat": ["1k"], "parameters.rang": ["4s"]}, "matrix.load.rat", True),
    ({"load.seed": [1], "exclude": [{"load.seed": 3}], "parameters.rang": ["4s"]}, "matrix.exclude[0]", True),
    ({"engine": ["known", "nwonk"], "load.warmup": ["1s"]}, "engine", True),
    ({"load.duration": ["1s", "0s"]}, "load.duration", False),
])  # fmt: skip
def test_a_refusal_that_hides_others_says_so(matrix: dict[str, Any], setting: str, incomplete: bool) -> None:
    """What a check of the cells would find comes after what makes no cells."""
    with pytest.raises(InputError) as refused:
        check_cells(expand(build({"command": "run", **ON_KNOWN, "load": LOAD, "matrix": matrix})))
    assert ({one.setting for one in refused.value.problems}, refused.value.incomplete) == ({setting}, incomplete)


RUN = build({"workload": "identity", "engine": "known"})


@pytest.fixture
def result(make_run: Callable[..., Path]) -> Any:
    """Of a run."""
    return RunFolder.open(make_run("one", seed=1)).read_result()


def test_the_figures_are_those_of_the_result(result: Any) -> None:
    """Of a run folder; what was not compared has no faults, because unknown is not zero."""
    figures = figures_of(result)
    assert (figures.verdict, figures.folder) == ("sustained", result.folder)
    assert (figures.planned_per_s, figures.ingested_per_s) == (1e5, result.rate.ingested_per_s)
    assert figures.event_time_p50_us == result.latency.event_time_us.p50
    assert (figures.processing_time_p50_us, figures.until_counted_p99_us) == (None, None)
    assert (figures.sut_cpu_percent, figures.sut_memory_bytes, figures.faults) == (100, 2**30, 0)
    assert (figures.sustained_per_s, figures.backlog_max, figures.driver_cpu_percent) == (None, None, None)
    unjudged = result.verification.model_copy(update={"judged": False})
    assert figures_of(result.model_copy(update={"verification": unjudged})).faults is None


def test_a_searchs_rate_is_a_figure(result: Any) -> None:
    """Beside those of its best trial."""
    search = SearchResult(sustained_per_s=5e4, low=5e4, high=6e4, relative_width=0.2, confirmed=True)
    assert figures_of(result.model_copy(update={"search": search})).sustained_per_s == 5e4


def test_what_papers_plot_are_figures(result: Any) -> None:
    """Least latency and p95, deviation, traffic, and results per second of all sinks, if each is known."""
    rate = result.rate.model_copy(update={"ingested_std_per_s": 12.0})
    sinks = [SinkResult(name=f"{n}", rows=9, rows_per_s=n, latency=result.latency) for n in (2.0, 3.0)]
    figures = figures_of(result.model_copy(update={"rate": rate, "sinks": sinks, "loopback_bytes_per_s": 7.0}))
    assert (figures.ingested_std_per_s, figures.results_per_s, figures.loopback_bytes_per_s) == (12, 5, 7)
    latency = result.latency.event_time_us
    assert (figures.event_time_min_us, figures.event_time_p95_us) == (latency.min, latency.p95)
    unknown = [*sinks, sinks[0].model_copy(update={"rows_per_s": None})]
    assert figures_of(result.model_copy(update={"sinks": unknown})).results_per_s is None


def test_the_maximum_throughput_is_a_figure(result: Any) -> None:
    """Of a trial that went on under overload; of others it is unknown."""
    overloaded = result.model_copy(update={"rate": result.rate.model_copy(update={"maximum_per_s": 8e4})})
    assert [figures_of(one).maximum_per_s for one in (overloaded, result)] == [8e4, None]


def test_each_of_several_sinks_has_figures(result: Any, tmp_path: Path) -> None:
    """Its rate and its latencies are columns, and null for a cell without that sink; a single sink has none."""
    faster = result.latency.model_copy(update={"event_time_us": Latency(p50=1.0, p95=2.0, p99=3.0, lower_bounds=4)})
    sinks = [
        SinkResult(name=name, rows=9, rows_per_s=rate, latency=latency)
        for name, rate, latency in (("fast", 2.0, faster), ("slow", None, Latencies()))
    ]
    several = figures_of(result.model_copy(update={"sinks": sinks}))
    assert [one.name for one in several.sinks] == ["fast", "slow"]
    assert figures_of(result.model_copy(update={"sinks": sinks[:1]})).sinks == ()
    one_more = several.model_copy(update={"sinks": several.sinks[1:], "at_90_percent": None})
    at_90 = SearchFigures(**dict(several), at_90_percent=several)
    table, _ = written(tmp_path, {"load.seed": [1, 2, 3]}, at_90, one_more, CellFigures())
    names = ["results_per_s", "event_time_p50_us", "event_time_p95_us", "event_time_p99_us", "lower_bounds"]
    columns = [name for name in table.column_names if name.startswith("sinks.")]
    assert columns == [f"sinks.{sink}.{name}" for sink in ("fast", "slow") for name in names]
    assert [table[f"sinks.fast.{name}"][0].as_py() for name in names] == [2, 1, 2, 3, 4]
    assert table["sinks.fast.results_per_s"].to_pylist()[1:] == [None, None]
    assert table["sinks.slow.results_per_s"].to_pylist() == [None] * 3
    assert table["at_90_percent.sinks.fast.event_time_p99_us"].to_pylist() == [3.0, None, None]


def test_a_search_has_its_trial_at_90_percent_too(
    monkeypatch: pytest.MonkeyPatch, result: Any, make_run: Callable[..., Path], tmp_path: Path
) -> None:
    """With a folder and a report relative to the matrix; its figures are columns of the table."""
    trial_folder = make_run("cells/001/search/trials/02", seed=2, rate=9e4, offered=9e4)
    (trial_folder / "report.html").touch()
    trial = TrialSummary(number=2, purpose="at 90 %", offered_per_s=9e4, verdict="sustained", seconds=41.0,
                         folder="elsewhere/trials/02")  # fmt: skip
    search = SearchResult(
        sustained_per_s=1e5, low=1e5, high=None, relative_width=None, confirmed=True, at_90_percent=trial
    )
    found = result.model_copy(update={"search": search, "folder": str(trial_folder.parents[1])})
    monkeypatch.setattr(module, "sustain", lambda *_: found)
    experiment = build({"command": "sustain", "workload": "identity"})
    figures = perform_within(tmp_path, 1, experiment, Observers())
    assert isinstance(figures, SearchFigures)
    at_90 = figures.at_90_percent
    assert at_90 is not None
    assert (figures.sustained_per_s, figures.folder) == (1e5, "cells/001/search")
    assert (at_90.planned_per_s, at_90.seconds, at_90.report) == (9e4, 41, "cells/001/search/trials/02/report.html")
    table, _ = written(tmp_path, {"load.seed": [1, 2]}, figures, CellFigures())
    assert table["at_90_percent.planned_per_s"].to_pylist() == [9e4, None]
    gone = found.model_copy(update={"folder": str(tmp_path)})
    monkeypatch.setattr(module, "sustain", lambda *_: gone)
    assert perform(experiment, Observers()).at_90_percent is None  # type: ignore[attr-defined]


def test_an_anatomy_of_one_trial_has_its_figures(result: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several only the worst verdict. A rate that is not sustained is no failure of an anatomy."""
    experiment = build({"command": "anatomy", "workload": "identity"})
    one = breakdown(breakdown_trial(run=result.folder), folder="there")
    monkeypatch.setattr(module, "anatomy", lambda *_: one)
    figures = perform(experiment, Observers())
    assert (figures.verdict, figures.folder, figures.planned_per_s) == ("sustained", "there", 1e5)
    trials = [breakdown_trial(verdict=verdict) for verdict in ("sustained", "undecided", "not_sustained")]
    monkeypatch.setattr(module, "anatomy", lambda *_: breakdown(*trials))
    figures = perform(experiment, Observers())
    assert (figures.verdict, figures.exit_code) == ("not_sustained", ExitCode.HOLDS)


def test_a_characterization_has_a_folder_and_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its steps are progress."""
    shown: list[Any] = []
    monkeypatch.setattr(module, "characterize", lambda _, progress, __: progress("counting") or operator_profile())
    figures = perform(build({"command": "characterize", "workload": "identity"}), Observers(show=shown.append))
    assert (figures.verdict, figures.folder) == (None, "runs/made")
    assert [snapshot.note for snapshot in shown] == ["counting"]


@pytest.mark.parametrize(
    ("error", "sentence", "code"),
    [
        (EngineError("spark did not start", "a.log"), "spark did not start whole log: a.log", ExitCode.FAILS),
        (
            InputError(Problem("load.rate", "must be less", "9M", "--rate 1M")),
            "load.rate: must be less; got '9M' try:",
            ExitCode.REFUSAL,
        ),
        (DriverError("generator 0 ended"), "generator 0 ended", ExitCode.INVALID),
    ],
)
def test_a_cell_that_could_not_start_is_invalid(
    monkeypatch: pytest.MonkeyPatch, error: Exception, sentence: str, code: ExitCode
) -> None:
    """With the reason on one line, and the exit code that its command alone would have."""
    error.folder = "runs/one"  # type: ignore[attr-defined]
    monkeypatch.setattr(module, "run_judged", Mock(side_effect=error))
    figures = perform(RUN, Observers())
    assert (figures.verdict, figures.folder, figures.exit_code, figures.code) == ("invalid", "runs/one", code, code)
    assert figures.sentence.startswith(sentence)


def test_what_this_machine_lacks_ends_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other cell would end so too."""
    monkeypatch.setattr(module, "run_judged", Mock(side_effect=MachineError("no Java")))
    with pytest.raises(MachineError):
        perform(RUN, Observers())


def test_only_a_searchs_progress_is_shown(monkeypatch: pytest.MonkeyPatch, result: Any) -> None:
    """Its header and trials stand in the cell's report."""
    shown: list[Any] = []
    monkeypatch.setattr(module, "sustain", lambda _, view, __: view.trial_progress("trial_progress") or result)
    experiment = build({"command": "sustain", "workload": "identity"})
    assert perform(experiment, Observers(show=shown.append)).verdict == "sustained"
    assert shown == ["trial_progress"]


def written(folder: Path, matrix: dict[str, Any], *figures: CellFigures) -> tuple[pa.Table, list[dict[str, str]]]:
    cells = expand(build({"workload": "windowed_aggregation", "matrix": matrix}))
    rows = [
        MatrixCell(number=cell.number, settings=dict(cell.settings), repetition=cell.repetition, **dict(one))
        for cell, one in zip(cells, figures, strict=False)
    ]
    result = MatrixResult(
        command="run", workload="windowed_aggregation", engine="spark", varied=varied(cells), planned=len(cells),
        environment={}, start_time="", folder=str(folder), cells=tuple(rows),
    )  # fmt: skip
    write_tables(folder, TABLES, cells_table(result, {cell.number: cell for cell in cells}))
    with (folder / "cells.csv").open(newline="") as lines:
        return pq.read_table(folder / "cells.parquet"), list(csv.DictReader(lines))


def test_the_columns_are_number_settings_repetition_and_figures(tmp_path: Path) -> None:
    """In both files, and the rows are those of the cells that were run."""
    matrix = {"load.rate": ["10k", "1.5M"], "parameters.range": ["4s"], "parameters.packs": [10], "tuning": ["tuned"]}
    first = CellFigures(verdict="sustained", ingested_per_s=9999.5, faults=0, sentence='said "so",\nin two lines')
    table, rows = written(tmp_path, matrix, first, CellFigures(verdict="invalid"))
    figures = [name for name in CellFigures.model_fields if name != "sinks"]
    assert table.column_names == list(rows[0]) == ["number", *matrix, "repetition", *figures]
    assert table.column("load.rate").to_pylist() == [10_000.0, 1_500_000.0]
    assert table.column("faults").to_pylist() == [0, None]
    types = [table.schema.field(name).type for name in ("parameters.packs", "parameters.range", "ingested_per_s")]
    assert types == [pa.int64(), pa.string(), pa.float64()]
    assert [(row["verdict"], row["ingested_per_s"], row["faults"]) for row in rows] == [
        ("sustained", "9999.5", "0"), ("invalid", "", "")
    ]  # fmt: skip
    assert rows[0]["sentence"] == 'said "so",\nin two lines'


def test_without_a_cell_there_is_a_table_without_rows(tmp_path: Path) -> None:
    """With the same columns, so that programs need no exception."""
    table, rows = written(tmp_path, {"load.rate": ["10k"]})
    assert (table.num_rows, rows, table.column_names[:3]) == (0, [], ["number", "load.rate", "repetition"])


def test_values_of_several_kinds_are_text_and_lists_too(tmp_path: Path) -> None:
    """A setting that is not set is null."""
    matrix = {
        "include": [
            {"parameters.packs": 10, "limits": ["p50<=1s", "p90<=2s"]},
            {"parameters.packs": "many"},
            {"load.warmup": "5s"},
        ]
    }
    table, _ = written(tmp_path, matrix, *[CellFigures()] * 3)
    assert table.column("parameters.packs").to_pylist() == ["10", "many", None]
    assert table.column("limits").to_pylist()[0] == "p50<=1s, p90<=2s"
    assert table.column("load.warmup").to_pylist() == [None, None, 5.0]
