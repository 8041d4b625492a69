"""The checks of the self-test: the fault each plants, and the answer that the instrument must give.

Every check can fail: without `planted`, or with another `true_share`, the engine is not as the check assumes, and the
check must fail.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from streamgauge.config.experiment import build
from streamgauge.core.clock import US
from streamgauge.core.formatting import format_rate
from streamgauge.preflight.generator_ceiling import ceiling_of
from streamgauge.results.codes import Cause, SearchEnd
from streamgauge.results.latency import Latency
from streamgauge.results.verdict import Check, Verdict
from streamgauge.studies.capacity.outcome import wrong_answers
from streamgauge.studies.capacity.search import Settings, TrialCall, TrialOutcome, search
from streamgauge.studies.run.generate_input import generate
from streamgauge.studies.selftest.testbed import ENGINE, SILENT, SyntheticBench, View, start_bench
from streamgauge.system.disk import Scratch
from streamgauge.trial.trial_result import TrialResult

CAPACITY_PER_S = 100_000.0
CAPACITY_ERROR_MAX = 0.02
SEARCH_START_SHARE = 0.9
CAPACITY_MARGIN = 0.03
"""The distance from the capacity at which verdicts are checked, above and below."""
DECIDED_SHARE_MIN = 0.5
ROW_RATE_PER_S = 20_000.0
FAST = "400k"
STALL_S, BESIDE_STALL_S = 2.0, 6.0
"""Beside the stall a consumer reads about every 14 ms, four times as often as a p99 needs."""
STALL_SHARE_MIN = 0.9
"""The least p99 as a share of the stall: one in a hundred events of the span waited for 96 % of it or longer."""
FAULTS: dict[str, str] = {
    "drop": "missing", "double": "duplicate", "alter": "wrong", "late": "late", "invent": "extra",
}  # fmt: skip
"""Planted fault to its name in the verification."""
FAULTY_WORKLOADS: dict[str, tuple[str, dict[str, Any], int]] = {
    "events": ("identity", {}, 997),
    "windows": ("windowed_aggregation", {"range": "1s", "slide": "500ms", "packs": 100}, 97),
}
"""Kind of results to a workload that gives them, its parameters, and the interval of the planted faults in rows."""
DEGRADATION, DEGRADATION_S, DEGRADATION_BATCH = 0.06, 12.0, "1s"
"""A batch of a second gets longer by 0.7 s in that time. That is far more than background load adds, and the batch
still ends before the next one is due."""
CLOCK_SKEW_US = -US
OVERLOAD_FACTOR = 5.0
OVERLOAD_S = 0.5 / OVERLOAD_FACTOR

BATCHES: dict[str, dict[str, str]] = {
    "continuous": {"batch": "0s"},
    "windows": {"batch": "400ms"},
    "jitter": {"batch": "200ms", "jitter": "0.2"},
}
"""How the consumer reads. The last one's batches vary as much as those of a real engine."""

Rows = Literal["events", "windows"]
Mode = Literal["continuous", "windows", "jitter"]


@dataclass(frozen=True)
class Sizes:
    """`trials`: (seconds of the measured span, number of trials on each side of the capacity) by mode."""

    trials: Mapping[Mode, tuple[float, int]]
    search_windows: bool = True
    row_s: float = 3.0
    warmup_s: float = 1.0


FULL = Sizes({"continuous": (5.0, 3), "windows": (9.0, 2), "jitter": (5.0, 2)})
QUICK = Sizes({"continuous": (2.0, 2), "windows": (9.0, 1), "jitter": (5.0, 1)}, search_windows=False, row_s=1.5)


@dataclass(frozen=True)
class CheckResult:
    """The result of a check: its value and its limit, also as a sentence. `item` is the letter of the check."""

    title: str
    ok: bool
    value: float | None
    limit: float | None
    sentence: str
    item: str = ""
    seconds: float = 0.0


def capacity(mode: Mode, sizes: Sizes, true_share: float = 1.0, view: View = SILENT) -> Iterator[CheckResult]:
    """a: the capacity is found (if the sizes ask for a search), and verdicts close to it are right. One warm engine.

    `true_share`: the consumer's capacity, as a share of the stated one.
    """
    seconds, repeats = sizes.trials[mode]
    options = {"capacity": f"{CAPACITY_PER_S * true_share:.0f}", **BATCHES[mode]}
    windows = ("windowed_aggregation", {"range": "2s", "slide": "1s", "packs": 100})
    workload, parameters = windows if mode == "windows" else ("filter", {})
    with start_bench(workload, CAPACITY_PER_S, options, {"warmup": sizes.warmup_s}, parameters, view) as bench:
        bench.trial(CAPACITY_PER_S / 2, 1.0)  # the first trial on a new engine is slower, and is not counted
        if mode == "continuous" or sizes.search_windows:
            yield _search_capacity(mode, bench, seconds, view)
        yield _verdicts(mode, bench, seconds, repeats, view)


