"""Trials on the known engine, for the self-test: one start, many warm trials, in a folder that is thrown away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamgauge.engines.known.engine import KnownEngine
from streamgauge.errors import DriverError, Interrupted
from streamgauge.events import US, Clock
from streamgauge.experiment import build
from streamgauge.progress import TrialSnapshot
from streamgauge.run.check import check
from streamgauge.run.conduct import Conducted, Conductor, drain_backlog
from streamgauge.run.ready import Ready
from streamgauge.run.rig import Rig
from streamgauge.run.single import create_folder, told_meanwhile
from streamgauge.run.trial import (
    START_LEAD_US,
    Judged,
    Told,
    TrialSettings,
    conclude,
    next_start,
    rig_settings,
    run_trial,
    snapshot,
)
from streamgauge.run.watching import hopeless_reason
from streamgauge.system.children import wait_until
from streamgauge.system.scratch import Scratch

DRAIN_TIMEOUT_S = 30.0
HELD_TIMEOUT_S = 10.0
DISTURBED_MAX = 2
"""How often a trial that other work on this machine made invalid is done again."""


@dataclass(frozen=True)
class View:
    """What hears of a self-test that goes on: lines that stay, and how the trial stands that is running."""

    line: Callable[[str], None] = lambda _: None
    trial: Callable[[TrialSnapshot], None] = lambda _: None


SILENT = View()


class Bench:
    """A started rig with a known engine. `disturbed` counts the trials that had to be done again."""

    def __init__(self, ready: Ready, rig: Rig, engine: KnownEngine, view: View) -> None:
        self.ready, self._rig, self._engine, self._view = ready, rig, engine, view
        self.disturbed = 0

    def facts(self) -> dict[str, Any]:
        return self._engine.facts()

    def trial(self, rate_per_s: float, duration_s: float, may_extend: bool = False) -> Judged:
        """One warm trial, judged; the backlog it leaves is drained."""
        settings = self._settings(rate_per_s, duration_s, may_extend)
        folder = create_folder(self.ready)
        judged = run_trial(self.ready, self._rig, folder, settings, on_progress=self._view.trial)
        _stop_if_interrupted(judged)
        if not drain_backlog(self._rig, judged.done.journal, DRAIN_TIMEOUT_S):
            raise DriverError("what a trial had left could not be drained, so no other trial may follow")
        return judged

    def undisturbed(self, rate_per_s: float, duration_s: float) -> Judged:
        """A trial that may be extended, and is done again where other work on this machine disturbed the driver."""
        for _ in range(DISTURBED_MAX):
            judged = self.trial(rate_per_s, duration_s, may_extend=True)
            if judged.result.verdict.value != "invalid":
                return judged
            self.disturbed += 1
            self._view.line(f"done again: {judged.result.verdict.sentence}")
        return self.trial(rate_per_s, duration_s, may_extend=True)

    def trial_and_what_is_held(self, rate_per_s: float, duration_s: float) -> Judged:
        """One trial that is judged only when the engine has sent what it had held back, after the trial's deadline."""
        settings = self._settings(rate_per_s, duration_s, False)
        rig, ready = self._rig, self.ready
        spans = ready.spans(next_start(rig, ready.reach_us or 0), False, duration_s)
        plan = ready.plan(spans.start_us, rate_per_s, (spans.end_us - spans.start_us) / US)
        conductor = Conductor(
            rig,
            plan,
            spans,
            ready.chunk_for(rate_per_s),
            on_tick=self._show,
            hopeless=lambda done: hopeless_reason(ready, done, rate_per_s, rig.clock.now_us()),
        )
        done = conductor.conduct()

        def let_go() -> bool:
            self._show(done, "waiting for what the engine holds back")
            return not self.facts()["held"]

        if not wait_until(let_go, HELD_TIMEOUT_S, 0.1):
            raise DriverError(f"the engine still held rows back after {HELD_TIMEOUT_S:g} s")
        done.journal.add(rig.tick())
        judged = conclude(ready, rig, create_folder(ready), settings, done, Told(), self._view.trial, None)
        _stop_if_interrupted(judged)
        return judged

    def _show(self, done: Conducted, note: str = "") -> None:
        shown = snapshot(done, self._rig.clock.now_us())
        self._view.trial(replace(shown, note=note or shown.note))

    def _settings(self, rate_per_s: float, duration_s: float, may_extend: bool) -> TrialSettings:
        return TrialSettings(
            rate_per_s=rate_per_s, fresh=False, duration_s=duration_s, may_extend=may_extend, probe_batches=False
        )


@contextmanager
def started(
    workload: str,
    rate_per_s: float,
    options: dict[str, str],
    load: dict[str, Any],
    parameters: dict[str, Any],
    view: View = SILENT,
    tail_us: int | None = None,
) -> Iterator[Bench]:
    """A bench for a workload; `load` are settings of the experiment's load besides the rate.

    `view` hears of its start and its trials. `tail_us`: a tail of another length than the flow's reach asks for.
    """
    with Scratch("selftest") as folder:
        asked = {"chunk": "50ms", "generators": 1, "duration": "10s", **load, "rate": rate_per_s}
        ready = check(
            build({
                "workload": workload, "engine": "known", "parameters": parameters, "options": options,
                "load": asked, "out": folder,
            })
        )  # fmt: skip
        ready = ready if tail_us is None else replace(ready, tail_us=tail_us)
        engine = KnownEngine(ready.sut_cpus)
        with Rig(rig_settings(ready), lambda: engine, Path(folder) / "rig", Clock.fixed_now()) as rig:
            with told_meanwhile(view.trial, "starting the engine known", engine):
                rig.start(ready.plan(next_start(rig) - START_LEAD_US, rate_per_s, 1.0))
            yield Bench(ready, rig, engine, view)


def _stop_if_interrupted(judged: Judged) -> None:
    if judged.result.verdict.value == "interrupted":
        raise Interrupted("the self-test was stopped; it proves nothing")
