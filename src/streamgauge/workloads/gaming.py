"""The streams of the gaming workloads [K §IV]: players buy gem packs (`purchases`) that were advertised (`ads`)."""

from __future__ import annotations

from streamgauge.load.fields import FieldSpec, Integer, Key, Payload, StreamSpec
from streamgauge.load.keys import Distribution

PRICE_MAX = 100
"""Prices are whole, 1 to this, every one equally likely."""


def purchases(
    users: int, packs: int, distribution: Distribution = "uniform", payload_bytes: int = 0, share: float = 1.0
) -> StreamSpec:
    """`purchases(user_id, gem_pack_id, price)`, with `payload` where it is to be longer; packs are distributed."""
    fields: tuple[FieldSpec, ...] = (
        Key("user_id", users),
        Key("gem_pack_id", packs, distribution),
        Integer("price", 1, PRICE_MAX),
    )
    payload = (Payload("payload", payload_bytes),) if payload_bytes else ()
    return StreamSpec("purchases", fields + payload, share)


def ads(users: int, packs: int, share: float) -> StreamSpec:
    """`ads(user_id, gem_pack_id)`."""
    return StreamSpec("ads", (Key("user_id", users), Key("gem_pack_id", packs)), share)
