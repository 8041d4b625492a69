"""Windowed join: purchases with the advertisements for the same pack shown to the same user in the same window.

Selectivity is the expected number of advertisements that match one purchase in one window. With a fixed key domain it
would grow with the rate, and a search would change the workload. So the number of users grows with the rate, also
within a load shape.

Skewed users (`user_distribution`) are as many, and meet more often. With one user, or Zipf's, selectivity grows with
the rate whatever their number is, and the number of results with its square.

Source: Karimov et al. 2018, section IV; experiment 4 joins on a single key.
"""

import math

import numpy as np
from pydantic import Field

from streamgauge.dataflow.builder import source
from streamgauge.loadgen.fields import Key, KeyByRate
from streamgauge.loadgen.random import TABLE_DOMAIN_MAX, Distribution, probabilities
from streamgauge.workloads.micro.purchases import Packs, Windowed, ads, purchases
from streamgauge.workloads.registry import RATE_PER_S, Feature, Job, Workload

SHARE = 0.5
GROWING: tuple[Distribution, ...] = ("zipf", "single")
"""Distributions of users whose selectivity no number of users holds. They have the users of `RATE_PER_S`."""
RESULTS_MAX_PER_S = 1e6
"""Most results per second of a join whose results grow with the square of the rate. Chosen: the recorder takes several
times as many, and the oracle has to make each one again."""


class Parameters(Windowed, Packs):
    """Window and keys; the selectivity determines the number of users."""

    selectivity: float = Field(
        0.05, gt=0, le=1000, description="advertisements that one purchase meets in one window, if users are uniform"
    )
    user_distribution: Distribution = Field(
        "uniform",
        description="distribution of users: uniform, normal, zipf, single",
    )


def users_for(parameters: Parameters, rate_per_s: float) -> int:
    """The number of users for the selectivity s: ads per window * P(same pack) / s."""
    rate_per_s = RATE_PER_S if parameters.user_distribution in GROWING else rate_per_s
    ads_per_window = rate_per_s * (1 - SHARE) * parameters.range
    most = 2**31 - 1 if parameters.user_distribution == "uniform" else TABLE_DOMAIN_MAX
    return int(np.clip(round(ads_per_window * _same_pack(parameters) / parameters.selectivity), 1, most))


def rate_max(parameters: Parameters) -> float | None:
    """The rate at which growing results reach `RESULTS_MAX_PER_S`; None if they are in proportion to the rate."""
    if parameters.user_distribution not in GROWING:
        return None
    users = users_for(parameters, RATE_PER_S)
    same_user = float(np.square(probabilities(parameters.user_distribution, users)).sum())
    windows = parameters.range / parameters.slide  # each purchase lies in so many
    pairs = SHARE * (1 - SHARE) * parameters.range * windows * _same_pack(parameters) * same_user
    return math.sqrt(RESULTS_MAX_PER_S / pairs)


def _same_pack(parameters: Parameters) -> float:
    """The probability that a purchase and an advertisement are of the same pack."""
    return float(np.square(probabilities(parameters.distribution, parameters.packs)).sum())


def build(parameters: Parameters, rate_per_s: float) -> Job:
    users, skew = users_for(parameters, rate_per_s), parameters.user_distribution
    user = KeyByRate("user_id", users, rate_per_s=rate_per_s) if skew == "uniform" else Key("user_id", users, skew)
    bought, shown = purchases(parameters, user, SHARE, user.name), ads(parameters, user, 1 - SHARE, user.name)
    left, right = source("purchases", bought.schema), source("ads", shown.schema)
    if parameters.payload_bytes:  # carried to the engine, no part of the result
        left = left.select(user_id="user_id", gem_pack_id="gem_pack_id", price="price")
    joined = left.join(right, window=parameters.window(), on=("user_id", "gem_pack_id"))
    return Job(joined.sink("matches"), (bought, shown))


WORKLOAD = Workload(
    name="windowed_join",
    title="windowed join",
    summary="purchases with the advertisements of the same user and pack in the same window",
    source="Karimov et al. 2018, section IV",
    parameters=Parameters,
    build=build,
    rate_max=rate_max,
    features=(Feature.WINDOW, Feature.TWO_STREAMS),
)
