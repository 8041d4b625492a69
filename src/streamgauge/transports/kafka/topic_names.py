"""Topic names of a run. Each contains the run id, so that other topics are not touched."""

from __future__ import annotations


def topic_of(run: str, stream: str) -> str:
    """The topic of a stream's events."""
    return f"streamgauge-{run}-{stream}"


def results_of(run: str) -> str:
    """The topic of all results. It has one partition, so that a batch's results lie between its two marks."""
    return f"streamgauge-{run}.results"


def stream_of(topic: str, run: str) -> str:
    """The stream of an event topic."""
    return topic.removeprefix(topic_of(run, ""))


def group_of(run: str, own: str = "") -> str:
    """The consumer group of a program of the user's own: the one that it names, else one of the run."""
    return own or f"streamgauge-{run}"
