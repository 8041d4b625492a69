"""Word Count (WC): how often each word was said so far.

A word is a run of ASCII letters, digits and underscores, in lower case: the engines of the thesis's code disagree about
case, and so about every count. A line without a word, empty or null, gives no row. Words are never forgotten, unless
there is a `window`.

Source: Bordin 2017, section 3.3.1.
"""

from __future__ import annotations

from pydantic import Field

from streamgauge.dataflow.builder import source
from streamgauge.loadgen.fields import WORDS_MAX, StreamSpec, Text
from streamgauge.workloads.features import Feature
from streamgauge.workloads.helpers.counts import MEANING, count_by_key
from streamgauge.workloads.registry import Job, Parameters, Seconds, Workload

WORDS = "regexp_extract_all(text, '[A-Za-z0-9_]+', 0)"
"""In lower case only afterwards, each: engines do not agree on all letters of other alphabets ('İ'), and those are in
no word. To take them out of the line first cost half of all the work.
"""


class WordCount(Parameters):
    """The lines, and what bounds the state; the thesis itself has no parameter but how many instances there are."""

    window: Seconds = Field(0.0, ge=0, le=86_400, description=MEANING)
    words: int = Field(10, ge=1, le=WORDS_MAX, description="how many words a line has")


def build(parameters: WordCount, rate_per_s: float) -> Job:
    sentences = StreamSpec("sentences", (Text("text", parameters.words),))
    tokens = source("sentences", sentences.schema).explode(word=WORDS, name="splitter")
    words = tokens.select(word="lower(word)", name="lower_case")
    counts = count_by_key(words, parameters.window, keys="word", column="count", name="counter")
    return Job(counts.sink("counts"), (sentences,))


WORKLOAD = Workload(
    name="word_count",
    title="word count",
    summary="how often each word was said so far, as updates",
    source="Bordin 2017, section 3.3.1",
    parameters=WordCount,
    build=build,
    features=(Feature.FLAT_MAP, Feature.COUNTER),
    features_with={Feature.WINDOW: ("window", "10s")},
    prefix="wc",
)
