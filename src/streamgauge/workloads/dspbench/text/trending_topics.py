"""Trending Topics (TT): the hashtags that were used most in the last ten seconds, every two seconds.

A topic is what stands between white space, begins with `#` and has at least one more character; it is kept as it is
written. Windows are of event time: the thesis counts by the clock of the machine that happens to do it,
so no two runs of it agree. Equal counts are ranked by topic, which the thesis leaves open. A tweet
without a text (null) is malformed and has no topic.

Source: Bordin 2017, section 3.3.7.
"""

from __future__ import annotations

from pydantic import Field

from streamgauge.dataflow.builder import hop, source
from streamgauge.loadgen.datasets.tweets import Tweet
from streamgauge.loadgen.fields import WORDS_MAX, StreamSpec
from streamgauge.loadgen.malformed import with_malformed
from streamgauge.workloads.features import Feature
from streamgauge.workloads.registry import Job, Parameters, Seconds, Workload

TOPICS = r"regexp_extract_all(text, '(^|\\s)(#[^\\s]+)', 2)"
"""White space is that of ASCII, vertical tab included: the flow language gives every engine the same."""


class TrendingTopics(Parameters):
    """The thesis's parameters, and the tweets."""

    topk: int = Field(10, ge=1, le=10_000, description="how many topics are in a ranking")
    window: Seconds = Field(10.0, gt=0, le=86_400, description="over how long topics are counted")
    frequency: Seconds = Field(2.0, gt=0, le=86_400, description="how often they are ranked")
    words: int = Field(15, ge=1, le=WORDS_MAX, description="how many words a tweet has")
    hashtags: float = Field(0.1, ge=0, le=1, description="share of the words that are hashtags")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the tweets without a text")


def build(parameters: TrendingTopics, rate_per_s: float) -> Job:
    text = Tweet("text", parameters.words, parameters.hashtags)
    tweets = StreamSpec("tweets", (with_malformed(text, parameters.malformed, None),))
    topics = source("tweets", tweets.schema).explode(topic=TOPICS, name="topic_extractor").select(topic="topic")
    counts = topics.window(hop(parameters.window, parameters.frequency), keys="topic").aggregate(
        count="count(*)", name="rolling_counter"
    )
    ranked = counts.top(parameters.topk, by="count", ties="topic", name="ranker")
    return Job(ranked.sink("rankings"), (tweets,), {"tweets": "text IS NULL"})


WORKLOAD = Workload(
    name="trending_topics",
    title="trending topics",
    summary="the hashtags that were used most in the last seconds, ranking by ranking",
    source="Bordin 2017, section 3.3.7",
    parameters=TrendingTopics,
    build=build,
    features=(Feature.FLAT_MAP, Feature.WINDOW, Feature.GLOBAL),
    prefix="tt",
)
