"""What the topics of a run are called: each begins with the run's own word, so that nobody else's is touched."""

from __future__ import annotations


def topic_of(run: str, stream: str) -> str:
    """The topic of a stream's events."""
    return f"streamgauge-{run}-{stream}"


def results_of(run: str) -> str:
    """The topic of all results: one partition, so that what a batch gave lies between its two marks."""
    return f"streamgauge-{run}.results"


def stream_of(topic: str, run: str) -> str:
    """The stream of a topic of events."""
    return topic.removeprefix(topic_of(run, ""))
