"""Published capacities, never mixed into our own.

Ehrenstein 2020, figure 5: its first topology (records are read, changed and written) on Kafka Streams, with instances
of 2 GiB on four nodes. Only doublings were tried, so 1 and 2 instances tie. 16 instances were undetermined, because the
generator was the limit at 2^17 messages/s.
"""

from __future__ import annotations

import csv
from pathlib import Path

from streamgauge.results.scalability import PublishedCapacity

MEASURED_TOPOLOGY = "scalability_sink"
"""The workload that the figure is of."""
FIGURE_5 = Path(__file__).parent / "data" / "ehrenstein_fig5.csv"


def ehrenstein() -> tuple[PublishedCapacity, ...]:
    """The points of figure 5."""
    with FIGURE_5.open(newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return tuple(
            PublishedCapacity(resources=int(row["instances"]), per_s=float(row["messages_per_s"])) for row in rows
        )
