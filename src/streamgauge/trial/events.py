"""The events that a trial sends to its observers, in chronological order, and those that observe results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamgauge.artifacts.run_folder import RunFolder, StudyResult

if TYPE_CHECKING:
    from streamgauge.harness.start_processes import TestBed
    from streamgauge.metrics.trial_record import TrialRecord
    from streamgauge.trial.trial_result import TrialResult


@dataclass(frozen=True)
class StepProgress:
    """Every second of a `start` or a `verification`: the elapsed time and the current stage."""

    phase: str
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
class VerdictReached:
    """A trial has its verdict and is written; its processes still run."""

    trial: TrialResult
    testbed: TestBed


TrialEvent = StepProgress | PhaseBegan | Progress | Draining | VerdictReached
Observer = Callable[[TrialEvent], object]


def to_each(*observers: Observer) -> Observer:
    """An observer that passes every event on to all of these."""

    def observe(event: TrialEvent) -> None:
        for observer in observers:
            observer(event)

    return observe


FlowNodes = Sequence[Mapping[str, Any]]
"""A flow in the form of `dataflow.describe.describe`."""
OnResult = Callable[[RunFolder, FlowNodes], object]
"""Called with each run folder after its result was written, and with its flow."""
OnStudy = Callable[[StudyResult], object]
"""Called with a study's findings so far, after they were written to its folder."""


def ignore(*_: object) -> None:
    """The observer that does nothing."""
