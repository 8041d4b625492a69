"""What follows from an experiment that can be started: its spans, plan, chunks, and what its queue holds."""

from typing import Any

import pyarrow as pa
import pytest

from streamgauge.core.clock import US
from streamgauge.loadgen.plan import Plan
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.transports.memory.queue import FlightQueue
from streamgauge.transports.spi import OutletConfig, Overflow
from tests.unit.helpers_requests import GOOD, checked

pytestmark = pytest.mark.usefixtures("quiet")

REAL_TIME: dict[str, Any] = {"workload": "identity", "engine": "spark-rtm", "transport": "kafka"}


def test_spans_follow_from_the_request() -> None:
    """A fresh engine warms up 45 s at least, a warm one a quarter of the events; the tail is the flow's reach."""
    resolved = checked(GOOD)
    fresh, warm = resolved.spans(0, True, 60.0), resolved.spans(0, False, 60.0)
    assert (fresh.measured_from_us, warm.measured_from_us) == (45 * US, 22.4 * US)
    assert fresh.end_us - fresh.measured_to_us == 9 * US
    assert resolved.spans(0, True, 300.0).measured_from_us == pytest.approx(121.6 * US)
    assert checked(GOOD | {"load": {"warmup": "3s"}}).spans(0, True, 60.0).measured_from_us == 3 * US


@pytest.mark.parametrize(
    ("options", "fresh_s"), [({}, 75.0), ({"trigger": "5 seconds"}, 45.0), ({"trigger": "5 minutes"}, 45.0)]
)
def test_a_warm_up_has_once_what_is_done_now_and_then(options: dict[str, str], fresh_s: float) -> None:
    """Real-time mode keeps how far it is once a minute, for the first time slowly; a warm engine has done so."""
    resolved = checked(REAL_TIME | {"options": options})
    assert resolved.warmup_s(True, 30.0) == fresh_s
    assert resolved.warmup_s(False, 30.0) < fresh_s


@pytest.mark.parametrize("duration_s", [30.0, 100.0, 600.0])
def test_a_warm_up_has_a_quarter_of_the_events(duration_s: float) -> None:
    """[K], fresh engine or not; a rising rate makes fewer events, so such a warm-up is longer."""
    resolved = checked(GOOD | {"load": {"rate": "1k", "duration": f"{duration_s}s"}})
    for fresh in (False, True):
        spans = resolved.spans(0, fresh, duration_s)
        plan = resolved.trial_plan(spans, 1000.0, fresh)
        before = plan.planned_events(0, spans.measured_from_us)
        assert before >= 0.2499 * plan.planned_events(0, spans.measured_to_us)


@pytest.mark.parametrize(("window", "warm_s", "fresh_s"), [("8s", 12.4, 45.0), ("60s", 64.0, 96.0)])
def test_a_warm_up_lasts_until_windows_have_filled_once(window: str, warm_s: float, fresh_s: float) -> None:
    """At the whole rate: an engine with half of its state is faster than it will be."""
    resolved = checked(GOOD | {"parameters": {"range": window, "slide": "4s"}})
    assert resolved.warmup_s(False, 30.0) == pytest.approx(warm_s)
    assert resolved.warmup_s(True, 30.0) == pytest.approx(fresh_s)


def test_a_profile_begins_where_the_warm_up_ends() -> None:
    """Until then the first rate holds; a fresh engine's warm-up rises towards it in its first four fifths, another's in
    its first 4 s.
    """
    values = {
        "workload": "identity",
        "load": {"rate": "1k", "duration": "20s", "warmup": "10s", "profile": "step:3k@5s"},
    }
    resolved = checked(GOOD | values)
    seconds = (0, 7, 8, 14, 16, 29)
    for fresh, expected in (
        (False, [175, 1000, 1000, 1000, 3000, 3000]),
        (True, [137.5, 662.5, 1000, 1000, 3000, 3000]),
    ):
        plan = resolved.trial_plan(resolved.spans(0, fresh, 20.0), 1000.0, fresh)
        per_s = [plan.planned_events(second * US, (second + 1) * US) for second in seconds]
        assert per_s == pytest.approx(expected, abs=1)


def test_chunks_are_short_where_the_rate_is_low() -> None:
    """50 ms at high rates, and where batches are a second apart or more; 10 ms at low ones, else as requested."""
    for workload, options, low in (
        ("identity", {}, 10_000), ("windowed_aggregation", {}, 50_000),
        ("windowed_aggregation", {"trigger": "999 milliseconds"}, 10_000),
        ("identity", {"trigger": "1 second"}, 50_000),
    ):  # fmt: skip
        resolved = checked({"workload": workload, "options": options})
        assert (resolved.chunk_for(1e6), resolved.chunk_for(1e5)) == (50_000, low), (workload, options)
    real_time = checked(REAL_TIME)
    assert (real_time.chunk_for(2e5), real_time.chunk_for(1e5)) == (10_000, 2_000)
    assert real_time.transport_options == {"encoding": "compact", "linger": "0ms"}
    planned = checked(GOOD | {"load": {"chunk": "25ms"}})
    assert (planned.chunk_for(1e6), planned.chunk_for(1e5)) == (25_000, 25_000)


OF_SIZES: list[Any] = [
    {"workload": "identity"},
    {"workload": "identity", "parameters": {"payload_bytes": "100"}},
    pytest.param({"workload": "filter"}, marks=pytest.mark.long),
    pytest.param({"workload": "count"}, marks=pytest.mark.long),
    pytest.param({"workload": "windowed_aggregation"}, marks=pytest.mark.long),
    {"workload": "windowed_join", "parameters": {"payload_bytes": "50"}},
    {"workload": "spike_detection"},
]


@pytest.mark.parametrize("values", OF_SIZES, ids=str)
def test_memory_cuts_the_bound_to_what_the_queue_holds(values: dict[str, Any]) -> None:
    """The bound is in seconds of the rate; a memory holds what the bound says, and hardly more."""
    resolved = checked(values | {"load": {"memory": "16MiB", "generators": 1, "rate": "1k"}})
    assert resolved.bound_s(1000.0) == (30.0, False)
    seconds, cut = resolved.bound_s(1e6)
    assert cut
    assert held_s(resolved, 1e6) == pytest.approx(1.01 * seconds, rel=0.005)


def held_s(resolved: ResolvedExperiment, rate_per_s: float) -> float:
    """Seconds of a rate that a queue without a reader holds, in chunks of a millisecond."""
    plan, chunk_us, full_us = resolved.plan(0, rate_per_s, 30.0), 1000, 30 * US
    queue = FlightQueue(OutletConfig(dict.fromkeys(resolved.columns), full_us, resolved.bytes_max, lambda: 0))
    try:
        for from_us in range(0, full_us, chunk_us):
            queue.offer(from_us, from_us + chunk_us, made(resolved, plan, from_us, from_us + chunk_us), 0)
    except Overflow:
        return from_us / US
    raise AssertionError("the queue was never full")


def made(resolved: ResolvedExperiment, plan: Plan, from_us: int, to_us: int) -> dict[str, pa.RecordBatch]:
    """What a generator makes of that time."""
    events = [(plan.count_before(i, 0, from_us), plan.count_before(i, 0, to_us)) for i in range(len(plan.streams))]
    return {
        stream.name: plan.batch(i, 0, *events[i], resolved.generated_columns[stream.name])
        for i, stream in enumerate(plan.streams)
    }