def _search_capacity(mode: Mode, bench: SyntheticBench, seconds: float, view: View) -> CheckResult:
    settings = Settings(
        ceiling_per_s=4 * CAPACITY_PER_S, tolerance=CAPACITY_ERROR_MAX, quick=True,
        start_per_s=SEARCH_START_SHARE * CAPACITY_PER_S,
    )  # fmt: skip
    result = search(_trial_on(bench, seconds, view), settings)
    refused, undecided = (result.high, None) if result.high_verdict == "not_sustained" else (None, result.high)
    return judge_capacity(mode, result.low, refused, len(result.trials), bench.disturbed, undecided)


def _trial_on(bench: SyntheticBench, seconds: float, view: View) -> TrialCall:
    """The trials of a search on a bench; `seconds` is their length."""

    def trial(rate_per_s: float, purpose: str, fresh: bool) -> TrialOutcome:
        result = bench.undisturbed(rate_per_s, seconds).result
        value, why = result.verdict.value, result.verdict.sentence
        view.line(f"{purpose} {format_rate(rate_per_s)}: {value}")
        return TrialOutcome(rate_per_s, value, why=why, purpose=purpose, wrong_answers=wrong_answers(result))

    return trial


def judge_capacity(
    mode: Mode,
    low: float | None,
    refused: float | None,
    trials: int,
    disturbed: int = 0,
    undecided: float | None = None,
) -> CheckResult:
    """a, from the bracket: `low` is the rate that a search would publish, and `refused` the upper end that failed.

    Rates in events per second; None if there was no such upper end. With jitter an upper end near the limit may stay
    undecided, because short trials cannot tell 1.4 % of growth from 1 %.
    """
    error = None if low is None else low / CAPACITY_PER_S - 1
    bounded = refused is not None or (mode == "jitter" and undecided is not None)
    ok = error is not None and bounded and abs(error) <= CAPACITY_ERROR_MAX
    held = "no rate was found that holds" if low is None else f"{low:.0f}/s holds ({error:+.1%})"
    broke = "no rate above it failed" if refused is None else f"{refused:.0f}/s does not"
    broke += f" ({undecided:.0f}/s stayed undecided)" if undecided is not None else ""
    sentence = (
        f"capacity {CAPACITY_PER_S:.0f}/s: {held}, {broke}; {trials} trials, {disturbed} repeated; "
        f"an error of at most {CAPACITY_ERROR_MAX:.0%} is allowed"
    )
    return CheckResult(f"the capacity of a consumer is found ({mode})", ok, error, CAPACITY_ERROR_MAX, sentence)


def _verdicts(mode: Mode, bench: SyntheticBench, seconds: float, repeats: int, view: View) -> CheckResult:
    verdicts: dict[float, list[str]] = {-CAPACITY_MARGIN: [], CAPACITY_MARGIN: []}
    for margin in [-CAPACITY_MARGIN, CAPACITY_MARGIN] * repeats:
        verdicts[margin].append(bench.undisturbed(CAPACITY_PER_S * (1 + margin), seconds).result.verdict.value)
        view.line(f"{margin:+.0%} {format_rate(CAPACITY_PER_S * (1 + margin))}: {verdicts[margin][-1]}")
    return judge_verdicts(mode, verdicts[-CAPACITY_MARGIN], verdicts[CAPACITY_MARGIN])


def judge_verdicts(mode: Mode, below: Sequence[str], above: Sequence[str]) -> CheckResult:
    """a, from the verdicts below and above the capacity: none may be wrong, and most must be decided."""
    trials = len(below) + len(above)
    wrong = sum(one == "not_sustained" for one in below) + sum(one == "sustained" for one in above)
    right_below, right_above = below.count("sustained"), above.count("not_sustained")
    open_ones = trials - wrong - right_below - right_above
    enough = min(right_below / len(below), right_above / len(above)) >= DECIDED_SHARE_MIN
    sentence = (
        f"{wrong} of {trials} verdicts were wrong ({wrong / trials:.0%}) and {open_ones} open: "
        f"{CAPACITY_MARGIN:.0%} below, {right_below} of {len(below)} sustained; "
        f"{CAPACITY_MARGIN:.0%} above, {right_above} of {len(above)} not sustained"
    )
    return CheckResult(
        f"verdicts {CAPACITY_MARGIN:.0%} from it are right ({mode})",
        wrong == 0 and enough,
        wrong / trials,
        0.0,
        sentence,
    )


