"""The join's selectivity is that of the parameter, at every rate."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from streamgauge.core.clock import US
from streamgauge.loadgen.fields import Key
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.random import probabilities
from streamgauge.loadgen.rate_profile import Piece, RateProfile
from streamgauge.workloads import registry
from streamgauge.workloads.micro.windowed_join import RESULTS_MAX_PER_S, SHARE
from tests.unit.helpers_requests import checked, refused
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


def test_skewed_users_meet_as_often_as_the_drawn_keys_do() -> None:
    """The greatest rate gives the greatest number of results, which here are counted from the keys themselves."""
    workload = registry.get("windowed_join")
    for skew in ("zipf", "single"):
        values = {"user_distribution": skew, "range": "4s", "slide": "2s", "packs": 50}
        parameters: Any = workload.read(values)
        rate = workload.rate_max(parameters)
        assert rate is not None
        windows = parameters.range / parameters.slide
        results = rate * SHARE * windows * _matches_per_purchase(rate, **values)
        assert results == pytest.approx(RESULTS_MAX_PER_S)
    assert workload.rate_max(workload.read({"user_distribution": "normal"})) is None


def test_one_user_and_one_pack_are_one_key() -> None:
    """Every purchase meets every advertisement of its window; users and packs are two parameters."""
    both = {"user_distribution": "single", "distribution": "single"}
    purchases, ads = job_of("windowed_join", 400.0, **both).streams
    for stream in (purchases, ads):
        batch = Plan((replace(stream, share=1.0),), RateProfile((Piece(0.0, 400.0),)), 0, 1.0, 1, 1).batch(0, 0, 0, 100)
        assert [len(batch[name].unique()) for name in ("user_id", "gem_pack_id")] == [1, 1]
    users_only: Any = job_of("windowed_join", 400.0, user_distribution="single").streams[0].fields[1]
    assert users_only.distribution == "normal"


def test_a_skewed_join_that_gives_too_many_results_is_refused() -> None:
    """With the greatest rate; the commands that try several are refused as well."""
    values = {"workload": "windowed_join", "parameters": {"user_distribution": "single", "distribution": "single"}}
    (problem,) = refused({**values, "load": {"rate": "501"}})
    assert (problem.setting, problem.way_out) == ("load.rate", "--rate 500, or less")
    checked({**values, "load": {"rate": "500"}})
    (problem,) = refused({**values, "command": "sustain"})
    assert problem.rule == "have a selectivity that grows with the rate, and sustain tries several rates"


def test_selectivity_is_constant_within_a_load_shape() -> None:
    """Exact matches of each purchase with all ads of the same steady stretch, by the seconds of its own rate."""
    shape = RateProfile((Piece(0.0, 840.0), Piece(20.0, 280.0), Piece(40.0, 840.0)))
    streams = job_of("windowed_join", 840.0, range="4s", slide="2s", packs=1, selectivity=50.0).streams
    plan = Plan(streams, shape, 0, 60.0, 1, 1)
    met = []
    for second in (0, 20, 40):
        users = []
        for stream in (0, 1):
            slices = (plan.count_before(stream, 0, (second + end) * US) for end in (0, 20))
            users.append(plan.batch(stream, 0, *slices)["user_id"].to_numpy())
        counts = np.bincount(users[1], minlength=users[0].max() + 1)
        met.append(counts[users[0]].mean() * 4 / 20)  # ads of a window, not of the whole stretch
    assert met == pytest.approx([50.0] * 3, rel=0.1)
