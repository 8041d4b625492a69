"""The result of a comparison."""

from __future__ import annotations

from typing import Literal

from streamgauge.results.result_part import SCHEMA_VERSION, ResultPart
from streamgauge.results.verdict import VerdictValue


class ComparedRun(ResultPart):
    """One run, or one search, of a side; `failed`: why its figures are not those of a working job."""

    run_id: str
    folder: str
    start_time: str
    verdict: VerdictValue
    failed: str = ""


class ComparedSide(ResultPart):
    """One side of a comparison; `given` is the user's argument."""

    given: str
    runs: tuple[ComparedRun, ...]


class NotTheSame(ResultPart):
    """A setting that differs between the sides, or between runs of one side, with its values."""

    setting: str
    a: tuple[str, ...]
    b: tuple[str, ...]


class Difference(ResultPart):
    """One figure on both sides; over several runs, `a` and `b` are means of the runs' figures.

    `difference`, `low` and `high` are shares, B / A - 1, or B - A if `share` is false. A null end is unbounded.
    `method` is the source of the interval, or `none` for the `reason`.
    """

    name: str
    label: str
    unit: str
    better: Literal["higher", "lower"]
    share: bool = True
    a: float | None
    b: float | None
    a_runs: tuple[float | None, ...] = ()
    b_runs: tuple[float | None, ...] = ()
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    method: Literal["runs", "seconds", "brackets", "counted", "none"] = "none"
    says: Literal["better", "worse", "no_difference", "unknown"] = "unknown"
    reason: str = ""


class Gate(ResultPart):
    """A rule for B (`--fail-if`); `unknown` if the interval crosses the limit or is missing.

    If B's answers are not right, a rule `answers` is added: `failed`, or `unknown` if they were not judged.
    """

    rule: str
    figure: str
    limit: float
    state: Literal["passed", "failed", "unknown"]
    sentence: str


class Comparison(ResultPart):
    """Two sides compared: the output of `compare --json`.

    `asked_otherwise`: settings that make the sides different questions, so that only the gate on wrong answers is
    decided. Engine, options and versions are not among them.
    """

    schema_version: int = SCHEMA_VERSION
    workload: str
    kind: Literal["run", "search"]
    confidence: float
    a: ComparedSide
    b: ComparedSide
    not_the_same: tuple[NotTheSame, ...] = ()
    asked_otherwise: tuple[str, ...] = ()
    figures: tuple[Difference, ...] = ()
    gates: tuple[Gate, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no gate failed and none is unknown."""
        return all(gate.state == "passed" for gate in self.gates)

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)
