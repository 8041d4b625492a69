"""Every case of the suite on every engine, before a start: let through, or a known gap, refused with a reason."""

from __future__ import annotations

import pytest

from streamgauge.core.errors import InputError, Problem, attempt
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.registry import entry
from streamgauge.engines.spi import StartRequest
from streamgauge.preflight import validate
from tests.engine_conformance.helpers_cases import CASES, ENGINES, GAPS, RESTART_GAPS, every_pair

pytestmark = pytest.mark.usefixtures("example")
KINDS = ("notimpl", "notyet", "never")


def problems(engine: str, flow: Flow, parallelism: int | None = None) -> list[Problem]:
    """What the check before a run says of a flow, over the engine's first transport with its defaults."""
    capabilities = entry(engine).capabilities
    flow = validate._engine_flow(flow, capabilities) or flow
    transport = capabilities.transports[0]
    request = StartRequest(flow, {}, None, "common", transport=transport, parallelism=parallelism)
    found = list(validate._capability_problems(flow, capabilities))
    attempt(lambda: entry(engine).check(request), found)
    return found


@pytest.mark.parametrize(("engine", "case"), list(every_pair()))
def test_a_flow_is_let_through(engine: str, case: str) -> None:
    """A gap is an xfail, which fails when the engine lets the flow through."""
    assert problems(engine, CASES[case].flow) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_every_gap_is_refused_with_a_reason_and_a_way_out(engine: str) -> None:
    """Nothing is refused by a crash at the start."""
    for case in (case for cases in GAPS[engine].values() for case in cases):
        found = problems(engine, CASES[case].flow)
        assert found, case
        assert all(one.rule and one.way_out for one in found), case


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("parallelism", [1, 4])
def test_a_parallelism_is_taken_where_the_engine_says_so(engine: str, parallelism: int) -> None:
    """By any engine, for a flow of one operator."""
    if entry(engine).capabilities.sets_parallelism:
        found = problems(engine, CASES["source"].flow, parallelism)
        assert [problem for problem in found if problem.setting == "parallelism"] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_an_unknown_option_is_refused(engine: str) -> None:
    """By its name."""
    with pytest.raises(InputError, match="no_such_option"):
        entry(engine).check(StartRequest(None, {"no_such_option": "1"}, None, "common"))


def test_gaps_are_of_known_kinds_and_cases() -> None:
    """Each engine has its table, and no case stands in two kinds."""
    assert set(GAPS) == set(ENGINES)
    assert set(RESTART_GAPS) <= set(ENGINES)
    assert set(RESTART_GAPS.values()) <= set(KINDS)
    for engine, kinds in GAPS.items():
        cases = [case for each in kinds.values() for case in each]
        assert set(kinds) <= set(KINDS), engine
        assert set(cases) <= set(CASES), engine
        assert len(cases) == len(set(cases)), engine


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "spark"])
def test_rows_come_late_only_where_an_engine_counts_them(engine: str) -> None:
    """Partitions of a broker may lag. `spark` counts what comes behind its watermark (`test_nodes.py`); the others read
    up to a common event time, or one partition, or have no windows that could close.
    """
    capabilities = entry(engine).capabilities
    if "kafka" in capabilities.transports and "WindowAggregate" in capabilities.nodes:
        request = StartRequest(CASES["source"].flow, {}, None, "common", transport="kafka", partitions=4)
        with pytest.raises(InputError, match="partitions: must be 1"):
            entry(engine).check(request)
