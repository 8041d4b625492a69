"""Warnings about duplicate work: a job with several sinks may run as several queries.

The transport counts events that are read twice. Operators that run twice follow from the flow and the sinks of each
query: a query runs everything that its sinks need.
"""

from __future__ import annotations

from collections import defaultdict

from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow, Source
from streamgauge.metrics.trial_log import TrialLog


def redelivered_share(trial_log: TrialLog) -> list[str]:
    """A warning for each stream that the system reads more than once, with the average number of reads."""
    shared = trial_log.running.shared_events
    first = {stream: int(trial_log.running.delivered_by(FAR_FUTURE_US, stream)) for stream in shared}
    queries = {query: trial_log.of_query(query).sinks for query in trial_log.queries()}
    who = f" ({'; '.join(', '.join(sinks) for sinks in queries.values())})" if len(queries) > 1 else ""
    return [
        f"{stream} is read {1 + shared[stream] / first[stream]:.2g} times, because its {len(queries)} queries{who} "
        "each read it; rates count every event once"
        for stream in sorted(shared)
        if shared[stream] and first[stream]
    ]


def duplicate_work(flow: Flow, trial_log: TrialLog) -> list[str]:
    """A warning for each group of queries that run the same operators."""
    sinks = {query: trial_log.of_query(query).sinks for query in trial_log.queries()}
    ends = {sink.name: sink.input for sink in flow.sinks}
    needed = {query: set(graph.walk(*(ends[name] for name in names if name in ends))) for query, names in sinks.items()}
    shared: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for node in graph.operators(flow):
        users = tuple(query for query, nodes in needed.items() if node in nodes)
        if len(users) > 1 and not isinstance(node, Source):
            shared[users].append(node.name)
    return [
        f"{', '.join(operators)} {'runs' if len(operators) == 1 else 'run'} {times(len(users))}: in queries "
        + ", ".join(f"{query} ({', '.join(sinks[query])})" for query in users)
        for users, operators in shared.items()
    ]


def times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")
