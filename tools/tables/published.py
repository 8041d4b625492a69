"""What the tables of the documentation show of the latency and throughput in Bordin 2017 (tables 4.3 to 4.5).

They are of 8 nodes of 2 cores and 3.5 GB, Spark 1.3.1 with batches of 1 s and Storm 0.9.2, in
`LATENCIES`, whole. Throughput is counted at the sink, where Spark's batched updates are far fewer than its inputs. Word
Count's 23 625.8 ms stand there twice (n1_x1, n8_x2): one of them is probably a slip.
"""

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from streamgauge.core.formatting import format_rate, format_us

ROOT = Path(__file__).parents[2]
LATENCIES = ROOT / "src/streamgauge/studies/operator_profile/data/bordin_tables_4_3_to_4_5.csv"


@dataclass(frozen=True)
class Reported:
    """One sink of one configuration; `sink` by the thesis's name, empty where there is one.

    A configuration is nodes and instances: n1_x1_x5_x6_x3 is one node, with a source, 5 splitters, 6 counters, 3 sinks.
    """

    table: str
    system: str
    configuration: str
    sink: str
    latency_ms_p95: float
    sink_rows_per_s: float

    def __str__(self) -> str:
        """`23.6 s at 2.9 k/s`, after the sink's name where it has one."""
        latency, rate = format_us(1000 * self.latency_ms_p95), format_rate(self.sink_rows_per_s, "")
        return f"{self.sink} {latency} at {rate}/s".strip()


def reported(workload: str) -> tuple[Reported, ...]:
    """All measurements of a workload in the thesis, in the order of its table; empty if there are none."""
    with LATENCIES.open(newline="") as file:
        return tuple(
            Reported(
                row["table"], row["system"], row["configuration"], row["sink"],
                float(row["latency_ms_p95"]), float(row["sink_rows_per_s"]),
            )
            for row in csv.DictReader(file)
            if row["application"] == workload
        )  # fmt: skip


def best_on_one_node(workload: str, system: str) -> tuple[Reported, ...]:
    """The sinks of the one-node configuration with the least p95; of several sinks, the slowest counts."""
    found: dict[str, list[Reported]] = defaultdict(list)
    for row in reported(workload):
        if row.system == system and row.configuration.startswith("n1_"):
            found[row.configuration].append(row)
    return tuple(min(found.values(), key=lambda rows: max(row.latency_ms_p95 for row in rows), default=()))
