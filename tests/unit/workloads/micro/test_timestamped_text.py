"""Stamped text: what is in a record comes out of it, less what is subtracted."""

from tests.unit.helpers_refusals import assert_refused
from tests.unit.workloads.helpers_cuts import answered, flow_of, job_of, table


def test_a_time_is_subtracted() -> None:
    """Worked out by hand; what is no record gives nulls, and stays one row."""
    records = ["0000000007,000000007000,abc", "", "no record of any kind at all", None]
    rows = table([(record,) for record in records], record="string")
    results = answered(flow_of("stamped_text", zero_us=1000), {"records": rows}).to_pylist()
    assert [(row["id"], row["since_us"]) for row in results] == [(7, 6000), (None, None), (None, None), (None, None)]


def test_records_have_the_size_of_the_parameter() -> None:
    """And at least what they must hold."""
    assert job_of("stamped_text", 1000.0, record_bytes="100").streams[0].fields[0].row_bytes == 104
    assert_refused("record_bytes", job_of, "stamped_text", 1000.0, record_bytes=23)
