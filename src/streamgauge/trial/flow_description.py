"""Describes the flow of a result for its report."""

from __future__ import annotations

from typing import Any

from streamgauge.config.options_and_settings import build
from streamgauge.core.errors import InputError
from streamgauge.dataflow.describe import describe
from streamgauge.results.run import Result
from streamgauge.user_workloads.data_files import with_user_data
from streamgauge.user_workloads.lookup import get


def flow_of_experiment(result: Result) -> list[dict[str, Any]] | None:
    """The nodes of the workload's flow; None if the workload no longer exists."""
    try:
        experiment = build(result.experiment)
        workload, values = with_user_data(get(experiment.workload), experiment.parameters)
        return describe(workload.build(workload.read(values), experiment.load.rate)[0])
    except InputError:
        return None
