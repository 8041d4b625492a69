"""Stamped text: what is in a record comes out of it, less what is subtracted."""

from tests.unit.workloads.helpers_cuts import answered, flow_of, table


def test_a_time_is_subtracted() -> None:
    """Worked out by hand; what is no record gives nulls, and stays one row."""
    records = ["0000000007,000000007000,abc", "", "no record of any kind at all", None]
    rows = table([(record,) for record in records], record="string")
    results = answered(flow_of("stamped_text", zero_us=1000), {"records": rows}).to_pylist()
    assert [(row["id"], row["since_us"]) for row in results] == [(7, 6000), (None, None), (None, None), (None, None)]
