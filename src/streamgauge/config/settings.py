"""Settings: each is written once, as a pydantic field that also says how the command line asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field

Command = Literal["run", "sustain", "generate", "anatomy", "characterize"]
"""The commands that are shorthand for an experiment."""
COMMANDS: tuple[str, ...] = get_args(Command)
OF_A_LOAD = ("run", "sustain", "generate", "anatomy")
"""Those that take most settings."""
NAMED = "NAME=VALUE"
"""The metavar of a setting that is a table: each of its entries is an option of its own."""


@dataclass(frozen=True)
class SettingInfo:
    """A setting on the command line.

    Attributes:
        name: as in an experiment's file, with its section: `load.rate`.
        default: as it is typed; None where there is none, or it is not one value.
        default_text: what `--help` says of a default that is not one value.
        example: a value that would do, where the default is none.
        commands: those that take it.
        per_command: command to what differs there.
    """

    name: str
    default: Any
    help: str
    metavar: str = ""
    flag: str = ""
    default_text: str = ""
    example: str = ""
    repeatable: bool = False
    required: bool = False
    commands: tuple[str, ...] = OF_A_LOAD
    per_command: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def in_command(self, command: str) -> SettingInfo:
        return replace(self, **self.per_command.get(command, {}))

    @property
    def is_switch(self) -> bool:
        return self.default is False

    @property
    def way_out(self) -> str:
        """What to type instead of a value that is refused."""
        value = self.example or (self.default if isinstance(self.default, str) else "")
        return f"{self.flag} {value}" if value else f"{self.flag} with another value"


def setting(default: Any, help: str, metavar: str = "", *, only: Sequence[str] = OF_A_LOAD, **more: Any) -> Any:
    """A pydantic field for a setting; `more` are further attributes of its `SettingInfo`."""
    told = {"metavar": metavar, "commands": tuple(only), **more}
    return Field(default=default, validate_default=True, description=help, json_schema_extra=told)


def settings_of(model: type[BaseModel], section: str = "") -> Iterator[SettingInfo]:
    """The settings of a model and of its sections, in their order."""
    for name, info in model.model_fields.items():
        kinds = get_args(info.annotation) or (info.annotation,)
        inner = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
        if inner is not None:
            yield from settings_of(inner, f"{name}.")
        elif isinstance(info.json_schema_extra, dict):
            told: dict[str, Any] = {"flag": f"--{name.replace('_', '-')}", **info.json_schema_extra}
            default = None if told.get("repeatable") else info.default
            yield SettingInfo(f"{section}{name}", default, info.description or "", **told)