def stall(sizes: Sizes, planted: bool = True, view: View = SILENT) -> CheckResult:
    """b: a stall of 2 s in the measured span shows in event-time latency, and not in latency from the delivery.

    Chunks are short and the span beside the stall is long, so that there are enough reads for a p99.
    """
    options = {"capacity": FAST} | ({"stall": f"{STALL_S}s@{sizes.warmup_s + 1.0}s"} if planted else {})
    load = {"warmup": sizes.warmup_s, "chunk": "10ms"}
    with start_bench("identity", ROW_RATE_PER_S, options, load, {}, view) as bench:
        latency = bench.trial(ROW_RATE_PER_S, STALL_S + BESIDE_STALL_S).result.latency
    assert latency.event_time_us is not None and latency.processing_time_us is not None  # noqa: PT018
    return judge_stall(latency.event_time_us, latency.processing_time_us)


def judge_stall(event: Latency, naive: Latency) -> CheckResult:
    """b, from both latencies: p99 and maximum of `event` show the stall, and those of `naive` do not."""
    shows = (event.p99 or 0.0) >= STALL_SHARE_MIN * STALL_S * US and (event.max or 0.0) >= 0.95 * STALL_S * US
    hidden = naive.p99 is not None and naive.p99 <= STALL_S / 4 * US and (naive.max or 0.0) <= STALL_S / 2 * US
    sentence = (
        f"a stall of {STALL_S:g} s: event time p99 {_seconds(event.p99)}, max {_seconds(event.max)}; "
        f"counted from the delivery p99 {_seconds(naive.p99)}, max {_seconds(naive.max)}; "
        f"the results came in {event.effective_count} reads"
    )
    return CheckResult(
        "a stall shows in event-time latency, and not in latency counted from the delivery",
        shows and hidden,
        None if event.p99 is None else event.p99 / US,
        STALL_SHARE_MIN * STALL_S,
        sentence,
    )


def _seconds(us: float | None) -> str:
    return "not given (too few results)" if us is None else f"{us / US:.2f} s"


def degradation(sizes: Sizes, planted: bool = True, view: View = SILENT) -> CheckResult:
    """b: batches take longer and longer, but still end within their interval. There is no backlog, but results are
    later and later.
    """
    options = {"capacity": FAST, "batch": DEGRADATION_BATCH} | ({"slowing": f"{DEGRADATION}"} if planted else {})
    with start_bench("filter", ROW_RATE_PER_S, options, {"warmup": sizes.warmup_s}, {}, view) as bench:
        return judge_degradation(bench.trial(ROW_RATE_PER_S, DEGRADATION_S).result.verdict)


def judge_degradation(verdict: Verdict) -> CheckResult:
    """b, from the verdict on that trial: a check of the results failed, and the check of the backlog did not."""
    # Background load makes the verdict invalid, but the checks are still valid.
    failed = [name for name in ("output_trend", "latency_trend") if _check(verdict.checks, name).state == "failed"]
    level = _check(verdict.checks, "backlog_trend").state != "failed"
    decided = " by ".join([verdict.value, *([", ".join(failed)] if failed else [])])
    sentence = (
        f"results later by {DEGRADATION:.0%} of the time: {decided}; the backlog {'did not grow' if level else 'grew'}"
    )
    return CheckResult(
        "an engine that gets slower is detected before a backlog forms",
        verdict.value in ("not_sustained", "invalid") and bool(failed) and level,
        _check(verdict.checks, "latency_trend").value,
        DEGRADATION,
        sentence,
    )


def fault(kind: str, sizes: Sizes, planted: bool = True, of: Rows = "events", view: View = SILENT) -> CheckResult:
    """c: one kind of fault, in every 997th event or every 97th window, is counted exactly, and no other is counted."""
    workload, parameters, every = FAULTY_WORKLOADS[of]
    options = {"capacity": FAST, "fault": kind if planted else "none", "fault_every": str(every)}
    with start_bench(workload, ROW_RATE_PER_S, options, {"warmup": sizes.warmup_s}, parameters, view) as bench:
        judged = bench.trial_with_held_back_rows(ROW_RATE_PER_S, sizes.row_s)
        return _judge_fault(kind, of, judged, bench.engine.facts()["planted_us"])


def search_with_wrong_answers(sizes: Sizes, planted: bool = True, view: View = SILENT) -> CheckResult:
    """c: a system that loses one result in a thousand at any rate has no sustained rate, and the search says why."""
    every, start = 1000, ROW_RATE_PER_S
    options = {"capacity": FAST, "fault": "drop" if planted else "none", "fault_every": str(every)}
    with start_bench("identity", start, options, {"warmup": sizes.warmup_s}, {}, view) as bench:
        settings = Settings(ceiling_per_s=start, start_per_s=start, quick=True)
        result = search(_trial_on(bench, sizes.row_s, view), settings)
    return CheckResult(
        "a search ends where answers are wrong",
        result.ended_by == SearchEnd.WRONG_ANSWERS and result.low is None,
        result.low,
        None,
        f"one result in {every} lost: {result.sentence}; {len(result.trials)} trials",
    )


