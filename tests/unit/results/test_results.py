"""The rules of result objects."""

import pytest
from pydantic import ValidationError

from streamgauge.results.latency import LATENCY_KINDS, PERCENTILES, STATISTICS, Latencies, Latency
from streamgauge.results.run import FITS_SHOWN, FITTED, Operator, Verification, shown_notes


def test_the_statistics_are_those_that_a_latency_has() -> None:
    """One list for all that compute, limit, draw and print them: nothing too much in it, nothing left out."""
    counts = {"count", "effective_count", "lower_bounds", "note"}
    assert [name for name in Latency.model_fields if name not in counts] == list(STATISTICS)
    assert {name: float(f"0.{name[1:].replace('_', '')}") for name in PERCENTILES} == PERCENTILES


def test_every_kind_is_found_by_its_name() -> None:
    """`of` gives what the field of that kind holds."""
    for number, kind in enumerate(LATENCY_KINDS):
        assert Latencies.model_validate({f"{kind}_us": Latency(count=number)}).by_kind(kind) == Latency(count=number)
    assert set(Latencies.model_fields) == {f"{kind}_us" for kind in LATENCY_KINDS} | {"notes"}


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
