"""The Yahoo Streaming Benchmark (YSB): the number of ad views per campaign, every ten seconds.

Events are filtered for views, a static table maps ads to campaigns, and views are counted by campaign and window. Ads
without a campaign are not counted. Events without a type or an ad (null) are malformed and not counted. (DSPBench's
version never increments its count.)
"""

from pydantic import Field

from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source, tumble
from streamgauge.dataflow.static_table import Table, table
from streamgauge.loadgen.fields import Key, StreamSpec, with_malformed
from streamgauge.loadgen.fitted import Choice
from streamgauge.workloads.registry import Feature, Job, Parameters, Seconds, Workload, unless

EVENT_TYPES = ("view", "click", "purchase")
AD_TYPES = ("banner", "modal", "sponsored-search", "mail", "mobile")
_ADS = Schema.from_types(ad_id="int", campaign_id="int")
UNKNOWN_ADS = 0.01
"""The share of additional ads in events that belong to no campaign."""


class YahooStreaming(Parameters):
    """The benchmark's parameters."""

    campaigns: int = Field(100, ge=1, le=10_000, description="how many campaigns there are")
    ads: int = Field(10, ge=1, le=100, description="how many ads a campaign has")
    window: Seconds = Field(10.0, gt=0, le=86_400, description="length of a window")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the events without an ad")


def campaign_of(parameters: YahooStreaming) -> Table:
    """The static table of ads: ad n belongs to campaign n modulo the number of campaigns."""
    ads = range(parameters.campaigns * parameters.ads)
    return table("ads", {"ad_id": list(ads), "campaign_id": [ad % parameters.campaigns for ad in ads]}, _ADS)


def build(parameters: YahooStreaming, rate_per_s: float) -> Job:
    ads_of_campaigns = parameters.campaigns * parameters.ads
    ad = Key("ad_id", ads_of_campaigns + max(1, round(ads_of_campaigns * UNKNOWN_ADS)))
    events = StreamSpec(
        "events",
        (
            Key("user_id", 1_000_000),
            Key("page_id", 100_000),
            with_malformed(ad, parameters.malformed, None),
            Choice("ad_type", AD_TYPES),
            Choice("event_type", EVENT_TYPES),
        ),
        key="ad_id",
    )
    views_by_campaign = (
        source("events", events.schema)
        .where("event_type = 'view'", name="filter")
        .select(ad_id="ad_id", name="ad")
        .lookup(campaign_of(parameters), on="ad_id", name="campaign")
        .window(tumble(parameters.window), keys="campaign_id")
        .aggregate(views="count(*)", name="counter")
    )
    malformed = {"events": unless("event_type IS NOT NULL AND ad_id IS NOT NULL")}
    return Job(views_by_campaign.sink("campaigns"), (events,), malformed)


WORKLOAD = Workload(
    name="yahoo_streaming",
    title="Yahoo streaming benchmark",
    summary="how often the ads of each campaign were seen, window by window",
    source="Yahoo 2015; in DSPBench",
    parameters=YahooStreaming,
    build=build,
    features=(Feature.FILTER, Feature.WINDOW, Feature.LOOKUP),
    prefix="ysb",
)
