"""Bargain Index: worked by hand, against plain Python, by truth and by class, and wherever batches end."""

import itertools
import math
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.clock import US
from streamgauge.dataflow.nodes import Flow
from tests.unit.workloads import helpers_cuts
from tests.unit.workloads.helpers_cuts import BOTH, answered, made, results_in_batches, table, without_truth

Event = tuple[int, int, float | None, int]
"""(stock, 1 for a quote, price, size); the n-th has event time and event id n."""
TRADE, QUOTE = 0, 1


flow_of = partial(helpers_cuts.flow_of, "bargain_index")
TYPES = {"stock": "int32", "quote": "int32", "price": "float64", "size": "int32"}


def answer(flow: Flow, events: list[Event], times: list[int] | None = None) -> list[tuple[int, int, float]]:
    """(event id, stock, index) of each bargain, by event id; `times` in microseconds, if not the event ids."""
    results = answered(flow, {"market": table(events, times, **TYPES)}).to_pylist()
    return [(row["event_id"], row["stock"], row["bargain_index"]) for row in results]


@BOTH
def test_worked_by_hand(variant: Any) -> None:
    """The last two trades count; a stock's own alone; what is malformed neither counts nor gives anything."""
    flow = variant(flow_of(vwap_window=2))
    events: list[Event] = [
        (1, QUOTE, 1.0, 5),  # 0: nothing was traded yet
        (1, TRADE, 10.0, 1),  # 1: average 10
        (2, QUOTE, 1.0, 5),  # 2: another stock, nothing was traded yet
        (1, QUOTE, 9.0, 2),  # 3: exp(1) * 2
        (1, QUOTE, 10.0, 2),  # 4: asks for just the average: no bargain
        (1, TRADE, 12.0, 3),  # 5: (10 + 36) / 4 = 11.5
        (1, QUOTE, 11.5, 1),  # 6: no bargain
        (1, TRADE, 0.0, 9),  # 7: malformed
        (1, TRADE, math.nan, 9),  # 8: malformed
        (1, TRADE, None, 9),  # 9: malformed
        (1, TRADE, 20.0, 0),  # 10: malformed
        (1, QUOTE, 11.0, 4),  # 11: exp(0.5) * 4
        (1, QUOTE, math.inf, 4),  # 12: malformed
        (1, TRADE, 8.0, 1),  # 13: (36 + 8) / 4 = 11, the first trade counts no more
        (1, QUOTE, 10.0, 1),  # 14: exp(1)
    ]
    assert [(number, stock, pytest.approx(index)) for number, stock, index in answer(flow, events)] == [
        (3, 1, math.exp(1) * 2), (11, 1, math.exp(0.5) * 4), (14, 1, math.exp(1)),
    ]  # fmt: skip


@BOTH
def test_an_index_at_the_threshold_is_not_above_it(variant: Any) -> None:
    """Prices so low that the factor is exactly 1: the index is what the quote offers."""
    events: list[Event] = [(1, TRADE, 2e-20, 1), (1, QUOTE, 1e-20, 2), (1, QUOTE, 1e-20, 3)]
    assert answer(variant(flow_of(bargainindex_threshold=2.0)), events) == [(2, 1, 3.0)]


