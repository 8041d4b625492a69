"""Windowed join: purchases with the advertisements for the same pack shown to the same user in the same window.

Selectivity is the expected number of advertisements that match one purchase in one window. With a fixed key domain it
would grow with the rate, and a search would change the workload. So the number of users grows with the rate.

Source: Karimov et al. 2018, section IV.
"""

import numpy as np
from pydantic import Field

from streamgauge.dataflow.builder import source
from streamgauge.loadgen.random import probabilities
from streamgauge.workloads.micro.purchases import Packs, Windowed, ads, purchases
from streamgauge.workloads.registry import Feature, Job, Workload

SHARE = 0.5


class Parameters(Windowed, Packs):
    """Window and keys; the selectivity determines the number of users."""

    selectivity: float = Field(0.05, gt=0, le=1000, description="advertisements that one purchase meets in one window")


def users_for(parameters: Parameters, rate_per_s: float) -> int:
    """The number of users for the selectivity s: ads per window * P(same pack) / s."""
    same_pack = float(np.square(probabilities(parameters.distribution, parameters.packs)).sum())
    ads_per_window = rate_per_s * (1 - SHARE) * parameters.range
    return int(np.clip(round(ads_per_window * same_pack / parameters.selectivity), 1, 2**31 - 1))


def build(parameters: Parameters, rate_per_s: float) -> Job:
    users = users_for(parameters, rate_per_s)
    bought = purchases(parameters, users, SHARE, "user_id")
    shown = ads(parameters, users, 1 - SHARE, "user_id")
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
    features=(Feature.WINDOW, Feature.TWO_STREAMS),
)
