"""Word Count (WC): the number of occurrences of each word so far.

A word is a run of ASCII letters, digits and underscores, in lower case. (The engines of the thesis's code disagree
about case, and so about every count.) A line without words, empty or null, gives no row. Words are never forgotten,
unless there is a `window`.

Source: Bordin 2017, section 3.3.1.
"""

from pydantic import Field

from streamgauge.dataflow.builder import source
from streamgauge.loadgen.fields import WORDS_MAX, StreamSpec, Text
from streamgauge.workloads.registry import COUNTED_WITHIN, Feature, Job, Parameters, Seconds, Workload, count_by_key

WORDS = "regexp_extract_all(text, '[A-Za-z0-9_]+', 0)"
"""Each word is lowered after the split, because engines disagree about some letters of other alphabets ('İ'), which no
word contains. Removing those from the line first costs half of all the work.
"""


class WordCount(Parameters):
    """Parameters of the lines and the bound of the state. The thesis has only numbers of instances."""

    window: Seconds = Field(0.0, ge=0, le=86_400, description=COUNTED_WITHIN)
    words: int = Field(10, ge=1, le=WORDS_MAX, description="number of words in a line")


def build(parameters: WordCount, rate_per_s: float) -> Job:
    sentences = StreamSpec("sentences", (Text("text", parameters.words),))
    words = (
        source("sentences", sentences.schema)
        .explode(word=WORDS, name="splitter")
        .select(word="lower(word)", name="lower_case")
    )
    counts = count_by_key(words, parameters.window, keys="word", column="count", name="counter")
    return Job(counts.sink("counts"), (sentences,))


WORKLOAD = Workload(
    name="word_count",
    title="word count",
    summary="number of occurrences of each word so far, as updates",
    source="Bordin 2017, section 3.3.1",
    parameters=WordCount,
    build=build,
    features=(Feature.FLAT_MAP, Feature.COUNTER),
    features_with={Feature.WINDOW: ("window", "10s")},
    prefix="wc",
)