def at(text: str) -> int:
    """A time of UTC as microseconds."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * US


@BOTH
@pytest.mark.parametrize(
    ("period", "before", "after"),
    [
        ("minutely", "2024-03-01 10:00:59", "2024-03-01 10:01:00"),
        ("hourly", "2024-03-01 10:59:59", "2024-03-01 11:00:00"),
        ("daily", "2024-02-29 23:59:59", "2024-03-01 00:00:00"),
        ("weekly", "2024-03-03 23:59:59", "2024-03-04 00:00:00"),  # a Sunday and a Monday
        ("weekly", "1969-12-28 23:59:59", "1969-12-29 00:00:00"),
        ("monthly", "2024-02-29 23:59:59", "2024-03-01 00:00:00"),
    ],
)
def test_an_average_since_the_beginning_of_a_period_by_hand(variant: Any, period: str, before: str, after: str) -> None:
    """All trades of the period count, and none of the one before; a quote sees the last trade's average, of whichever
    period that is.
    """
    events: list[Event] = [
        (1, TRADE, 10.0, 1),
        (1, TRADE, 12.0, 3),  # 1: (10 + 36) / 4 = 11.5
        (1, QUOTE, 11.0, 4),  # 2: exp(0.5) * 4
        (1, QUOTE, 10.5, 1),  # 3: the new period has no trade yet: exp(1)
        (1, TRADE, 20.0, 2),  # 4: of the new period alone: 20
        (2, QUOTE, 1.0, 1),  # 5: another stock
        (1, QUOTE, 19.0, 1),  # 6: exp(1)
        (1, TRADE, 14.0, 1),  # 7: (40 + 14) / 3 = 18
        (1, QUOTE, 17.0, 2),  # 8: exp(1) * 2
    ]
    times = [at(before)] * 3 + [at(after)] * 6
    assert answer(variant(flow_of(vwap_window=1, **{"bi.vwap.period": period})), events, times) == [
        (2, 1, pytest.approx(math.exp(0.5) * 4)), (3, 1, pytest.approx(math.exp(1))),
        (6, 1, pytest.approx(math.exp(1))), (8, 1, pytest.approx(math.exp(1) * 2)),
    ]  # fmt: skip


EVENTS = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.sampled_from([TRADE, QUOTE]),
        st.one_of(st.none(), st.just(math.nan), st.integers(-2, 40).map(lambda n: n / 4)),
        st.integers(0, 4),
    ),
    max_size=40,
)
"""Anything: malformed prices and sizes, quotes before any trade, few bargains."""
BARGAINS = st.lists(
    st.tuples(st.integers(1, 3), st.just(TRADE), st.integers(24, 40).map(float), st.integers(1, 4))
    | st.tuples(st.integers(1, 3), st.just(QUOTE), st.integers(20, 30).map(float), st.integers(1, 4)),
    min_size=5,
    max_size=40,
)
"""Quotes that mostly ask for less than the last trades, and not always for so much less that any trades would do."""


WAYS = pytest.mark.parametrize("parameters", [{"vwap_window": 2}, {"vwap_period": "minutely"}], ids=["last", "period"])


@BOTH
@WAYS
@pytest.mark.parametrize("price", [0.1, 22.1, 1e8 / 3])
def test_a_quote_at_the_price_of_every_trade_is_no_bargain(
    variant: Any, parameters: dict[str, Any], price: float
) -> None:
    """However its average is rounded: 0.1 three times over is more than 0.3 in doubles."""
    trades: list[Event] = [(stock, TRADE, price * stock, size) for size in (3, 7, 11, 1, 1, 1) for stock in (1, 2)]
    events = [each for trade in trades for each in (trade, (trade[0], QUOTE, trade[2], 1000))]
    assert answer(variant(flow_of(**parameters)), events) == []


@BOTH
@WAYS
@pytest.mark.parametrize("large", [1e12, 1e17, 3.4028235e38, 1e308])
def test_a_large_price_spoils_no_other_average(variant: Any, parameters: dict[str, Any], large: float) -> None:
    """Neither of another stock nor of its own once it is out of the window, or the minute is over."""
    events: list[Event] = [
        (1, TRADE, large, 10), (2, TRADE, 20.0, 10), (2, QUOTE, 19.0, 10), (1, TRADE, 20.0, 10),
        (1, TRADE, 20.0, 10), (1, QUOTE, 18.0, 10),
    ]  # fmt: skip
    times = [0, 1, 2, 3, 60 * US, 61 * US]
    if "vwap_window" in parameters:
        times = list(range(6))
    assert answer(variant(flow_of(**parameters)), events, times) == [
        (2, 2, pytest.approx(math.exp(1) * 10, rel=1e-12)), (5, 1, pytest.approx(math.exp(2) * 10, rel=1e-12)),
    ]  # fmt: skip


@BOTH
def test_there_is_no_bargain_while_the_turnover_overflows(variant: Any) -> None:
    """1e308 ten times over is beyond doubles. An average of 1e308 is not, and an index by it is infinite."""
    events: list[Event] = [
        (1, TRADE, 1e308, 10), (1, QUOTE, 1.0, 1), (1, TRADE, 1e308, 1), (1, QUOTE, 1.0, 1),
    ]  # fmt: skip
    assert answer(variant(flow_of(vwap_window=1)), events) == [(3, 1, math.inf)]


CENTS = st.integers(1, 10_000).map(lambda cents: cents / 100)
MARKET = st.tuples(st.integers(1, 3), st.sampled_from([TRADE, QUOTE]), CENTS, st.integers(1, 1000))
ANY = st.floats(0, allow_infinity=False)
STEADY = st.sampled_from([0.1, 22.1, 49.99, 1e7 + 0.1])


def with_prices(prices: st.SearchStrategy[float]) -> st.SearchStrategy[list[Event]]:
    """Ordinary events of a market, in cents, and some with other prices and up to the largest size."""
    other = st.tuples(st.integers(1, 3), st.sampled_from([TRADE, QUOTE]), prices, st.integers(1, 2**31 - 1))
    return st.lists(MARKET | MARKET | other, max_size=40)


def assert_class_is_truth(flow: Flow, events: list[Event], times: list[int] | None = None) -> None:
    """The same bargains, with indexes within what verification allows."""
    by_truth, by_class = (
        {n: index for n, _, index in answer(each, events, times)} for each in (flow, without_truth(flow))
    )
    assert by_class == pytest.approx(by_truth, rel=1e-9, abs=0)


@given(with_prices(ANY | STEADY) | EVENTS | BARGAINS, st.integers(1, 20))
def test_class_and_truth_agree_on_any_market(events: list[Event], window: int) -> None:
    """Prices that are no multiples of a power of two, of any size."""
    assert_class_is_truth(flow_of(vwap_window=window), events)


LARGE = st.sampled_from([1e17, 3.4028235e38, 1e300, 1e308])


@given(
    with_prices(st.floats(0, 1e4) | st.sampled_from([0.1, 22.1, 49.99]) | LARGE),
    st.lists(st.integers(0, 40), min_size=40, max_size=40),
)
def test_class_and_truth_agree_on_any_market_since_the_beginning_of_a_period(
    events: list[Event], pauses: list[int]
) -> None:
    """Of ordinary prices, with large ones among them."""
    times = [second * US for second in itertools.accumulate(pauses[: len(events)])]
    assert_class_is_truth(flow_of(vwap_period="minutely"), events, times)


@given(st.lists(MARKET, max_size=40))
def test_prices_in_cents_against_exact_arithmetic(events: list[Event]) -> None:
    """The definition in fractions: what asks for just the average is no bargain however that is rounded."""
    trades: dict[int, list[tuple[int, int]]] = {}
    expected = []
    for number, (stock, quote, price, size) in enumerate(events):
        assert price is not None
        cents = round(price * 100)
        lately = trades.setdefault(stock, [])
        if quote == TRADE:
            lately.append((cents, size))
        elif lately and Fraction(sum(p * v for p, v in lately[-5:]), sum(v for _, v in lately[-5:])) > cents:
            expected.append(number)
    flow = flow_of(vwap_window=5)
    for each in (flow, without_truth(flow)):
        assert [number for number, *_ in answer(each, events)] == expected


@WAYS
@given(
    events=EVENTS | BARGAINS,
    pauses=st.lists(st.integers(0, 40), min_size=40, max_size=40),
    cuts=st.lists(st.integers(0, 900), max_size=5),
)
def test_the_answer_does_not_depend_on_where_batches_end(
    parameters: dict[str, Any], events: list[Event], pauses: list[int], cuts: list[int]
) -> None:
    """Within a minute, and between two."""
    times = [second * US for second in itertools.accumulate(pauses[: len(events)])]
    results_in_batches(flow_of(**parameters), table(events, **TYPES), times, [cut * US for cut in cuts], 3600 * US)


def test_the_market_has_bargains_and_quotes_that_are_none() -> None:
    """Half of the events are quotes, and about half of those ask for less."""
    flow, inputs = made("bargain_index", 20_000.0, 2.0)
    assert 0.2 < answered(flow, inputs).num_rows / inputs["market"].num_rows < 0.3
