"""What a system does more than once, because a job of several sinks may be several queries of it: warnings.

What is read twice the transport counts. What is done twice follows from the flow and from the sinks that each query
commits: a query does by itself all that its sinks need.
"""

from __future__ import annotations

from collections import defaultdict

from streamgauge.core.units import FAR_FUTURE_US
from streamgauge.dataflow import graph
from streamgauge.dataflow.nodes import Flow, Source
from streamgauge.metrics.log.trial_log import TrialLog


def redelivered_share(trial_log: TrialLog) -> list[str]:
    """Where the system reads the same events more than once: at which streams, and how often on average."""
    shared = trial_log.running.shared_events
    first = {stream: int(trial_log.running.handed_out_by(FAR_FUTURE_US, stream)) for stream in shared}
    queries = {query: trial_log.of_query(query).sinks for query in trial_log.queries()}
    who = f" ({'; '.join(', '.join(sinks) for sinks in queries.values())})" if len(queries) > 1 else ""
    return [
        f"{stream} is read {1 + shared[stream] / first[stream]:.2g} times: its {len(queries)} queries{who} "
        "each do their own work on it; rates count every event once"
        for stream in sorted(shared)
        if shared[stream] and first[stream]
    ]


def duplicate_work(flow: Flow, trial_log: TrialLog) -> list[str]:
    """Which operators stand before sinks of different queries: a warning for each group of queries."""
    sinks = {query: trial_log.of_query(query).sinks for query in trial_log.queries()}
    ends = {sink.name: sink.input for sink in flow.sinks}
    needed = {query: set(graph.walk(*(ends[name] for name in names if name in ends))) for query, names in sinks.items()}
    together: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for node in graph.operators(flow):
        doers = tuple(query for query, nodes in needed.items() if node in nodes)
        if len(doers) > 1 and not isinstance(node, Source):
            together[doers].append(node.name)
    return [
        f"{', '.join(operators)} {'is' if len(operators) == 1 else 'are'} done {times(len(doers))}: by queries "
        + ", ".join(f"{query} ({', '.join(sinks[query])})" for query in doers)
        for doers, operators in together.items()
    ]


def times(n: int) -> str:
    return {1: "once", 2: "twice"}.get(n, f"{n} times")
