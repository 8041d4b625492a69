"""Engines that keep up for ever, in batches that resemble their neighbours: how often they are condemned all the same.

    python -m tests.statistics.helpers_stable_engines [TRIALS]     the published error rates, in about three minutes

Batches go back to back, or at an interval where they are shorter. Each takes a fixed time, a share of the event time
that waited for it (the *load*), and noise; so a long batch is followed by one nearly as long, and the backlog at
deliveries is a series whose neighbours correlate by about the load. Below a load of 1 it never grows for good: every
such trial that fails, or ends early, is an error.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from streamgauge.config.limits import BATCHES_MIN, EXTENSION_SHARE, EXTENSION_SHARE_MAX
from streamgauge.stats import bootstrap
from streamgauge.verdict.evidence import INTERIM_ANALYSES, Evidence, Samples, Work
from streamgauge.verdict.verdict import CHECKS, cannot_recover
from tests.helpers_quick_draws import replicates
from tests.unit.verdict.helpers_evidence import evidence

SPANS_S, WARMUP_S, BOUND_S, SLIDE_S = (30.0, 60.0, 120.0), 12.0, 30.0, 4.0
TRENDS = ("backlog_trend", "output_trend")


@dataclass(frozen=True)
class Engine:
    """`load`: seconds of work for a second of events; `cost_s`: of each batch besides; `noise`: standard deviation of
    the logarithm of a batch's length, which resembles that of the batch before by `noise_alike`. Batches begin at least
    `interval_s` apart. Each takes `close_s` more for every window that ends in it; a window ends `phase_s` before each
    multiple of the slide. All work grows by `growth` a second, of what it is when the span begins.
    """

    load: float
    cost_s: float
    noise: float
    noise_alike: float = 0.0
    interval_s: float = 0.0
    close_s: float = 0.0
    phase_s: float = 0.0
    growth: float = 0.0

    def batches(self, whole_s: float, random: np.random.Generator) -> NDArray[np.float64]:
        """(begun, event time that waited, length), seconds (n, 3), from a backlog as it is on average."""
        begun_s, waited_s, off, found = 0.0, max(self.cost_s / (1 - self.load), self.interval_s), 0.0, []
        while begun_s < whole_s:
            off = self.noise_alike * off + np.sqrt(1 - self.noise_alike**2) * random.normal(0, self.noise)
            until_s = begun_s + self.phase_s
            closing = until_s // SLIDE_S - (until_s - waited_s) // SLIDE_S
            work_s = self.cost_s + self.load * waited_s + self.close_s * closing
            work_s *= 1 + self.growth * (begun_s - WARMUP_S)
            found.append((begun_s, waited_s, work_s * np.exp(off - self.noise**2 / 2)))
            waited_s = max(found[-1][2], self.interval_s)
            begun_s += waited_s
        return np.array(found)


STABLE = {
    "0.5": Engine(0.5, 0.5, 0.2),
    "0.8": Engine(0.8, 0.3, 0.15),
    "0.9": Engine(0.9, 0.1, 0.2),
    "0.95": Engine(0.95, 0.05, 0.15),
    "0.9, and noise of 0.5": Engine(0.9, 0.1, 0.2, 0.5),
    "0.8, every 1.4 s": Engine(0.8, 0.1, 0.15, interval_s=1.4),
    "0.9, every 1.4 s": Engine(0.9, 0.1, 0.2, interval_s=1.4),
}
"""By the correlation of neighbouring batches. Those of the last two take 87 and 97 % of their interval."""
_IN_WINDOWS = Engine(0.4, 0.1, 0.12, interval_s=1.4, close_s=2.0)
WINDOWED = {
    "80 %": replace(_IN_WINDOWS, load=0.3),
    "90 %": _IN_WINDOWS,
    "101 %": replace(_IN_WINDOWS, close_s=2.44),
    "103 %": replace(_IN_WINDOWS, close_s=2.52),
    "60 %, and 1.2 % more each second": replace(_IN_WINDOWS, load=0.3, cost_s=0.0, close_s=1.2, growth=0.012),
}
"""By the share of the time that batches need, with windows every 4 s. The last three fall behind: two from the start
and for ever, one after 56 s."""


def fails(engine: Engine, random: np.random.Generator, asked_s: float) -> bool:
    """Whether a trend fails at any of the three looks; extended wherever one is undecided."""
    return outcome(engine.batches(WARMUP_S + (INTERIM_ANALYSES + 1) * asked_s, random), asked_s) == "failed"


def outcome(
    batches: NDArray[np.float64], asked_s: float, slide_s: float = 0.0, spare_time: bool = True, phase_s: float = 0.0
) -> str:
    """What the trends say of a trial, extended wherever one is undecided: ok, failed or undecided.

    `spare_time`: whether the time that batches leave over counts. `phase_s`: of the ends of windows.
    """
    span_s = asked_s
    for _ in range(INTERIM_ANALYSES):
        seen = _seen(batches, span_s, slide_s, phase_s)
        if not spare_time:
            seen = replace(seen, work=())
        states = [spec.check(seen).state for spec in CHECKS if spec.name in (*TRENDS, "evidence")]
        if "failed" in states or "undecided" not in states:
            return "failed" if "failed" in states else "ok"
        shorter = seen.batches * (1 + EXTENSION_SHARE * asked_s / span_s) >= BATCHES_MIN
        span_s += asked_s * (EXTENSION_SHARE if shorter else EXTENSION_SHARE_MAX)
    return "undecided"


def windowed(name: str, trials: int, spare_time: bool = True) -> dict[str, float]:
    """The shares of outcomes of trials of 30 s, of an engine with windows that end at a random phase of the span."""
    whole_s = WARMUP_S + (INTERIM_ANALYSES + 1) * 30.0
    found = []
    for seed in range(trials):
        random = np.random.default_rng(seed)
        phase_s = random.uniform(0, SLIDE_S)
        batches = replace(WINDOWED[name], phase_s=phase_s).batches(whole_s, random)
        found.append(outcome(batches, 30.0, SLIDE_S, spare_time, phase_s))
    return {state: found.count(state) / trials for state in ("ok", "failed", "undecided")}


def _seen(batches: NDArray[np.float64], span_s: float, slide_s: float, phase_s: float) -> Evidence:
    begun_s, waited_s, length_s = (batches[:, i] for i in range(3))
    until_s = WARMUP_S + span_s
    read = (begun_s >= WARMUP_S) & (begun_s < until_s)
    done = (begun_s + length_s >= WARMUP_S) & (begun_s + length_s < until_s)
    at_reads = Samples(begun_s[read], waited_s[read])
    until = begun_s + phase_s
    closed = until // slide_s - (until - waited_s) // slide_s if slide_s else np.zeros(begun_s.size)
    at_commits = Samples((begun_s + length_s)[done], length_s[done])
    return evidence(
        backlog=at_reads,
        output_lag=at_reads,
        output_lag_at_commits=at_commits,
        work=(Work(length_s[done], waited_s[done], closed[done], slide_s),),
        batches=int(done.sum()),
    )


def ends_early(engine: Engine, random: np.random.Generator, span_s: float) -> bool:
    """Whether a trial is given up as hopeless; asked at each delivery."""
    batches = engine.batches(WARMUP_S + span_s, random)
    inside = batches[batches[:, 0] >= WARMUP_S]
    for n in range(1, len(inside) + 1):
        seen = Samples(inside[:n, 0], inside[:n, 1])
        if cannot_recover(seen, BOUND_S, WARMUP_S + span_s - inside[n - 1, 0]) is not None:
            return True
    return False


def share(erring: Callable[[Engine, np.random.Generator, float], bool], name: str, span_s: float, trials: int) -> float:
    """Of so many trials, each with a seed of its own."""
    return sum(erring(STABLE[name], np.random.default_rng(seed), span_s) for seed in range(trials)) / trials


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    bootstrap._replicates = replicates  # the same intervals as the library's, drawn together
    for name in STABLE:
        for span_s in SPANS_S:
            failed, ended = (share(erring, name, span_s, trials) for erring in (fails, ends_early))
            print(f"correlation {name}, {span_s:g} s: {failed:.1%} failed, {ended:.1%} ended early", flush=True)
    for name in WINDOWED:
        for spare_time in (False, True):
            shares = ", ".join(f"{share:.1%} {state}" for state, share in windowed(name, trials, spare_time).items())
            print(f"batches need {name}, {'with' if spare_time else 'without'} spare time: {shares}", flush=True)


if __name__ == "__main__":
    main()
