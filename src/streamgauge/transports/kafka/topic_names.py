"""Topic names of a run. Each contains the run id, so that other topics are not touched.

A program of the user's own may have topics of its own names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


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


def input_topics(run: str, own: Mapping[str, str]) -> dict[str, str]:
    """Stream of a program to its topic; `own` has the names that the program gives, empty where it gives none."""
    return {stream: name or topic_of(run, stream) for stream, name in own.items()}


def output_topics(run: str, own: Mapping[str, str]) -> dict[str, str]:
    """Sink of a program to its topic."""
    several = len(own) > 1
    return {sink: name or results_of(run) + (f"-{sink}" if several else "") for sink, name in own.items()}


def variables(kind: str, names: Iterable[str], of: Iterable[str] = ()) -> str:
    """The environment variables in which a program finds topics, for messages. `kind`: `input` or `output`.

    `of`: the names of all its inputs or outputs, if `names` are some of them.
    """
    named = list(names)
    if len(list(of) or named) == 1:
        return f"$STREAMGAUGE_{kind.upper()}"
    return ", ".join(f"$STREAMGAUGE_{kind}_{name}".upper() for name in named)