def _judge_fault(kind: str, of: Rows, judged: TrialResult, planted_us: Sequence[int]) -> CheckResult:
    # Missing rows of the tail do not count, but extra and duplicate rows of the tail do.
    everywhere, due_us = kind in ("double", "invent"), judged.record.spans.measured_to_us
    number = sum(everywhere or time_us < due_us for time_us in planted_us)
    verification = judged.result.verification
    assert verification is not None
    other_faults = {name: count for name, count in verification.faults.items() if count}
    counted = other_faults.pop(FAULTS[kind], 0)
    sentence = f"{number} {of} planted ({kind}), {counted} found as {FAULTS[kind]}, others: {other_faults or 'none'}"
    ok = number > 0 and counted == number and not other_faults and judged.record.drained
    return CheckResult(f"every one of the {of} is found: {kind}", ok, float(counted), float(number), sentence)


def generator(sizes: Sizes, planted: bool = True, view: View = SILENT) -> CheckResult:
    """d: the plan has many times the generator's ceiling, for as many events as it makes in half a second."""
    parameters, load = {"above": 99}, {"warmup": 0, "chunk": "10ms"}
    with start_bench("filter", ROW_RATE_PER_S, {"capacity": "1G"}, load, parameters, view) as bench:
        ceiling = ceiling_of(bench.resolved, ROW_RATE_PER_S)
    rate = OVERLOAD_FACTOR * ceiling if planted else ROW_RATE_PER_S
    with start_bench("filter", ROW_RATE_PER_S, {"capacity": "1G"}, load, parameters, view, tail_us=0) as bench:
        return judge_generator(bench.trial(rate, OVERLOAD_S).result.verdict, rate, ceiling)


def judge_generator(verdict: Verdict, rate_per_s: float, ceiling_per_s: float) -> CheckResult:
    """d, from the verdict on a trial of that rate: it is invalid, because the plan was not kept."""
    driver = _check(verdict.checks, "driver")
    # Events of a whole second are missing, or on a fast machine only late.
    ok = verdict.value == "invalid" and driver.code in (Cause.PLAN_NOT_KEPT, Cause.SCHEDULE_DELAY)
    sentence = f"planned {format_rate(rate_per_s)} with a ceiling of {format_rate(ceiling_per_s)}: {verdict.value}, "
    title = "a generator that cannot keep the plan makes the trial invalid"
    return CheckResult(title, ok, driver.value, driver.limit, sentence + driver.sentence)


def clock(sizes: Sizes, planted: bool = True, view: View = SILENT) -> CheckResult:
    """e: a recorder whose clock is behind, so that right results have negative latencies."""
    load, skew_us = {"warmup": sizes.warmup_s}, CLOCK_SKEW_US if planted else 0
    with start_bench("identity", ROW_RATE_PER_S, {"capacity": FAST}, load, {}, view, recorder_skew_us=skew_us) as bench:
        judged = bench.trial(ROW_RATE_PER_S, sizes.row_s)
    assert judged.verified is not None
    verdict, negatives = judged.result.verdict, judged.verified.negatives
    code = _check(verdict.checks, "driver").code
    ok = verdict.value == "invalid" and negatives > 0 and code == Cause.NEGATIVE_LATENCY
    decided = ", ".join(verdict.decided_by)
    sentence = f"the recorder's clock moved by -1 s: {negatives} negative latencies, {verdict.value} by {decided}"
    return CheckResult("a wrong clock makes the trial invalid", ok, float(negatives), 0.0, sentence)


def seed(sizes: Sizes, planted: bool = True) -> CheckResult:
    """f: the input of one seed twice, and of another seed."""
    first, again, different = (_input_digest(number) for number in (7, 7 if planted else 8, 9))
    same, differs = first == again, first != different
    sentence = (
        f"the same seed gave {'the same' if same else 'other'} bytes ({first[:12]}), "
        f"another seed {'others' if differs else 'the same'}"
    )
    return CheckResult(
        "the same seed gives the same input, byte for byte", same and differs, float(same), 1.0, sentence
    )


def _input_digest(number: int) -> str:
    """A digest of the Parquet files of one second of input."""
    load = {
        "rate": ROW_RATE_PER_S, "duration": "1s", "warmup": 0, "generators": 2, "seed": number,
        "start": "2026-01-01T00:00:00+00:00",
    }  # fmt: skip
    with Scratch("selftest") as folder:
        generate(build({"command": "generate", "workload": "identity", "engine": ENGINE, "load": load}), Path(folder))
        files = sorted(Path(folder).rglob("*.parquet"))
        return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _check(checks: Sequence[Check], name: str) -> Check:
    return next(check for check in checks if check.name == name)
