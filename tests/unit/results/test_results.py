"""The rules of result objects."""

import pytest
from pydantic import ValidationError

from streamgauge.results.run import FITS_SHOWN, FITTED, Operator, Verification, shown_notes


def test_wide_samples_have_few_notes_for_people() -> None:
    """Others stay; all are in the result."""
    fits = [f"x{FITTED}x.csv: c{number} int" for number in range(FITS_SHOWN + 7)]
    assert shown_notes([*fits, "assumed"]) == [
        *fits[:FITS_SHOWN], "7 more columns of samples are fitted: notes in result.json", "assumed",
    ]  # fmt: skip
    assert shown_notes([*fits[:3], "assumed"]) == [*fits[:3], "assumed"]


def test_the_kinds_of_faults_are_counted_in_one_place() -> None:
    """Each kind is a field, and one fault of any kind makes a verification wrong."""
    right = Verification(judged=True, independent=True, reference="")
    assert (right.right, right.fault_count) == (True, 0)
    for number, kind in enumerate(("missing", "extra", "duplicate", "wrong", "late"), start=1):
        faulty = right.model_copy(update={kind: number})
        assert (faulty.right, faulty.fault_count) == (False, number)
        assert {name: count for name, count in faulty.faults.items() if count} == {kind: number}


def test_operators_of_before_can_be_read() -> None:
    """They had three fields that nothing filled; anything else that is unknown is refused, as ever."""
    before = {"name": "a", "tuple_bytes": None, "time_per_tuple_us_p99": None, "advised_instances": None}
    assert Operator.model_validate(before) == Operator(name="a")
    with pytest.raises(ValidationError):
        Operator.model_validate({"name": "a", "advised_instances": 3})
