"""Systems rated from cells of experiments, and what a use case picks."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from streamgauge.core.errors import InputError
from streamgauge.report.documents.scorecard import document
from streamgauge.results.matrix import MatrixResult
from streamgauge.results.scorecard import Rating, Scorecard
from streamgauge.studies.scorecard import scorecard as module
from streamgauge.studies.scorecard.scorecard import WORKLOADS, scorecard
from tests.helpers_modules import ROOT
from tests.unit.studies.scorecard.helpers_scorecard import by_engine, fast, study_of, written

AGGREGATION, JOIN = WORKLOADS


def rated(folder: Path, *studies: MatrixResult) -> Scorecard:
    return scorecard(written(folder, *studies))


def rating(card: Scorecard, criterion: str, system: str = "spark", workload: str = AGGREGATION) -> Rating:
    (found,) = (
        one for one in card.ratings if (one.criterion, one.workload, one.system) == (criterion, workload, system)
    )
    return found


def picked(card: Scorecard, criterion: str, workload: str = AGGREGATION) -> tuple[str, ...]:
    (found,) = (one for one in card.picks if (one.criterion, one.workload) == (criterion, workload))
    return found.systems


def published_figures(experiment: str, nodes: str) -> dict[str, dict[str, Any]]:
    """The paper's figures at its maximum by engine, as figures of cells."""
    with (ROOT / "experiments" / "published" / "karimov_tables_1_to_4.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {
        row["system"].lower(): fast(
            *(float(row[name]) for name in ("throughput_per_s", "latency_avg_s", "latency_max_s"))
        )
        for row in rows
        if (row["experiment"], row["load"], row["nodes"]) == (experiment, "maximum", nodes)
    }


@pytest.mark.parametrize("nodes", ["2", "4", "8"])
def test_the_rules_rate_the_paper_s_own_figures_as_the_paper_does(tmp_path: Path, nodes: str) -> None:
    """With its tables I to IV, and with one key at the rates of experiment 4 (4 nodes)."""
    card = rated(
        tmp_path,
        study_of("exp1_aggregation", by_engine(**published_figures("aggregation", nodes))),
        study_of("exp2_join", by_engine(**published_figures("join", nodes))),
        study_of("exp4_skew", by_engine(spark=fast(0.53e6), flink=fast(0.48e6), storm=fast(0.2e6))),
    )
    published = {row[0]: row[2].lower() for row in card.published.rows}
    for workload in WORKLOADS:
        for criterion in ("throughput", "average latency", "bounded latency"):
            assert picked(card, criterion, workload)[0] == published[criterion]
    assert picked(card, "skew")[0] == published["skew"]
    if nodes == "4":
        grades = [rating(card, "skew", system).grade for system in ("spark", "flink", "storm")]
        assert grades == ["good", "poor", "poor"]


@pytest.mark.parametrize(
    ("file", "kinds"),
    [
        ("exp1_aggregation", {"small windows"}), ("exp2_join", {"small windows"}),
        ("exp3_large_windows", {"large windows"}), ("exp4_skew", {"single key"}),
        ("exp5_fluctuating", {"fluctuating rate"}), ("exp6_event_and_processing_time", set()),
        ("exp7_throughput", set()), ("exp8_resources", set()),
    ],
)  # fmt: skip
def test_a_cell_counts_by_its_settings(file: str, kinds: set[str]) -> None:
    """Of the shipped files, and of their looks; experiments 6 to 8 have no rated cells."""
    for changes in ({}, {"quick": True, "command": "run"}):
        found = {one.kind for one in module._cells(1, study_of(file, lambda _: {}, **changes))}
        assert (kinds <= found, bool(kinds)) == (True, bool(found))


