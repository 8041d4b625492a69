"""Study folders and searches made by rule, for the tests of searches and of their results."""

from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import Experiment, build
from streamgauge.core.clock import US
from streamgauge.preflight.settings_checks import check
from streamgauge.results.verdict import Check, Verdict, VerdictValue
from streamgauge.studies.capacity.search import TrialOutcome
from streamgauge.studies.capacity.sustain import Sustain, record, recorded

HELD_PER_S, FAILED_PER_S = 100_000.0, 105_000.0


def remember(study: RunFolder, number: int, rate_per_s: float, verdict: VerdictValue) -> None:
    """A trial that the search of `study` has made: its folder, and its line of the memo."""
    trial = study.trial(number, datetime.now(UTC))
    criterion = Check(name=f"of {rate_per_s:g}", value=0, limit=0, unit="", ok=True, state="ok", sentence="")
    judged = Verdict(value=verdict, checks=(criterion,), sentence="")
    trial.write_result(trial.read_result().model_copy(update={"verdict": judged}))
    # Another working folder than the one of the search: only the number of the trial can be relied on.
    outcome = TrialOutcome(rate_per_s, verdict, rate_per_s, folder=f"elsewhere/{study.name}/trials/{number:02d}")
    record(study, [*recorded(study), outcome])


def requested(**values: Any) -> Experiment:
    """A request for a search of `filter`, unless `values` name another workload."""
    return build({"workload": "filter", "command": "sustain", **values})


def worker(
    study: RunFolder,
    ceiling_per_s: float = 1e6,
    engine: str = "known",
    outcomes: Sequence[TrialOutcome] = (),
    **values: Any,
) -> Sustain:
    """A search that starts nothing."""
    view = SimpleNamespace(trial_progress=lambda snapshot: None)
    return Sustain(check(requested(engine=engine, **values)), study, view, ceiling_per_s, outcomes=outcomes)


def conductor_at(seconds: float, run: Any = lambda *_: 1 / 0) -> Any:
    """A conductor of a test bed whose clock has gone on for so long."""
    clock = SimpleNamespace(now_us=lambda: round(seconds * US))
    return SimpleNamespace(
        testbed=SimpleNamespace(clock=clock), resolved=SimpleNamespace(interval_s=0.0, unseen_s=0.0), run=run
    )
