"""The events that a trial sends to its observers, in the order in which they happen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamgauge.harness.testbed import TestBed
    from streamgauge.metrics.log.trial_record import TrialRecord
    from streamgauge.metrics.records import Commit
    from streamgauge.trial.conductor import TrialResult


@dataclass(frozen=True)
class EngineStarting:
    """Every second of a start: how long it takes so far, and what the engine works on."""

    elapsed_s: float
    note: str


@dataclass(frozen=True)
class EngineStarted:
    """The engine's query waits for its first event."""


@dataclass(frozen=True)
class PhaseBegan:
    """`warm-up`, `measured`, `tail` or `drain`."""

    phase: str
    at_us: int


@dataclass(frozen=True)
class PhaseExtended:
    """The warm-up or the measured span lasts longer than planned, for the reason that the log names last."""

    phase: str
    by_us: int


@dataclass(frozen=True)
class BatchesCommitted:
    """What the sinks have committed since the last poll."""

    commits: Sequence[Commit]


@dataclass(frozen=True)
class Progress:
    """Every half second: the log so far. `note`: what is waited for, if that is not plain from the phase."""

    record: TrialRecord
    now_us: int
    note: str = ""


@dataclass(frozen=True)
class Emptying:
    """Between two trials: what the one before has left is drained."""


@dataclass(frozen=True)
class VerificationBegan:
    """Nothing more is measured; every answer is compared."""

    record: TrialRecord
    now_us: int


@dataclass(frozen=True)
class Verifying:
    """Every second of a verification: how long it takes so far, and what is done."""

    elapsed_s: float
    note: str


@dataclass(frozen=True)
class VerdictReached:
    """A trial has been judged and written down; its processes still stand."""

    judged: TrialResult
    testbed: TestBed


TrialEvent = (
    EngineStarting | EngineStarted | PhaseBegan | PhaseExtended | BatchesCommitted | Progress | Emptying
    | VerificationBegan | Verifying | VerdictReached
)  # fmt: skip
Observer = Callable[[TrialEvent], object]


def unobserved(_: TrialEvent) -> None:
    """For trials that nobody follows."""
