"""`generate`: the planned input as Parquet, so that anyone can check an answer with a tool of their own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from streamgauge.events import US
from streamgauge.experiment import Experiment
from streamgauge.load.export import write_input
from streamgauge.run.check import check, start_us


def generate(experiment: Experiment, out: Path) -> dict[str, Any]:
    """Write DIR/<stream>/part-<partition>.parquet.

    Without `start`: exactly the duration asked for, from now's whole second on. With `start`, the start_time of a run:
    that run's whole input, so warm-up with its rising rate, measured span and tail; where the run was extended, ask for
    a longer duration.
    """
    ready = check(experiment)
    given = start_us(experiment)
    begin = given if given is not None else int(time.time()) * US
    spans = ready.spans(begin, True, experiment.load.duration)
    end = spans.end_us if given is not None else begin + round(experiment.load.duration * US)
    plan = ready.trial_plan(spans, experiment.load.rate, fresh=given is not None)
    events = write_input(plan, out, begin, end)
    return {"out": str(out), "start_us": begin, "end_us": end, "events": events}
