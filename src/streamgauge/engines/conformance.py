"""What an engine states for the conformance suite, in a `TestConf` beside its plugin.

A gap is a case that the engine refuses before a start. The suite fails if it refuses any other case, and as soon as it
no longer refuses a gap.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

GapKind = Literal["notimpl", "notyet", "never"]


@dataclass(frozen=True)
class Gap:
    """A known gap.

    `kind`: `notimpl` if the system could and its plugin does not, `notyet` if the system itself cannot yet, `never` if
    it is not made for it.
    """

    kind: GapKind
    reason: str


def gaps(kind: GapKind, reason: str, *cases: str) -> dict[str, Gap]:
    """Cases with one reason."""
    return dict.fromkeys(cases, Gap(kind, reason))


EVERY_CASE = "every case"
"""In place of a case's name in `TestConf.gaps`: the engine runs no flow of ours."""


@dataclass(frozen=True)
class TestConf:
    """How the suite tests an engine. The defaults are those of an engine without gaps.

    - `transports`: every case runs over the first, and one over the others too; empty for the engine's first.
    - `options`, `generators`: of every trial.
    - `parallelisms`: those with which windows run, if the engine can be started on a requested number of cores.
    - `gaps`: by the name of a case in `streamgauge.conformance.cases`, or `EVERY_CASE`.
    - `restart`: why it does not go on where it was after it was killed and started again; with delivery at least once,
      why its windows do not.
    - `counts_late_rows`: its windows read several partitions of a broker, and it counts the rows that come late.
    - `lowered`: gives the node kinds that its lowering takes, which must be those of `Capabilities.nodes`; or kinds of
      `Capabilities.unsupported_reasons`. None: only trials show what it takes.
    """

    __test__: ClassVar[bool] = False

    transports: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    generators: int = 2
    parallelisms: tuple[int, ...] = (1, 4)
    gaps: Mapping[str, Gap] = field(default_factory=dict)
    restart: Gap | None = None
    counts_late_rows: bool = False
    lowered: Callable[[], Iterable[type]] | None = None

    def gap(self, case: str) -> Gap | None:
        """The gap of a case; None if the engine must run it."""
        return self.gaps.get(case) or self.gaps.get(EVERY_CASE)
