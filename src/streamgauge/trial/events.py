"""The events that a trial sends to its observers, in chronological order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamgauge.harness.testbed import TestBed
    from streamgauge.metrics.trial_record import TrialRecord
    from streamgauge.trial.trial_result import TrialResult


@dataclass(frozen=True)
class EngineStarting:
    """Every second of a start: the elapsed time and the engine's stage."""

    elapsed_s: float
    note: str


@dataclass(frozen=True)
class PhaseBegan:
    """`warm-up`, `measured`, `tail` or `drain`, once the policy has decided that the phase before is over."""

    phase: str


@dataclass(frozen=True)
class Progress:
    """Every half second: the log so far. `note`: what the trial waits for, if the phase does not show it."""

    record: TrialRecord
    now_us: int
    note: str = ""


@dataclass(frozen=True)
class Draining:
    """Between two trials: the backlog of the first is drained."""


@dataclass(frozen=True)
class Verifying:
    """Every second of a verification: the elapsed time and the stage."""

    elapsed_s: float
    note: str


@dataclass(frozen=True)
class VerdictReached:
    """A trial has its verdict and is written; its processes still run."""

    trial: TrialResult
    testbed: TestBed


TrialEvent = EngineStarting | PhaseBegan | Progress | Draining | Verifying | VerdictReached
Observer = Callable[[TrialEvent], object]


def unobserved(_: TrialEvent) -> None:
    """Ignores all events."""


def to_each(*observers: Observer) -> Observer:
    """An observer that passes every event on to all of these."""

    def observe(event: TrialEvent) -> None:
        for observer in observers:
            observer(event)

    return observe
