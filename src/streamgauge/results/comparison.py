"""The result of a comparison: of runs or searches, or of two scalability studies."""

from collections.abc import Mapping
from typing import Literal

from streamgauge.core.exit_codes import ExitCode, worst
from streamgauge.results.codes import SCHEMA_VERSION, ResultPart, version_field
from streamgauge.results.verdict import VerdictValue


class ComparedRun(ResultPart):
    """One run, or one search, of a side."""

    run_id: str
    """Name of its folder."""
    folder: str
    """Where the run folder lies."""
    engine: str
    """The engine under test."""
    start_time: str
    """When it began, UTC."""
    verdict: VerdictValue
    """What it found."""
    failed: str = ""
    """Why its figures should not be used; empty if it worked."""


class ComparedSide(ResultPart):
    """One side of a comparison."""

    given: str
    """The side as it was named."""
    runs: tuple[ComparedRun, ...]
    """Its runs."""


class NotTheSame(ResultPart):
    """A setting that differs between the sides, or between runs of one side."""

    setting: str
    """The setting."""
    a: tuple[str, ...]
    """Its values in A."""
    b: tuple[str, ...]
    """Its values in B."""


class Difference(ResultPart):
    """One figure on both sides."""

    name: str
    """Which figure."""
    label: str
    """Its name for people."""
    unit: str
    """Its unit."""
    better: Literal["higher", "lower"]
    """Whether `higher` or `lower` is better."""
    share: bool = True
    """True: the difference is B / A - 1; false: B - A."""
    a: float | None
    """The figure of side A, the mean over its runs; null if unknown."""
    b: float | None
    """The same of side B."""
    a_runs: tuple[float | None, ...] = ()
    """The figure of each run of A."""
    b_runs: tuple[float | None, ...] = ()
    """The figure of each run of B."""
    difference: float | None = None
    """The difference; null if unknown."""
    low: float | None = None
    """Lower end of its interval; null if it is unbounded."""
    high: float | None = None
    """Upper end of its interval; null if it is unbounded."""
    method: Literal["runs", "seconds", "brackets", "counted", "none"] = "none"
    """Where the interval comes from: `runs`, `seconds`, `brackets`, `counted`, or `none` for the `reason`."""
    says: Literal["better", "worse", "no_difference", "unknown"] = "unknown"
    """`better`, `worse`, `no_difference` or `unknown`."""
    reason: str = ""
    """Why it is unknown, or why an end is open."""


GateState = Literal["passed", "failed", "unknown"]
_EXIT_CODES: Mapping[GateState, ExitCode] = {
    "passed": ExitCode.HOLDS,
    "failed": ExitCode.FAILS,
    "unknown": ExitCode.UNDECIDED,
}


class Gate(ResultPart):
    """A rule for B (`--fail-if`). If B's answers are not right, a rule `answers` is added."""

    rule: str
    """The rule as written; `answers` if B's answers are not right."""
    figure: str
    """The figure that it limits."""
    limit: float
    """Its limit."""
    state: GateState
    """`passed`, `failed`, or `unknown` if the interval crosses the limit or is missing."""
    sentence: str
    """Why, in words."""


class Comparison(ResultPart):
    """Two sides compared: the output of `compare --json`."""

    schema_version: int = version_field(SCHEMA_VERSION)
    """Version of this layout."""
    workload: str
    """Workload of A."""
    kind: Literal["run", "search"]
    """`run` or `search`."""
    confidence: float
    """Confidence of the intervals, 0 to 1."""
    a: ComparedSide
    """The first side."""
    b: ComparedSide
    """The second side."""
    not_the_same: tuple[NotTheSame, ...] = ()
    """Settings that differ, with the values of each side."""
    asked_otherwise: tuple[str, ...] = ()
    """Settings that make the sides different questions. Then only the gate on wrong answers is decided."""
    figures: tuple[Difference, ...] = ()
    """Every figure that a side has, in the order of the table."""
    gates: tuple[Gate, ...] = ()
    """Each rule of `--fail-if`, in order."""
    warnings: tuple[str, ...] = ()
    """What a reader of the differences must also know."""

    @property
    def exit_code(self) -> ExitCode:
        """That of its worst gate; `HOLDS` without gates."""
        return worst(_EXIT_CODES[gate.state] for gate in self.gates)


Says = Literal["better", "worse", "no_difference", "unknown"]


class ComparedStudy(ResultPart):
    """One side: a scalability study."""

    folder: str
    """Its folder."""
    engine: str
    """Its engine."""
    start_time: str
    """When it began, UTC."""


class LoadInterval(ResultPart):
    """Where a capacity lies."""

    held: float | None
    """The hardest load that the level sustained; null if it sustained none."""
    failed: float | None
    """The easiest load that was shown to fail; null if none was."""


class CapacityDifference(ResultPart):
    """The capacity of one level on both sides."""

    resources: int
    """The level."""
    a: LoadInterval
    """The capacity of A."""
    b: LoadInterval
    """The capacity of B."""
    low: float | None
    """Least B / A - 1 that both intervals allow; null if it is unbounded."""
    high: float | None
    """Greatest B / A - 1 that both intervals allow; null if it is unbounded."""
    says: Says
    """`better` or `worse` (of B) only if the intervals do not overlap, else `no_difference`; `unknown` if both ends of
    the difference are open."""


class LevelInterval(ResultPart):
    """Where a demand lies: above a level, and at most another one."""

    above: int
    """The greatest level that was shown not to sustain the load; 0 if none was."""
    most: int | None
    """The least level that sustains the load; null if none does."""


class DemandDifference(ResultPart):
    """The demand of one load on both sides."""

    load: float
    """The load."""
    a: LevelInterval
    """The demand of A."""
    b: LevelInterval
    """The demand of B."""
    says: Says
    """As of a capacity; fewer resources are better."""


class ScaleComparison(ResultPart):
    """Two scalability studies compared: the output of `compare --json` for their folders."""

    schema_version: int = version_field(SCHEMA_VERSION)
    """Version of this layout."""
    workload: str
    """Workload of A."""
    kind: Literal["scale"] = "scale"
    """`scale`."""
    metric: str
    """What the capacities are, as in scale.json."""
    resource: str
    """The setting that the levels of resources set."""
    dimension: str
    """The setting that the loads set."""
    load_unit: str
    """Unit of the loads: `events/s`, `s`, or empty for a number."""
    a: ComparedStudy
    """The first side."""
    b: ComparedStudy
    """The second side."""
    not_the_same: tuple[NotTheSame, ...] = ()
    """Settings that differ, with the values of each side."""
    capacities: tuple[CapacityDifference, ...]
    """Each level that both studies have."""
    demands: tuple[DemandDifference, ...]
    """Each load that both studies have."""
    warnings: tuple[str, ...] = ()
    """What a reader of the differences must also know."""
