"""Click Analytics (CA): the number of clicks and of first visits on a site, and their countries and cities.

The visitor is the client named by the click, or its address if the client is null or empty. (All nameless clicks would
otherwise be one visitor.) A click without a page or a visitor is malformed and counts nowhere. The thesis's code counts
first visits in each instance of the operator, so its totals depend on the parallelism. Here there is one total. Visits
are never forgotten, so the state grows with the pairs of visitor and page. With a `window`, everything is per window,
including first visits.

Source: Bordin 2017, section 3.3.8.
"""

from pydantic import Field

from streamgauge.dataflow.builder import flow, source, tumble
from streamgauge.loadgen.datasets.web import ADDRESSES_MAX, PAGES_MAX, Address, Page, Visitor
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.workloads.helpers.places import count_places
from streamgauge.workloads.registry import (
    COUNTED_WITHIN,
    Feature,
    File,
    Job,
    Parameters,
    Seconds,
    Workload,
    count_by_key,
    unless,
)

SITE = "'all'"
"""The key of counts over all clicks. Each counted stream adds it, so that no stream carries it."""
VISITOR = "nullif(coalesce(nullif(client, ''), ip), '')"


class ClickAnalytics(Parameters):
    """Parameters of the clicks and the bound of the state. The thesis has only numbers of instances."""

    window: Seconds = Field(0.0, ge=0, le=86_400, description=COUNTED_WITHIN)
    visitors: int = Field(65_536, ge=1, le=ADDRESSES_MAX, description="number of visitors, by name and address")
    pages: int = Field(1000, ge=1, le=PAGES_MAX, description="number of pages of the site")
    nameless: float = Field(0.1, ge=0, le=1, description="share of the clicks without a client")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the clicks without a page")
    database: File = Field("", description="a MaxMind database of the places of addresses; empty: generated places")


def build(parameters: ClickAnalytics, rate_per_s: float) -> Job:
    clicks = StreamSpec(
        "clicks",
        (
            Address("ip", parameters.visitors),
            Page("url", parameters.pages, parameters.malformed),
            Visitor("client", parameters.visitors, parameters.nameless),
        ),
        key="client",
    )
    whole = (
        source("clicks", clicks.schema)
        .select(site=SITE, url="url", client=VISITOR, address="ip", name="parser")
        .where("url <> '' AND client IS NOT NULL", name="well_formed")
    )
    within = parameters.window
    visits = count_by_key(whole, within, keys="site", column="visits", name="visit_stats")
    first_visits = whole.distinct(
        keys=("client", "url"), window=tumble(within) if within else None, name="repeat_visit"
    ).select(site=SITE, name="first_visit")
    uniques = count_by_key(first_visits, within, keys="site", column="uniques", name="unique_stats")
    places = count_places(whole.select(address="address", name="client"), parameters.database, within)
    malformed = {"clicks": unless(f"url <> '' AND {VISITOR} IS NOT NULL")}
    return Job(flow(visits.sink("visits"), uniques.sink("uniques"), places), (clicks,), malformed)


WORKLOAD = Workload(
    name="click_analytics",
    title="click analytics",
    summary="clicks and first visits of a site, and their countries and cities, as updates",
    source="Bordin 2017, section 3.3.8",
    parameters=ClickAnalytics,
    build=build,
    features=(Feature.COUNTER, Feature.GLOBAL, Feature.LOOKUP, Feature.SINKS),
    features_with={Feature.WINDOW: ("window", "10s")},
    prefix="ca",
)
