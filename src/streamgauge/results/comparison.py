"""The result of a comparison."""

from __future__ import annotations

from typing import Literal

from streamgauge.results.base import SCHEMA_VERSION, Answer
from streamgauge.results.verdict import VerdictValue


class ComparedRun(Answer):
    """One run, or one search, of a side; `failed`: why its figures are not those of a job that did its work."""

    run_id: str
    folder: str
    start_time: str
    verdict: VerdictValue
    failed: str = ""


class ComparedSide(Answer):
    """What stands on one side of a comparison; `given` as it was named."""

    given: str
    runs: tuple[ComparedRun, ...]


class NotTheSame(Answer):
    """A setting in which the sides, or the runs of one side, differ: its values there."""

    setting: str
    a: tuple[str, ...]
    b: tuple[str, ...]


class Difference(Answer):
    """One figure on both sides; over several runs, `a` and `b` are means of the runs' own figures.

    `difference`, `low` and `high` are shares, B / A - 1, or B - A where `share` is false. An end that is null has no
    known bound. `method`: where the interval comes from, `none` where there is none, for `reason`.
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


class Gate(Answer):
    """A rule that B must keep (`--fail-if`); `unknown` where the interval crosses the limit, or there is none.

    The rule `answers` comes with every other one where B's answers are not right: `failed`, or `unknown` if not judged.
    """

    rule: str
    figure: str
    limit: float
    state: Literal["passed", "failed", "unknown"]
    sentence: str


class Comparison(Answer):
    """Two sides compared: what `compare --json` prints.

    `asked_otherwise`: the settings by which the sides were not asked the same, by which no gate is decided but that on
    wrong answers; what answers (engine, options, versions) is none of them.
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
