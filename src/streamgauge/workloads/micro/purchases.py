"""The streams of: purchases of gem packs in a game, and the advertisements shown for them.

Source: Karimov et al. 2018, section IV.
"""

from pydantic import Field

from streamgauge.dataflow.builder import hop
from streamgauge.dataflow.nodes import Window
from streamgauge.loadgen.fields import FieldSpec, Integer, Key, Payload, StreamSpec
from streamgauge.loadgen.random import Distribution
from streamgauge.workloads.registry import Parameters, Seconds

PRICE_MAX = 100


class Packs(Parameters):
    """Parameters of every workload that reads purchases."""

    packs: int = Field(1000, ge=1, le=2**24, description="number of gem packs")
    distribution: Distribution = Field("normal", description="distribution of gem packs: uniform, normal, zipf, single")
    payload_bytes: int = Field(0, ge=0, le=65_536, description="bytes of payload in each purchase, beside its fields")


class Purchases(Packs):
    """Parameters of workloads with a configurable number of users."""

    users: int = Field(1_000_000, ge=1, le=2**31 - 1, description="number of users")


class Windowed(Parameters):
    """Parameters of the windowed workloads."""

    range: Seconds = Field(8.0, gt=0, le=86_400, description="length of a window")
    slide: Seconds = Field(4.0, gt=0, le=86_400, description="time from one window's start to the next")

    def window(self) -> Window:
        """The window. Raises InputError if its slide is longer than its range."""
        return hop(self.range, self.slide)


def purchases(parameters: Packs, users: int | Key, share: float = 1.0, key: str | None = None) -> StreamSpec:
    """`purchases(user_id, gem_pack_id, price)`, and `payload` if requested. `users`: their number, or `user_id`."""
    fields: tuple[FieldSpec, ...] = (
        users if isinstance(users, Key) else Key("user_id", users),
        Key("gem_pack_id", parameters.packs, parameters.distribution),
        Integer("price", 1, PRICE_MAX),
    )
    if parameters.payload_bytes:
        fields += (Payload("payload", parameters.payload_bytes),)
    return StreamSpec("purchases", fields, share, key)


def ads(parameters: Packs, user: Key, share: float, key: str | None = None) -> StreamSpec:
    """`ads(user_id, gem_pack_id)`: which user was shown which pack."""
    fields = (user, Key("gem_pack_id", parameters.packs, parameters.distribution))
    return StreamSpec("ads", fields, share, key)
