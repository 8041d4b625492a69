"""Places of addresses: the made database against its list, by class and by SQL, and databases that are none."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.duckdb_oracle.process_operator import is_independent
from streamgauge.workloads.helpers.places import MADE, find_places, networks, place_of
from tests.unit.helpers_refusals import assert_refused
from tests.unit.workloads.helpers_cuts import BOTH, answered, flow_of, table, without_truth

LINES = source("lines", Schema.from_types(address="string"))
FLOW = find_places(LINES, "").sink("places")


def written(number: int) -> str:
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def places(flow: Flow, addresses: list[str | None]) -> dict[int, tuple[str, str | None]]:
    """Place in the list to country and city."""
    results = answered(flow, {"lines": table([(address,) for address in addresses], address="string")})
    return {row["event_id"]: (row["country"], row["city"]) for row in results.to_pylist()}


def test_the_database_holds_its_list_and_nothing_else() -> None:
    """First and last address of every network, and the neighbours of those that nobody knows."""
    known = {first >> 22: (country, city) for first, _, country, city in networks()}
    borders = {border for first, last, *_ in networks() for border in (first - 1, first, last, last + 1)}
    for number in (each for each in borders if 0 <= each < 2**32):
        assert place_of("", written(number)) == known.get(number >> 22, (None, None)), written(number)


@BOTH
def test_worked_by_hand(variant: Any) -> None:
    """0.0.0.0 is in the first network that is nowhere; what is no address is nowhere either."""
    known = list(networks())
    first, city_less = known[0], next(network for network in known if network[3] is None)
    addresses = [
        written(first[0]), written(first[1]), written(city_less[0] + 5), "0.0.0.0", None, "", "1.2.3", "1.2.3.4.5",
        "1.2.3.256", "01.2.3.4", "a host", f" {written(first[0])}",
    ]  # fmt: skip
    assert places(variant(FLOW), addresses) == {0: first[2:], 1: first[2:], 2: city_less[2:]}


OCTET = st.one_of(st.integers(0, 300).map(str), st.sampled_from(["", "x", "007", "-1", "1e2"]))


@given(st.lists(st.lists(OCTET, min_size=3, max_size=5).map(".".join), max_size=30))
def test_truth_and_class_agree(addresses: list[str | None]) -> None:
    """Whatever is written."""
    assert places(FLOW, addresses) == places(without_truth(FLOW), addresses)


def test_a_database_of_ones_own_is_read_and_not_independent(tmp_path: Path) -> None:
    """The same file elsewhere: the same places, and no second statement of them."""
    own = tmp_path / "own.mmdb"
    own.write_bytes(MADE.read_bytes())
    flow = find_places(LINES, str(own)).sink("places")
    first = next(iter(networks()))
    assert places(flow, [written(first[0])]) == {0: first[2:]}
    assert is_independent(FLOW)
    assert not is_independent(flow)


@pytest.mark.parametrize("workload", ["log_processing", "click_analytics"])
@pytest.mark.parametrize("content", [None, b"x" * 200])
def test_a_database_that_is_none_is_refused(tmp_path: Path, workload: str, content: bytes | None) -> None:
    """Missing, or something else."""
    path = tmp_path / "no.mmdb"
    if content is not None:
        path.write_bytes(content)
    assert_refused("set database: must be a file", flow_of, workload, database=str(path))
