"""What a comparison says in words."""

from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.core.engine_reports import Guarantee
from streamgauge.diff.compare import Counts
from streamgauge.results.latency import Latencies, Latency
from streamgauge.results.run import Verification
from streamgauge.verification.sink_comparison import VerificationResult, allowed_by, outcome


def sink(p50_us: float, windows_closed: int | None, window_gap_us: int | None) -> Any:
    latencies = SimpleNamespace(
        latencies=Latencies(event_time_us=Latency(mean=p50_us, p50=p50_us)),
        windows_closed=windows_closed, window_gap_us=window_gap_us,
    )  # fmt: skip
    return SimpleNamespace(latencies=latencies)


@pytest.mark.parametrize("order", [1, -1])
def test_several_sinks_are_judged_by_the_worst(order: int) -> None:
    """The slowest, the one with the fewest windows, and the one whose windows end furthest apart, in any order."""
    slow, fast, rows = sink(3e6, 9, 4_000_000), sink(1e6, 5, 1_000_000), sink(2e3, None, None)
    sinks: Any = (rows, slow, fast)
    found = VerificationResult(Verification(judged=True, independent=True, reference=""), sinks[::order])
    assert found.slowest is slow
    assert (found.windows_closed, found.window_gap_us) == (5, 4_000_000)
    none = VerificationResult(found.verification, (rows,))
    assert (none.windows_closed, none.window_gap_us) == (None, 0)


def test_nothing_due_is_not_called_matched() -> None:
    """A trial that ended early may owe nothing: then there is nothing to compare."""
    assert (
        outcome(Counts(), complete=False)
        == "no results were due of what was committed, so there was nothing to compare"
    )
    nothing = "no matches were due of warm-up and span, so there was nothing to compare"
    assert outcome(Counts(), complete=True, noun="matches") == nothing
    message = "3 windows expected of warm-up and span, all matched"
    assert outcome(Counts(expected=3, matched=3), complete=True, noun="windows") == message
    columns = {"price": 1, "handled": 2, "n": 1, "m": 1}
    wrong = outcome(Counts(expected=3, matched=1, wrong=2, wrong_columns=columns), complete=True)
    assert wrong.endswith("2 wrong; differing: handled in 2 rows, price in 1 rows, n in 1 rows, and 1 columns more")
    assert outcome(Counts(extra=2), complete=True) == "0 results expected of warm-up and span, 0 matched, 2 extra"


@pytest.mark.parametrize(("conflicting", "allowed"), [(0, {"duplicate": 3}), (1, {"duplicate": 2}), (3, {})])
def test_only_duplicates_with_the_right_value_are_allowed(conflicting: int, allowed: dict[str, int]) -> None:
    """A job that delivers at least once may repeat a result, and not send another value for it."""
    counts = Counts(expected=9, matched=9, duplicate=3, conflicting=conflicting)
    assert allowed_by(Guarantee("at_least_once"), counts) == allowed
    of_engine = Guarantee("at_least_once", only_after_restart=True)
    assert [allowed_by(of_engine, counts, restarted) for restarted in (False, True)] == [{}, allowed]
