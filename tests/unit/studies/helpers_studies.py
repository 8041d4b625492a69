"""Study folders made by rule, for the tests of searches that go on and of what their results say."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.results.verdict import Check, Verdict, VerdictValue
from streamgauge.studies.capacity.command import MEMO
from streamgauge.studies.capacity.search import TrialOutcome

HELD_PER_S, FAILED_PER_S = 100_000.0, 105_000.0


def remember(study: RunFolder, number: int, rate_per_s: float, verdict: VerdictValue) -> None:
    """A trial that the search of `study` has made: its folder, and its line of the memo."""
    trial = study.trial(number, datetime.now(UTC))
    check = Check(name=f"of {rate_per_s:g}", value=0, limit=0, unit="", ok=True, state="ok", sentence="")
    kept = trial.read_result().model_copy(update={"verdict": Verdict(value=verdict, checks=(check,), sentence="")})
    trial.write_result(kept)
    # Another working folder than the one of the search: only the number of the trial can be relied on.
    outcome = TrialOutcome(rate_per_s, verdict, rate_per_s, folder=f"elsewhere/{study.name}/trials/{number:02d}")
    with (study.path / MEMO).open("a") as memo:
        memo.write(json.dumps(asdict(outcome)) + "\n")
