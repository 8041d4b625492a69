"""The sentences of searches and of the growth of lag: a template for each code, and what to do next."""

from enum import StrEnum

from streamgauge.core.formatting import format_rate
from streamgauge.results import labels
from streamgauge.results.codes import LagGrowth, NextStep, RateLimit, SearchEnd
from streamgauge.results.search import SearchResult
from streamgauge.results.text.sentences import BUILT_IN, RUN_AGAIN, fill
from streamgauge.results.verdict import Remark

ENDS: dict[StrEnum, str] = {
    SearchEnd.WRONG_ANSWERS: "the answers are wrong at {rate:rate}, although the system keeps up: {faults}",
    SearchEnd.FAILED: "{reason}",
    SearchEnd.INVALID_TWICE: "invalid {twice:?twice }at {rate:rate}: {why:after invalid: }{why:!no reason was given}",
    SearchEnd.DRIVER_FAILED: "the overload trial is invalid: {why:after invalid: }",
    SearchEnd.NOTHING_DRAINED: "the overload trial drained nothing ({why})",
    SearchEnd.NO_RATE_HELD: "not even {rate:rate} {confirmed:?was confirmed}{confirmed:!held}",
    SearchEnd.TRIALS_USED_UP: "all {n} allowed trials are used",
}
"""Why a search ended early; the verdict of one that a person stopped says so itself."""

_EXAMPLES = "look at the examples in {folder}/verification.json"
_QUIET = "close background processes or separate the driver's cores (--isolation pinned)"
_MAY_DECIDE = "longer trials (--duration {longer_s:.0f}s) may decide"
NEXT_STEPS: dict[StrEnum, str] = {
    NextStep.READ_ENGINE_LOG: "read the engine's log in {folder}/engine and remove the cause; then go on: {go_on}",
    NextStep.READ_DRIVER_LOGS:
        "the driver failed, not the engine: {folder}/engine has the generators' and the broker's logs; search again, "
        "or from a low rate (--start-rate)",
    NextStep.START_LOW: "read the engine's log in {folder}/engine; then search from a low rate (--start-rate)",
    NextStep.MEND_AND_SEARCH:
        f"{{advice:before {RUN_AGAIN}}}{{advice:!{_QUIET}}}; then search again (the reason: {{invalid}})",
    NextStep.TRY_LOW_RATE:
        "read in {last} why not even that rate held, then try the job at a low rate: streamgauge run WORKLOAD "
        "--rate 1k",
    NextStep.MORE_TRIALS: "go on with more trials: {go_on} --trials-max {more}",
    NextStep.GO_ON: "to go on: {go_on}",
    NextStep.CORRECT_JOB: f"{_EXAMPLES}, correct the job or a setting, and search again",
    NextStep.REPORT_WRONG: f"{_EXAMPLES}; {BUILT_IN}: report it with that file and experiment.toml",
    NextStep.PROVE_A_RATE: f"no rate was proven: {_MAY_DECIDE}, and a rate to start from (--start-rate) saves trials",
    NextStep.MORE_GENERATORS:
        "the generators are the limit, not the engine: use more of them (--generators) or more cores",
    NextStep.SEPARATE_DRIVER:
        "the upper end is open: give the driver CPUs of its own (--isolation pinned), or more cores",
    NextStep.DECIDE_UPPER_END: f"the upper end is open: {_MAY_DECIDE} it",
    NextStep.CONFIRM: "search again without --quick, which confirms the rate, before you publish it",
    NextStep.DECIDE_AT_90: f"the rate at 90 % is open: {_MAY_DECIDE} it",
    NextStep.MEASURE_LATENCY:
        "measure the latency at the rate that you plan for: streamgauge run WORKLOAD --rate RATE, with the same "
        "options",
}  # fmt: skip
"""What to do after a search."""

