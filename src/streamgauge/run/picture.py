"""The flow of a result, as the picture in its report needs it."""

from __future__ import annotations

from typing import Any

from streamgauge.errors import InputError
from streamgauge.experiment import build
from streamgauge.flow.picture import describe
from streamgauge.result import Result
from streamgauge.run.own_job import get
from streamgauge.run.replayed import with_data


def flow_of(result: Result) -> list[dict[str, Any]] | None:
    """The nodes of the workload's flow; None where the workload is not there any more."""
    try:
        experiment = build(result.experiment)
        workload, values = with_data(get(experiment.workload), experiment.parameters)
        return describe(workload.build(workload.read(values), experiment.load.rate)[0])
    except InputError:
        return None