@pytest.mark.parametrize(("criterion", "figures", "grades"), [
    ("throughput", [fast(100.0), fast(80.0), fast(79.9), fast(50.0), fast(49.0)], "good good fair fair poor"),
    ("average latency", [fast(1.0, each) for each in (1.0, 1.5, 1.51, 3.0, 3.1)], "good good fair fair poor"),
    ("bounded latency", [fast(1.0, 1.0, each) for each in (3.0, 3.1, 10.0, 10.1, 1.0)], "good fair fair poor good"),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_grades_follow_the_limits(
    tmp_path: Path, criterion: str, figures: Sequence[Mapping[str, Any]], grades: str
) -> None:
    """Both limits are included."""
    systems = ("spark (memory)", "spark (kafka)", "flink", "storm", "kafka-streams")

    def of(settings: Mapping[str, Any]) -> Mapping[str, Any] | None:
        names = (settings["engine"], f"{settings['engine']} ({settings['transport']})")
        return next((one for system, one in zip(systems, figures, strict=True) if system in names), None)

    card = rated(tmp_path, study_of("exp1_aggregation", of))
    assert [rating(card, criterion, system).grade for system in systems] == grades.split()
    assert {one.system for one in card.ratings} == {*systems}


def test_large_windows_and_skew_are_shares_of_the_system_s_own_rate(tmp_path: Path) -> None:
    """And a use case picks by the rate itself. Without that rate the rating is not known, and the pick is."""
    small, large, single = (
        study_of("exp1_aggregation", by_engine(spark=fast(100.0), flink=fast(1000.0))),
        study_of("exp3_large_windows", by_engine(spark=fast(90.0), flink=fast(400.0))),
        study_of("exp4_skew", by_engine(spark=fast(50.0), flink=fast(45.0), storm=fast(49.0))),
    )
    card = rated(tmp_path, small, large, single)
    assert [rating(card, "large windows", name).grade for name in ("spark", "flink")] == ["good", "poor"]
    assert [rating(card, "skew", name).figure for name in ("spark", "flink", "storm")] == [0.5, 0.045, None]
    assert rating(card, "skew", "storm").doubt == "no_reference"
    assert (picked(card, "large windows"), picked(card, "skew")) == (("flink",), ("spark", "storm", "flink"))
    # The join's large windows have no small ones beside them: the aggregation's are another workload.
    assert rating(card, "large windows", "flink", JOIN).doubt == "no_reference"
    reference = rating(card, "skew").reference
    assert reference is not None
    assert (reference.study, reference.cell, reference.value) == (1, 1, 100.0)


def test_a_reference_has_the_other_parameters_too(tmp_path: Path) -> None:
    """Ten packs are another question than a thousand."""
    single = study_of("exp4_skew", by_engine(spark=fast(50.0)))
    other = {**single.experiment, "parameters": {**single.experiment["parameters"], "packs": 10}}
    small = study_of("exp1_aggregation", by_engine(spark=fast(100.0)))
    card = rated(tmp_path, small, single.model_copy(update={"experiment": other}))
    assert rating(card, "skew").doubt == "no_reference"


def test_a_fluctuating_rate_is_rated_in_slides_of_the_window(tmp_path: Path) -> None:
    """Windows slide by 4 s."""
    latencies = {"spark": (5.0, 9.0), "flink": (0.5, 8.0), "storm": (1.0, 10.0)}
    figures = {
        engine: {"event_time_mean_us": 1e6 * mean, "event_time_max_us": 1e6 * most}
        for engine, (mean, most) in latencies.items()
    }
    card = rated(tmp_path, study_of("exp5_fluctuating", by_engine(**figures)))
    found = [rating(card, "fluctuating rate", engine) for engine in latencies]
    assert [(one.figure, one.grade) for one in found] == [(1.0, "good"), (1.875, "fair"), (2.25, "poor")]
    systems = picked(card, "fluctuating rate")
    assert (systems[0], "flink" in systems) == ("spark", False)


@pytest.mark.parametrize(("figures", "doubt"), [
    ({"verdict": "not_sustained"}, "not_sustained"), ({"verdict": "undecided"}, "undecided"),
    ({"verdict": "invalid"}, "invalid"), ({"verdict": "interrupted"}, "interrupted"), ({}, "no_figure"),
    ({"sustained_per_s": 1.0, "verdict": None}, "no_figure"), (None, "no_cell"),
])  # fmt: skip
def test_a_rating_is_not_known_without_a_sustained_cell(
    tmp_path: Path, figures: dict[str, Any] | None, doubt: str
) -> None:
    """With the reason, and the cell if there is one."""
    small = study_of(
        "exp1_aggregation", by_engine(flink=fast(1.0), **({"spark": figures} if figures is not None else {}))
    )
    card = rated(tmp_path, small, study_of("exp4_skew", by_engine(spark=fast(1.0))))
    found = rating(card, "throughput")
    assert (found.grade, found.figure, found.doubt) == ("unknown", None, doubt)
    assert found.measured is None if doubt == "no_cell" else found.measured is not None
    assert picked(card, "throughput") == ("flink",)


def test_latencies_of_updates_are_not_rated(tmp_path: Path) -> None:
    """They do not wait for a window's end. The rate is rated."""
    updates = {**fast(1.0), "until_counted_p50_us": 1.0}
    card = rated(tmp_path, study_of("exp1_aggregation", by_engine(spark=updates, flink=fast(1.0))))
    assert [rating(card, name).doubt for name in ("throughput", "average latency", "bounded latency")] == [
        "", "updates", "updates",
    ]  # fmt: skip
    assert picked(card, "average latency") == ("flink",)


def test_the_best_cell_is_rated_and_of_its_repetitions_the_worst(tmp_path: Path) -> None:
    """An invalid repetition leaves the others; one that was not sustained leaves nothing to rate."""
    study = study_of("exp3_large_windows", by_engine(spark=fast(30.0)))
    first, second = study.cells[0], next(one for one in study.cells[1:] if one.settings != study.cells[0].settings
                                         and one.settings["workload"] == AGGREGATION)  # fmt: skip

    def measured(*cells: Any) -> float | None:
        card = rated(tmp_path, study.model_copy(update={"cells": cells}))
        found = rating(card, "large windows")
        return found.measured.value if found.measured and found.doubt == "no_reference" else None

    again = {"number": 90, "repetition": 2}
    assert measured(first, second.model_copy(update={"sustained_per_s": 40.0})) == 40.0
    assert measured(first, first.model_copy(update={**again, "sustained_per_s": 20.0})) == 20.0
    assert measured(first, first.model_copy(update={**again, "verdict": "invalid"})) == 30.0
    assert measured(first, first.model_copy(update={**again, "verdict": "not_sustained"})) is None


def test_a_quick_look_says_so_and_has_no_rates(tmp_path: Path) -> None:
    """Its latencies are rated, marked, unless a search was given too."""
    look = study_of(
        "exp1_aggregation", by_engine(spark={**fast(1.0), "sustained_per_s": None}), quick=True, command="run"
    )
    card = rated(tmp_path, look)
    assert (rating(card, "throughput").doubt, rating(card, "average latency").quick) == ("quick_look", True)
    assert ("a look" in str(document(card)), document(card).mark != "") == (True, True)
    (pick,) = (one for one in card.picks if (one.criterion, one.workload) == ("average latency", AGGREGATION))
    assert (pick.systems, pick.quick) == (("spark",), True)
    both = rated(tmp_path, look, study_of("exp1_aggregation", by_engine(spark=fast(1.0)), start_time="later"))
    assert (rating(both, "average latency").quick, document(both).mark) == (False, "")


def test_published_ratings_stand_apart(tmp_path: Path) -> None:
    """In a marked table of their own; no rating depends on them."""
    card = rated(tmp_path, study_of("exp1_aggregation", by_engine(spark=fast(1.0))))
    sections = {one.id: str(one) for one in document(card).sections}
    assert [name for name, text in sections.items() if "style='published'" in text] == ["published"]
    assert {row[0] for row in card.published.rows} == {one.name for one in card.criteria}


def test_what_is_no_study_is_refused(tmp_path: Path) -> None:
    """All of it at once: a missing path, another study, a file of an earlier version."""
    study = study_of("exp1_aggregation", by_engine(spark=fast(1.0)))
    old, scale = tmp_path / "old.json", tmp_path / "scale.json"
    old.write_text(study.model_copy(update={"experiment": {}}).to_json())
    scale.write_text('{"schema_version": 1}')
    given = [str(tmp_path / "missing"), str(tmp_path), str(old), str(scale), *written(tmp_path, study)]
    with pytest.raises(InputError) as refusal:
        scorecard(given)
    assert [(one.setting, one.got) for one in refusal.value.problems] == [("STUDY", one) for one in given[:4]]


def test_studies_of_two_machines_are_refused(tmp_path: Path) -> None:
    """Their rates cannot be divided."""
    here, there = (
        study_of("exp1_aggregation", by_engine(spark=fast(1.0)), environment={"cpu_model": model, "cpus": 2})
        for model in ("here", "there")
    )
    with pytest.raises(InputError) as refusal:
        rated(tmp_path, here, there)
    assert [(one.setting, one.got) for one in refusal.value.problems] == [("STUDY", "here, 2 CPUs; there, 2 CPUs")]


def test_a_study_that_is_given_twice_changes_nothing(tmp_path: Path) -> None:
    study = study_of("exp1_aggregation", by_engine(spark=fast(2.0), flink=fast(1.0)))
    once, twice = rated(tmp_path, study), rated(tmp_path, study, study)
    assert (once.ratings, once.picks) == (twice.ratings, twice.picks)
