"""The part of Avro's schemas that messages of programs may have: records of plain values, and records within them.

https://avro.apache.org/docs/1.12.0/specification/
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

KINDS = {
    "int": "bigint", "long": "bigint", "float": "double", "double": "double", "boolean": "boolean",
    "string": "string", "bytes": "binary",
}  # fmt: skip
"""Avro's plain types, and the Spark SQL type of their values."""


@dataclass(frozen=True)
class Leaf:
    """A plain value: its dotted name, Avro's type, and which branch of its union is null (None: no union)."""

    name: str
    kind: str
    null: int | None = None


def leaves(schema: str) -> tuple[Leaf, ...]:
    """The plain values of a record, in their order. Raises ValueError with what is not supported."""
    try:
        record = json.loads(schema)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(record, dict) or record.get("type") != "record":
        raise ValueError("it is not a record")
    return tuple(_leaves(record, ""))


def _leaves(record: dict[str, Any], prefix: str) -> Iterator[Leaf]:
    for field in record.get("fields", ()):
        name, kind, null = prefix + field["name"], field["type"], None
        if isinstance(kind, list):
            if len(kind) != 2 or "null" not in kind:
                raise ValueError(f"{name} is a union of other than null and one type")
            null = kind.index("null")
            kind = kind[1 - null]
        if isinstance(kind, dict) and kind.get("type") == "record" and null is None:
            yield from _leaves(kind, f"{name}.")
            continue
        plain = kind.get("type") if isinstance(kind, dict) else kind
        if not isinstance(plain, str) or plain not in KINDS:
            raise ValueError(f"{name} is {json.dumps(kind)}, not one of {', '.join(KINDS)}, a record, or null with one")
        yield Leaf(name, plain, null)
