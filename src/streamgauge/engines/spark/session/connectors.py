"""What Spark needs besides its own jars to read a transport; loads no Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from streamgauge.system.jars import JarSet, resolved

_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_TOKENS = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"
CONNECTORS = (
    (JarSet("spark-kafka-4.3.0", (f"{_CONNECTOR}:4.3.0",)),),
    # Not every mirror has the exact version; tried with Spark 4.3.0. The token provider is for delegation tokens alone.
    (
        JarSet("spark-kafka-4.2.0", (f"{_CONNECTOR}:4.2.0",), (_TOKENS,)),
        JarSet("spark-kafka-tokens-4.0.0", (f"{_TOKENS}:4.0.0",)),
    ),
)
"""Known-good jars for Spark's Kafka source and sink, the exact version first."""
AVRO = tuple(
    (JarSet(f"spark-avro-{version}", (f"org.apache.spark:spark-avro_2.13:{version}",)),)
    for version in ("4.3.0", "4.2.0", "4.1.1")
)
"""The same for `from_avro`; not every mirror has the exact version, and the last was tried with Spark 4.3.0."""


def jars_for(transport: str, options: Mapping[str, str]) -> list[Path]:
    """Jars for Spark's class path, each once; MachineError where they cannot be had."""
    found = resolved(CONNECTORS) if transport == "kafka" else []
    found += resolved(AVRO) if options.get("encoding") == "avro" else []
    return list({path.name: path for path in found}.values())