_SUT_USED = "SUT CPU {sut:.0f} % of {allowed:.0f} %: "
_OTHERS = "{others:?; background processes used {others:.0f} %}"
_DRIVER_USED = "; driver used {driver:.0f} %{broker:?, broker {broker:.0f} %}"
LIMITS: dict[StrEnum, str] = {
    RateLimit.NOT_SEEN: "not known: the search was stopped before a trial showed it",
    RateLimit.ELSEWHERE:
        f"SUT CPU {{sut:.0f}} % on this machine: not known, because executors run elsewhere{_DRIVER_USED}",
    RateLimit.BACKGROUND_LOAD:
        f"{_SUT_USED}background processes used {{others:.0f}} %, so the limit is not known{{advised:!. Close them and "
        f"search again}}{_DRIVER_USED}",
    RateLimit.ENGINE_CPU: f"{_SUT_USED}the engine is CPU bound{_OTHERS}{_DRIVER_USED}",
    RateLimit.ALLOWANCE: f"{_SUT_USED}the engine has used up what its master allows it{_OTHERS}{_DRIVER_USED}",
    RateLimit.SHARED_CPU:
        f"{_SUT_USED}{{broker:?engine, driver and broker}}{{broker:!engine and driver}} together have used up the CPU"
        f"{_OTHERS}{_DRIVER_USED}",
    RateLimit.NOT_CPU:
        f"{_SUT_USED}not all of the CPU: look at the engine's batches{{single:?; a single busy task uses only one "
        f"core}}{_OTHERS}{_DRIVER_USED}",
}  # fmt: skip
"""What keeps a rate from being higher."""

_GREW = (
    "the lag {records:sign grew|fell} by {records:digits}{half:? ± {half:digits}} records a partition (limit {limit:g})"
)
GROWTHS: dict[StrEnum, str] = {
    LagGrowth.MEASURED: _GREW,
    LagGrowth.UNDECIDED:
        f"{_GREW}: its interval contains the limit, because the lag right after commits scatters by {{scatter:digits}} "
        "records. Use a longer --duration, a lower rate or --criterion slope",
    LagGrowth.SPAN_INCOMPLETE: "its span was not complete",
    LagGrowth.TOO_FEW_COMMITS:
        "each end of its span needs {least} commits, and the span has {n}: use a longer --duration, or --criterion "
        "slope",
    LagGrowth.LAG_UNKNOWN: "the lag is unknown, because the program commits no offsets: use --criterion slope",
}  # fmt: skip
"""By how much the lag grew, or why that is unknown."""


def search_sentence(
    found: SearchResult, ended: Remark | None, *, quick: bool, at_ceiling: bool, narrow_to: float | None
) -> str:
    """The answer of a search. `narrow_to`: the tolerance, if the bracket is as narrow as that."""
    said = ["no rate was found that holds" if found.low is None else f"{format_rate(found.low)} holds"]
    if found.high is not None:
        said.append(f"{format_rate(found.high)} {_NOT_HELD.get(str(found.high_verdict), 'does not')}")
    elif at_ceiling:
        said.append("the generator can offer no more, so the engine may sustain more")
    if found.relative_width is not None and ended is None and narrow_to is None:
        said.append(f"the bracket is {found.relative_width:.0%} wide")
    if found.confirmed and found.low is not None:
        said.append(labels.confirmed(found.trials, found.low, found.at_90_percent))
    elif found.low is not None:
        said.append("not confirmed (quick)" if quick and ended is None else "not confirmed")
    if ended is not None:
        said.append(f"ended early: {fill(ENDS[ended.code], **ended.facts)}")
    elif narrow_to is not None:
        said.append(f"the search ended because the two rates lie within {100 * narrow_to:.3g} %")
    return "; ".join(said)


_NOT_HELD = {
    "undecided": "was undecided, which is not proof that it fails",
    "invalid": "was invalid, because the engine left the driver too little CPU, which is not proof that it fails",
}


def stopped_sentence(found: SearchResult) -> str:
    """The limit of a search that a person stopped."""
    return f"the search was stopped; so far: {found.sentence}" if found.trials else "stopped in its first trial"


def next_step(step: Remark) -> str:
    """What to do after a search, in words."""
    return fill(NEXT_STEPS[step.code], **step.facts)


def limit_sentence(limit: Remark | None) -> str:
    """What keeps a rate from being higher, in words; empty if nothing is known of it."""
    if limit is None:
        return ""
    return f"{_NO_UPPER_END[limit.facts.get('above', '')]}{fill(LIMITS[limit.code], **limit.facts)}"


_NO_UPPER_END = {
    "": "",
    "held": "not found, because every tried rate held: ",
    "invalid": "not found, because the trials at higher rates were invalid: ",
}
"""What is known of the rates above one that held, if none was shown to fail."""


def growth_sentence(growth: Remark) -> str:
    """The growth of the lag in words, or why it is unknown."""
    return fill(GROWTHS[growth.code], **growth.facts)
