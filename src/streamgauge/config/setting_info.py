"""What a setting says of itself: its option, help, default, and the commands that take it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field

Command = Literal["run", "sustain", "scale", "generate", "anatomy", "characterize"]
"""The commands that are shorthand for an experiment."""
COMMANDS: tuple[str, ...] = get_args(Command)
LOAD_COMMANDS = ("run", "sustain", "scale", "generate", "anatomy")
"""The commands that take most settings."""
NAME_VALUE = "NAME=VALUE"
"""The metavar of a setting that is a table: the option is repeated for each entry."""


@dataclass(frozen=True)
class SettingInfo:
    """A setting on the command line.

    Attributes:
        name: dotted name in an experiment file, such as `load.rate`.
        default: as typed; None if the setting has no default, or one that is not a single value.
        default_text: text of `--help` for a default that is not a single value.
        example: an accepted value, for settings without a default.
        commands: the commands that take the setting.
        per_command: attributes that differ, by command.
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
    commands: tuple[str, ...] = LOAD_COMMANDS
    per_command: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def in_command(self, command: str) -> SettingInfo:
        return replace(self, **self.per_command.get(command, {}))

    @property
    def is_switch(self) -> bool:
        return self.default is False

    @property
    def way_out(self) -> str:
        """What to type instead of a refused value."""
        value = self.example or (self.default if isinstance(self.default, str) else "")
        return f"{self.flag} {value}" if value else f"{self.flag} with another value"


def setting(default: Any, help: str, metavar: str = "", *, only: Sequence[str] = LOAD_COMMANDS, **more: Any) -> Any:
    """A pydantic field for a setting; `more` holds further attributes of its `SettingInfo`."""
    metadata = {"metavar": metavar, "commands": tuple(only), **more}
    return Field(default=default, validate_default=True, description=help, json_schema_extra=metadata)


def settings_of(model: type[BaseModel], section: str = "") -> Iterator[SettingInfo]:
    """The settings of a model and of its sections, in order of declaration."""
    for name, info in model.model_fields.items():
        kinds = get_args(info.annotation) or (info.annotation,)
        inner = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
        if inner is not None:
            yield from settings_of(inner, f"{name}.")
        elif isinstance(info.json_schema_extra, dict):
            metadata: dict[str, Any] = {"flag": f"--{name.replace('_', '-')}", **info.json_schema_extra}
            default = None if metadata.get("repeatable") else info.default
            yield SettingInfo(f"{section}{name}", default, info.description or "", **metadata)
