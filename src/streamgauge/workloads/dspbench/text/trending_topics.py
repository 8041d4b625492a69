"""Trending Topics (TT): the most used hashtags of the last ten seconds, every two seconds.

A topic is text between white space that starts with `#` and has at least one more character; its case is kept. Windows
are of event time. The thesis counts by the clock of whichever machine counts, so that no two of its runs agree. Equal
counts are ranked by topic, which the thesis leaves open. A tweet without a text (null) is malformed and has no topic.

Source: Bordin 2017, section 3.3.7.
"""

from pydantic import Field

from streamgauge.dataflow.builder import hop, source
from streamgauge.loadgen.datasets.texts import Tweet
from streamgauge.loadgen.fields import WORDS_MAX, StreamSpec, with_malformed
from streamgauge.workloads.registry import Feature, Job, Parameters, Seconds, Workload

TOPICS = r"regexp_extract_all(text, '(^|\\s)(#[^\\s]+)', 2)"
"""White space is ASCII white space with vertical tab, as the flow language defines it for every engine."""


class TrendingTopics(Parameters):
    """The thesis's parameters and the tweets'."""

    topk: int = Field(10, ge=1, le=10_000, description="number of topics in a ranking")
    window: Seconds = Field(10.0, gt=0, le=86_400, description="length of the window in which topics are counted")
    frequency: Seconds = Field(2.0, gt=0, le=86_400, description="time between rankings")
    words: int = Field(15, ge=1, le=WORDS_MAX, description="number of words in a tweet")
    hashtags: float = Field(0.1, ge=0, le=1, description="share of the words that are hashtags")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the tweets without a text")


def build(parameters: TrendingTopics, rate_per_s: float) -> Job:
    text = Tweet("text", parameters.words, parameters.hashtags)
    tweets = StreamSpec("tweets", (with_malformed(text, parameters.malformed, None),))
    ranked = (
        source("tweets", tweets.schema)
        .explode(topic=TOPICS, name="topic_extractor")
        .select(topic="topic")
        .window(hop(parameters.window, parameters.frequency), keys="topic")
        .aggregate(count="count(*)", name="rolling_counter")
        .top(parameters.topk, by="count", ties="topic", name="ranker")
    )
    return Job(ranked.sink("rankings"), (tweets,), {"tweets": "text IS NULL"})


WORKLOAD = Workload(
    name="trending_topics",
    title="trending topics",
    summary="rankings of the most used hashtags of the last seconds",
    source="Bordin 2017, section 3.3.7",
    parameters=TrendingTopics,
    build=build,
    features=(Feature.FLAT_MAP, Feature.WINDOW, Feature.GLOBAL),
    prefix="tt",
)
