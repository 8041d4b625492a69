"""The features that a workload requires of an engine: those in Bordin's overview of applications, and three more.

Each workload declares its features. Tests compare them with features that can be derived from the flow.
"""

from __future__ import annotations

from enum import StrEnum


class Feature(StrEnum):
    """A feature by its name in Bordin's overview; `MEANING` describes each."""

    FLAT_MAP = "flat-map"
    FILTER = "filter"
    COUNTER = "unbounded keyed counter"
    COUNT_WINDOW = "count-based keyed window"
    WINDOW = "event-time window"
    GLOBAL = "global operator"
    BROADCAST = "broadcast edge"
    SELF_JOIN = "join of branches"
    TWO_STREAMS = "two streams"
    LOOKUP = "lookup"
    SINKS = "several sinks"
    FEEDBACK = "feedback loop"
    PROBABILISTIC = "probabilistic structures"
    PYTHON = "keyed operator in Python"
    ROWS = "rows made into others"
    NOTHING = "transport and sink alone"


MEANING = {
    Feature.FLAT_MAP: "One row gives several, without state.",
    Feature.FILTER: "Many rows, or nearly all, give nothing.",
    Feature.COUNTER: "Counts by key that are never forgotten, so the state grows with the keys.",
    Feature.COUNT_WINDOW: "The last rows of a key, by their number and whatever their time.",
    Feature.WINDOW: (
        "Rows of a time, which the watermark closes. The overview has two: slots that a machine's clock ticks on, and "
        "rows that are taken back one by one; here both are windows of event time."
    ),
    Feature.GLOBAL: "All rows, or all of a window, meet in one instance.",
    Feature.BROADCAST: (
        "What one operator finds goes to all instances of another. No flow here has it: where the thesis does so, the "
        "rows pass one instance that writes it on them, or both sides have a key."
    ),
    Feature.SELF_JOIN: "A row's parts go different ways, and are put together again.",
    Feature.TWO_STREAMS: "Rows of two streams meet in one operator.",
    Feature.LOOKUP: "Each row is looked up in what never changes: a table, places, a map, a model, a lexicon.",
    Feature.SINKS: "One flow gives results of several kinds, each measured and verified for itself.",
    Feature.FEEDBACK: (
        "Results become input. No flow here has it: the input would depend on the engine's answers, and could not be "
        "planned."
    ),
    Feature.PROBABILISTIC: "The state takes less memory than exact answers need; the truth has the same cells.",
    Feature.PYTHON: "A class in Python sees all rows of a key in the order of time. Ours, not the overview's.",
    Feature.ROWS: "Expressions over the columns of a row, and nothing else. Ours, not the overview's.",
    Feature.NOTHING: "No operator at all: the floor that all others stand on. Ours, not the overview's.",
}
"""A description of each feature."""
