"""What is asked in the tests of the checks, and how they see it refused."""

from typing import Any

import pytest

from streamgauge.config import experiment
from streamgauge.core.errors import InputError, Problem
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check as check_experiment

GOOD: dict[str, Any] = {"workload": "windowed_aggregation"}


def checked(values: dict[str, Any], **more: Any) -> ResolvedExperiment:
    """The experiment of values, with every default filled in."""
    return check_experiment(experiment.build(values), **more)


def refused(values: dict[str, Any]) -> tuple[Problem, ...]:
    """The problems with which values are refused."""
    with pytest.raises(InputError) as caught:
        checked(values)
    assert caught.value.exit_code == 2
    return caught.value.problems
