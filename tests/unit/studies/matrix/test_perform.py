"""A cell's figures are those of its result; a cell that could not start is invalid, and the matrix goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.options_and_settings import build
from streamgauge.core.errors import EngineError, InputError, MachineError, Problem
from streamgauge.results.search import SearchResult
from streamgauge.studies.matrix import cells as module
from streamgauge.studies.matrix.cells import Observers, figures_of, perform
from tests.helpers_study_results import breakdown, breakdown_trial, operator_profile

RUN = build({"workload": "identity", "engine": "known"})


def test_the_figures_are_those_of_the_result(make: Callable[..., Path]) -> None:
    """Of a run folder."""
    result = RunFolder.open(make("one", seed=1)).read_result()
    figures = figures_of(result)
    assert result.rate is not None
    assert result.latency.event_time_us is not None
    assert (figures.verdict, figures.folder) == ("sustained", result.folder)
    assert (figures.planned_per_s, figures.ingested_per_s) == (1e5, result.rate.ingested_per_s)
    assert figures.event_time_p50_us == result.latency.event_time_us.p50
    assert (figures.processing_time_p50_us, figures.until_counted_p99_us) == (None, None)
    assert (figures.sut_cpu_percent, figures.sut_memory_bytes, figures.faults) == (100, 2**30, 0)
    assert (figures.sustained_per_s, figures.backlog_max, figures.driver_cpu_percent) == (None, None, None)


def test_a_searchs_rate_is_a_figure(make: Callable[..., Path]) -> None:
    """Beside those of its best trial."""
    search = SearchResult(sustained_per_s=5e4, low=5e4, high=6e4, relative_width=0.2, confirmed=True)
    result = RunFolder.open(make("one", seed=1)).read_result().model_copy(update={"search": search})
    assert figures_of(result).sustained_per_s == 5e4


def test_what_was_not_compared_has_no_faults(make: Callable[..., Path]) -> None:
    """Unknown is not zero."""
    result = RunFolder.open(make("one", seed=1)).read_result()
    assert result.verification is not None
    unjudged = result.verification.model_copy(update={"judged": False})
    assert figures_of(result.model_copy(update={"verification": unjudged})).faults is None


def test_an_anatomy_of_one_trial_has_its_figures(make: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several only the worst verdict."""
    run = str(make("one", seed=1))
    experiment = build({"command": "anatomy", "workload": "identity"})
    one = breakdown(breakdown_trial(run=run), folder="there")
    monkeypatch.setattr(module, "anatomy", lambda *_: one)
    figures = perform(experiment, Observers())
    assert (figures.verdict, figures.folder, figures.planned_per_s) == ("sustained", "there", 1e5)
    trials = [breakdown_trial(verdict=verdict) for verdict in ("sustained", "undecided", "not_sustained")]
    monkeypatch.setattr(module, "anatomy", lambda *_: breakdown(*trials))
    assert perform(experiment, Observers()).verdict == "undecided"


def test_a_characterization_has_a_folder_and_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its steps are progress."""
    shown: list[Any] = []

    def characterize(experiment: Any, say: Any, on_study: Any) -> Any:
        say("counting")
        return operator_profile()

    monkeypatch.setattr(module, "characterize", characterize)
    figures = perform(build({"command": "characterize", "workload": "identity"}), Observers(show=shown.append))
    assert (figures.verdict, figures.folder) == (None, "runs/made")
    assert [snapshot.note for snapshot in shown] == ["counting"]


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (EngineError("spark did not start", "a.log"), "spark did not start whole log: a.log"),
        (InputError(Problem("load.rate", "must be less", "9M", "--rate 1M")), "load.rate: must be less; got '9M' try:"),
    ],
)
def test_a_cell_that_could_not_start_is_invalid(
    monkeypatch: pytest.MonkeyPatch, error: Exception, sentence: str
) -> None:
    """With the reason on one line."""
    error.folder = "runs/one"  # type: ignore[attr-defined]

    def fail(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(module, "run_single", fail)
    figures = perform(RUN, Observers())
    assert (figures.verdict, figures.folder) == ("invalid", "runs/one")
    assert figures.sentence.startswith(sentence)


def test_what_this_machine_lacks_ends_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other cell would end so too."""

    def fail(*_: Any) -> Any:
        raise MachineError("no Java")

    monkeypatch.setattr(module, "run_single", fail)
    with pytest.raises(MachineError):
        perform(RUN, Observers())


def test_only_a_searchs_progress_is_shown(monkeypatch: pytest.MonkeyPatch, make: Callable[..., Path]) -> None:
    """Its header, trials and result stand in the cell's report."""
    result, shown = RunFolder.open(make("one", seed=1)).read_result(), list[Any]()

    def sustain(experiment: Any, view: Any, on_result: Any) -> Any:
        view.header("asked")
        view.trial_progress("running")
        view.trial(None)
        view.finish(result)
        return result

    monkeypatch.setattr(module, "sustain", sustain)
    asked = build({"command": "sustain", "workload": "identity"})
    assert perform(asked, Observers(show=shown.append)).verdict == "sustained"
    assert shown == ["running"]
