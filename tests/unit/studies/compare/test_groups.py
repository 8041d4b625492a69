"""What a reader must know of a run before its figures are compared."""

import pytest

from streamgauge.results.run import Result, Verification
from streamgauge.results.verdict import Verdict
from streamgauge.studies.compare import groups

RIGHT = Verification(judged=True, independent=True, reference="", expected=9, matched=9)
WRONG = RIGHT.model_copy(update={"matched": 6, "missing": 2, "wrong": 1})
HELD = Verdict(value="sustained")


@pytest.mark.parametrize(
    ("verdict", "verification", "message"),
    [
        (HELD, RIGHT, ""),
        (HELD, None, "answers not judged"),
        (HELD, RIGHT.model_copy(update={"judged": False}), "answers not judged"),
        (Verdict(value="not_sustained", decided_by=("answers",)), WRONG, "wrong answers (2 missing, 1 wrong)"),
        (
            Verdict(value="not_sustained", decided_by=("backlog_trend", "answers")), WRONG,
            "wrong answers (2 missing, 1 wrong), not sustained by backlog_trend",
        ),
        (Verdict(value="not_sustained", decided_by=("connected",)), RIGHT, "not sustained by connected"),
        (Verdict(value="undecided", decided_by=("evidence",)), RIGHT, "undecided by evidence"),
        (Verdict(value="undecided", decided_by=("answers",)), None, "answers not judged"),
        (Verdict(value="not_sustained"), RIGHT, "not sustained"),
    ],
)  # fmt: skip
def test_why_a_run_did_not_do_its_work(verdict: Verdict, verification: Verification | None, message: str) -> None:
    """Answers before anything else, then the checks that decided; nothing where all is well."""
    result = Result(
        run_id="r", start_time="t", workload="w", engine="e", isolation="shared", experiment={}, verdict=verdict,
        verification=verification,
    )  # fmt: skip
    assert groups._failed(result) == message
