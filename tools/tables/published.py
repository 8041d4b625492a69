"""What the tables of the documentation show of published measurements."""

from collections import defaultdict

from streamgauge.studies.operator_profile.published import Reported, reported


def best_on_one_node(workload: str, system: str) -> tuple[Reported, ...]:
    """The sinks of the one-node configuration with the least p95; of several sinks, the slowest counts."""
    found: dict[str, list[Reported]] = defaultdict(list)
    for row in reported(workload):
        if row.system == system and row.configuration.startswith("n1_"):
            found[row.configuration].append(row)
    return tuple(min(found.values(), key=lambda rows: max(row.latency_ms_p95 for row in rows), default=()))
