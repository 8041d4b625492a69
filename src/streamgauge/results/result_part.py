"""Base of all result models."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION = 1


class ResultPart(BaseModel):
    """Base of every part of a result: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
