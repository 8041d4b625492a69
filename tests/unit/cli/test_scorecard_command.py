"""`streamgauge scorecard`: its answer, refusals and exit codes."""

from pathlib import Path

from streamgauge.results.scorecard import Scorecard
from tests.unit.cli.helpers_commands import Invoke, assert_one_refusal
from tests.unit.studies.scorecard.helpers_scorecard import by_engine, fast, study_of, written


def test_a_folder_and_a_file_are_rated(stand: Path, invoke: Invoke) -> None:
    """For people and for programs. Without a known rating the exit code is 3."""
    (stand / "m").mkdir()
    (stand / "m" / "matrix.json").write_text(study_of("exp1_aggregation", by_engine(spark=fast(1e5))).to_json())
    (single,) = written(stand, study_of("exp4_skew", by_engine(spark=fast(9e4))))
    shown, printed = invoke("scorecard", "m", single), invoke("scorecard", "m", single, "--json")
    assert (shown.returncode, printed.returncode, shown.stderr) == (0, 0, "")
    card = Scorecard.model_validate_json(printed.stdout)
    (skew,) = (one for one in card.ratings if one.criterion == "skew" and one.grade != "unknown")
    assert (skew.figure, skew.grade) == (0.9, "good")
    assert "90 k events/s in study 2 cell 1, by 100 k events/s in study 1 cell 1" in shown.stdout
    (unknown,) = written(stand, study_of("exp1_aggregation", by_engine(spark={"verdict": "undecided"})))
    assert invoke("scorecard", unknown).returncode == 3


def test_words_that_are_no_studies_are_refused(invoke: Invoke) -> None:
    """An option is not taken for a study."""
    assert_one_refusal(invoke("scorecard", "missing"), "STUDY")
    assert invoke("scorecard").returncode == 2
    assert "error: --jsn" in invoke("scorecard", "m", "--jsn").stderr
