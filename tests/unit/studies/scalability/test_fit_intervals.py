"""Intervals of fitted laws: as wide as the textbook's where that has one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streamgauge.studies.scalability.scaling_laws import Bracket, ScalingLaw, fit_line


def test_residuals_are_enlarged_for_the_parameters_that_the_fit_spent() -> None:
    """Of four capacities a line leaves two degrees of freedom: the residuals alone would give 0.7 of the error."""
    levels, capacities = np.array([1.0, 2.0, 3.0, 4.0]), np.array([11e4, 19e4, 31e4, 39e4])
    found = fit_line([Bracket(n, one, one) for n, one in zip(levels, capacities, strict=True)])
    assert isinstance(found, ScalingLaw)
    slope, intercept = np.polyfit(levels, capacities, 1)
    squares = float(np.sum((capacities - intercept - slope * levels) ** 2))
    error = math.sqrt(squares / 2 / float(np.sum((levels - levels.mean()) ** 2)))
    assert found._replicates[:, 1].std() == pytest.approx(error, rel=0.1)
