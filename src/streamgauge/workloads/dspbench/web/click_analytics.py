"""Click Analytics (CA): how many clicks a site had, how many of them were somebody's first on a page,
and from which countries and cities they came.

A visitor is who the click says, or its address where it says nobody: null, or an empty name, which would be one big
visitor. A click without a page, or without a visitor, is malformed and counts nowhere. The thesis's code counts firsts
in as many places as the operator has instances, so its totals depend on the parallelism; here there is one total. What
was seen is never forgotten, so the state grows with the pairs of visitor and page, and with nothing else. With a
`window` everything is of one window alone, first visits too.

Source: Bordin 2017, section 3.3.8.
"""

from __future__ import annotations

from pydantic import Field

from streamgauge.dataflow.builder import flow, source, tumble
from streamgauge.loadgen.datasets.access_log import ADDRESSES_MAX
from streamgauge.loadgen.datasets.clicks import PAGES_MAX, Address, Page, Visitor
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.workloads.features import Feature
from streamgauge.workloads.helpers.counts import MEANING, count_by_key
from streamgauge.workloads.helpers.places import count_places
from streamgauge.workloads.registry import File, Job, Parameters, Seconds, Workload, unless

SITE = "'all'"
"""The key of what is counted of all clicks together; each stream that is counted makes it anew rather than carry it."""
VISITOR = "nullif(coalesce(nullif(client, ''), ip), '')"


class ClickAnalytics(Parameters):
    """The clicks, and what bounds the state; the thesis itself has no parameter but how many instances there are."""

    window: Seconds = Field(0.0, ge=0, le=86_400, description=MEANING)
    visitors: int = Field(
        65_536, ge=1, le=ADDRESSES_MAX, description="how many visitors there are, by name and address"
    )
    pages: int = Field(1000, ge=1, le=PAGES_MAX, description="how many pages the site has")
    nameless: float = Field(0.1, ge=0, le=1, description="share of the clicks that do not say whose they are")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the clicks without a page")
    database: File = Field(
        "", description="a file in MaxMind's format that knows where addresses are; none: made places"
    )


def build(parameters: ClickAnalytics, rate_per_s: float) -> Job:
    clicks = StreamSpec(
        "clicks",
        (
            Address("ip", parameters.visitors),
            Page("url", parameters.pages, parameters.malformed),
            Visitor("client", parameters.visitors, parameters.nameless),
        ),
    )
    whole = (
        source("clicks", clicks.schema)
        .select(site=SITE, url="url", client=VISITOR, address="ip", name="parser")
        .where("url <> '' AND client IS NOT NULL", name="well_formed")
    )
    within = parameters.window
    visits = count_by_key(whole, within, keys="site", column="visits", name="visit_stats")
    window = tumble(within) if within else None
    first = whole.distinct(keys=("client", "url"), window=window, name="repeat_visit")
    sites = first.select(site=SITE, name="first_visit")
    uniques = count_by_key(sites, within, keys="site", column="uniques", name="unique_stats")
    places = count_places(whole.select(address="address", name="client"), parameters.database, within)
    malformed = unless(f"url <> '' AND {VISITOR} IS NOT NULL")
    result = flow(visits.sink("visits"), uniques.sink("uniques"), places)
    return Job(result, (clicks,), {"clicks": malformed})


WORKLOAD = Workload(
    name="click_analytics",
    title="click analytics",
    summary="clicks and first visits of a site, and from where they came, as updates",
    source="Bordin 2017, section 3.3.8",
    parameters=ClickAnalytics,
    build=build,
    features=(Feature.COUNTER, Feature.GLOBAL, Feature.LOOKUP, Feature.SINKS),
    features_with={Feature.WINDOW: ("window", "10s")},
    prefix="ca",
)
