"""The join's selectivity is that of the parameter, at every rate."""

from typing import Any

import pytest

from streamgauge.loadgen.fields import Key
from streamgauge.loadgen.random import probabilities
from streamgauge.workloads import registry
from streamgauge.workloads.micro.windowed_join import SHARE
from tests.unit.workloads.helpers_cuts import job_of


def _matches_per_purchase(rate_per_s: float, **values: object) -> float:
    """Expected ads of the same keys in one window, from the streams themselves."""
    workload = registry.get("windowed_join")
    parameters: Any = workload.read(values)
    _, ads = workload.build(parameters, rate_per_s).streams
    meets = 1.0
    for field in ads.fields:
        assert isinstance(field, Key)
        meets *= float((probabilities(field.distribution, field.domain) ** 2).sum())
    return rate_per_s * ads.share * parameters.range * meets


@pytest.mark.parametrize("rate_per_s", [10_000.0, 100_000.0, 1_000_000.0])
@pytest.mark.parametrize(
    "values", [{}, {"selectivity": 0.5}, {"range": "2s", "slide": "1s"}, {"distribution": "uniform"}]
)
def test_selectivity_is_constant_over_rates(rate_per_s: float, values: dict[str, object]) -> None:
    """Keys grow with the rate, so that matches per purchase and window do not [method 2]."""
    selectivity = float(str(values.get("selectivity", 0.05)))
    assert _matches_per_purchase(rate_per_s, **values) == pytest.approx(selectivity, rel=0.1)


def test_both_streams_draw_from_the_same_keys() -> None:
    """Purchases and ads have equal key domains, and half of the rate each."""
    purchases, ads = job_of("windowed_join", 50_000.0).streams
    assert purchases.fields[:2] == ads.fields
    assert (purchases.share, ads.share) == (SHARE, 1 - SHARE)


def test_there_is_always_a_user() -> None:
    """At rates so low that not even one user is needed, there is one."""
    users: Any = job_of("windowed_join", 0.001).streams[0].fields[0]
    assert users.domain == 1
