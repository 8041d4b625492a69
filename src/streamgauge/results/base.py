"""What every part of a result has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION = 1


class Answer(BaseModel):
    """Base of everything in a result: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
