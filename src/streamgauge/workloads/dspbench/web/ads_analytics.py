"""Ads Analytics (AA, added in DSPBench): click-through rates of the ads beside search queries, over sliding windows.

Clicks and impressions come in two streams. Each pair of query and ad that was clicked in a window gets a click-through
rate, clicks / impressions. Pairs with clicks but no impressions give no result; DSPBench divides by zero there.
Repeated events count each time. An event without a query or an ad is malformed and counts nowhere. Windows are of event
time; DSPBench's follow the clock of the counting machine.
"""

from pydantic import Field

from streamgauge.dataflow.builder import hop, source
from streamgauge.loadgen.fields import Key, StreamSpec, with_malformed
from streamgauge.workloads.registry import Feature, Job, Parameters, Seconds, Workload, unless

WHOLE = "query_id IS NOT NULL AND ad_id IS NOT NULL"


class AdsAnalytics(Parameters):
    """Parameters of the window, the queries and the ads."""

    window: Seconds = Field(10.0, gt=0, le=86_400, description="length of the window of the counts")
    frequency: Seconds = Field(2.0, gt=0, le=86_400, description="time between results")
    queries: int = Field(1000, ge=1, le=2**24, description="number of queries, asked with Zipf's frequencies")
    ads: int = Field(10, ge=1, le=10_000, description="number of ads")
    clicks: float = Field(0.05, gt=0, lt=1, description="share of the events that are clicks")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the events without an ad")


def build(parameters: AdsAnalytics, rate_per_s: float) -> Job:
    ad = with_malformed(Key("ad_id", parameters.ads), parameters.malformed, None)
    pair = (Key("query_id", parameters.queries, "zipf"), ad)
    clicks = StreamSpec("clicks", pair, parameters.clicks, "query_id")
    impressions = StreamSpec("impressions", pair, 1 - parameters.clicks, "query_id")
    clicked = source("clicks", clicks.schema).select(query_id="query_id", ad_id="ad_id", clicks="1", impressions="0")
    shown = source("impressions", impressions.schema).select(
        query_id="query_id", ad_id="ad_id", clicks="0", impressions="1"
    )
    rates = (
        clicked.union(shown, name="ad_events")
        .where(WHOLE, name="well_formed")
        .window(hop(parameters.window, parameters.frequency), keys=("query_id", "ad_id"))
        .aggregate(clicks="sum(clicks)", impressions="sum(impressions)", name="ctr_counter")
        .where("clicks > 0 AND impressions > 0", name="clicked")
        .select(
            query_id="query_id", ad_id="ad_id", window_start="window_start", window_end="window_end",
            ctr="try_divide(clicks, impressions)", clicks="clicks", impressions="impressions", name="rolling_ctr",
        )
    )  # fmt: skip
    return Job(rates.sink("rates"), (clicks, impressions), dict.fromkeys(("clicks", "impressions"), unless(WHOLE)))


WORKLOAD = Workload(
    name="ads_analytics",
    title="ads analytics",
    summary="click-through rates of ads beside queries over sliding windows",
    source="DSPBench",
    parameters=AdsAnalytics,
    build=build,
    features=(Feature.FILTER, Feature.WINDOW, Feature.TWO_STREAMS),
    prefix="aa",
)
