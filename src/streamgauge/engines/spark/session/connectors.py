"""The additional jars that Spark needs for a transport. Does not load Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from streamgauge.system.java import JarSet, resolved

_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_TOKENS = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"
KAFKA = (
    (JarSet("spark-kafka-4.3.0", (f"{_CONNECTOR}:4.3.0",)),),
    # Fallback for mirrors without the exact version; tested with Spark 4.3.0. The token provider is only for
    # delegation tokens.
    (
        JarSet("spark-kafka-4.2.0", (f"{_CONNECTOR}:4.2.0",), (_TOKENS,)),
        JarSet("spark-kafka-tokens-4.0.0", (f"{_TOKENS}:4.0.0",)),
    ),
)
"""Tested jars for Spark's Kafka source and sink, the exact version first."""
AVRO = tuple(
    (JarSet(f"spark-avro-{version}", (f"org.apache.spark:spark-avro_2.13:{version}",)),)
    for version in ("4.3.0", "4.2.0", "4.1.1")
)
"""Tested jars for `from_avro`; the last one is a fallback, tested with Spark 4.3.0."""
CONNECTORS = {"kafka": KAFKA}
"""The jars of a transport that Spark reads by a connector of its own."""


def jars_for(transport: str, options: Mapping[str, str]) -> list[Path]:
    """Jars for Spark's class path, without duplicates. Raises MachineError if they cannot be downloaded."""
    jars = resolved(CONNECTORS[transport]) if transport in CONNECTORS else []
    jars += resolved(AVRO) if options.get("encoding") == "avro" else []
    return list({path.name: path for path in jars}.values())
