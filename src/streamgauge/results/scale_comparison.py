"""The result of comparing two scalability studies."""

from __future__ import annotations

from typing import Literal

from streamgauge.results.comparison import NotTheSame
from streamgauge.results.result_part import SCHEMA_VERSION, ResultPart

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

    schema_version: int = SCHEMA_VERSION
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

    def to_json(self) -> str:
        return self.model_dump_json(indent=2)
