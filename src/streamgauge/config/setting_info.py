"""What a setting says of itself (option, help, default, commands that take it), and how its value is parsed."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from math import ceil
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, Field

from streamgauge.core.clock import US
from streamgauge.core.errors import Problem, Rule, attempt, near, refuse, require
from streamgauge.core.formatting import format_value
from streamgauge.core.units import (
    DURATION_PATTERN,
    RATE_PATTERN,
    SHARE_PATTERN,
    parse_duration,
    parse_rate,
    parse_share,
    parse_whole,
)

Command = Literal["run", "sustain", "scale", "sweep", "generate", "anatomy", "characterize"]
"""The commands that are shorthand for an experiment."""
COMMANDS: tuple[str, ...] = get_args(Command)
LOAD_COMMANDS = ("run", "sustain", "scale", "sweep", "generate", "anatomy")
"""The commands that take most settings."""
ENGINE_UNDER_LOAD = ("run", "sustain", "scale", "sweep", "anatomy")
"""The commands that put an engine under load."""
NAME_VALUE = "NAME=VALUE"
"""The metavar of a setting that is a table: the option is repeated for each entry."""
ONE_OR_LIST: Any = float | str | list[float | str]
"""What a file may have for a list, for its JSON Schema: one text with commas too."""


@dataclass(frozen=True)
class SettingInfo:
    """A setting on the command line.

    Attributes:
        name: dotted name in an experiment file, such as `load.rate`.
        default: as typed; None if the setting has no default, or one that is not a single value.
        default_text: text of `--help` for a default that is not a single value.
        example: an accepted value, for settings without a default.
        group: heading of `--help` below which the option stands.
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
    group: str = ""
    commands: tuple[str, ...] = LOAD_COMMANDS
    per_command: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def in_command(self, command: str) -> Self:
        return replace(self, **self.per_command.get(command, {}))

    @property
    def is_switch(self) -> bool:
        """Whether the option takes no value: it turns on what is off by default, or the other way round."""
        return isinstance(self.default, bool)

    @property
    def way_out(self) -> str:
        """What to type instead of a refused value."""
        if self.is_switch:
            return self.flag
        value = self.example or (self.default if isinstance(self.default, str) else "")
        return f"{self.flag} {value}" if value else f"{self.flag} with another value"

    def stated_defaults(self) -> str:
        """The default of the first command that takes the setting, and others by command: `60s; sustain: 30s`."""
        stated = {
            command: self.in_command(command)._stated_default() for command in COMMANDS if command in self.commands
        }
        usual = next(iter(stated.values()))
        return usual + "".join(f"; {command}: {text}" for command, text in stated.items() if text != usual)

    def _stated_default(self) -> str:
        if self.required:
            return "required"
        return self.default_text or (str(self.default).lower() if self.is_switch else str(self.default))

    def rule_of_command(self, command: str, setting: str, got: object, name: str) -> Rule:
        """That the command takes the setting; `name` is what to leave out."""
        rule = f"is not a setting of {command}, only of {' and '.join(self.commands)}"
        return Rule(command in self.commands, setting, rule, got, f"leave {name} out")


def setting(default: Any, help: str, metavar: str = "", *, only: Sequence[str] = LOAD_COMMANDS, **more: Any) -> Any:
    """A pydantic field for a setting; `more` holds further attributes of its `SettingInfo`."""
    metadata = {"metavar": metavar, "commands": tuple(only), **more}
    return Field(default=default, validate_default=True, description=help, json_schema_extra=metadata)


def settings_of(model: type[BaseModel], section: str = "") -> Iterator[SettingInfo]:
    """The settings of a model and of its sections, in order of declaration.

    A setting that names no group has that of its section.
    """
    for name, info in model.model_fields.items():
        kinds = get_args(info.annotation) or (info.annotation,)
        inner = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
        if inner is not None:
            yield from settings_of(inner, f"{name}.")
        elif isinstance(info.json_schema_extra, dict):
            metadata: dict[str, Any] = {
                "flag": f"--{name.replace('_', '-')}",
                "group": section.removesuffix(".").capitalize() or "Engine",
                **info.json_schema_extra,
            }
            default = None if metadata.get("repeatable") else info.default
            yield SettingInfo(f"{section}{name}", default, info.description or "", **metadata)


def file_line(name: str, value: object) -> str:
    """The line of an experiment file that gives a setting a value, and its table: `rate = "100k" below [load]`."""
    table, dot, key = name.partition(".")
    if not dot:
        return f"{name} = {json.dumps(value)}"
    key = key if re.fullmatch(r"[\w-]+", key) else json.dumps(key)
    return f"{key} = {json.dumps(value)} below [{table}]"


def line_meant(
    name: str, got: object, settings: Mapping[str, SettingInfo], shorthands: Mapping[str, str], tables: Iterable[str]
) -> str:
    """What was meant by a name in a file that is no setting: the line of the setting whose last word, or option, is the
    same or most similar, or the heading of the most similar of `tables`. Empty if none is similar.

    `shorthands`: other names of settings.
    """
    if name == "kind":
        return 'kind = "experiment"'
    if isinstance(got, dict):
        return f"[{meant}]" if (meant := near(name, tables)) else ""
    by_word = {
        **{info.flag.removeprefix("--").replace("-", "_"): one for one, info in settings.items()},
        **{one.rpartition(".")[2]: one for one in settings}, **shorthands,
    }  # fmt: skip
    word = name.rpartition(".")[2]
    meant = by_word.get(word) or by_word.get(near(word, by_word) or "")
    if not meant or not isinstance(got, str | int | float | bool | list):
        return ""
    if word.startswith(("no_", "no-")) and isinstance(got, bool):
        got = not got
    is_list = meant in settings and settings[meant].repeatable and not isinstance(got, list)
    return file_line(meant, [got] if is_list else got)


def parse_interval(text: Any) -> float:
    """The interval between batches, in seconds; engines take whole milliseconds."""
    interval_s = parse_duration(text)
    is_whole = round(US * interval_s) % 1000 == 0
    require(is_whole, "interval", "must be whole milliseconds", text, "--interval")
    return interval_s


def parse_record_size(text: Any) -> int:
    from streamgauge.loadgen.datasets.texts import RECORD_BYTES_MAX, RECORD_BYTES_MIN

    return parse_whole(text, "--record-sizes", RECORD_BYTES_MIN, RECORD_BYTES_MAX, "")


def parse_loads(given: Any) -> tuple[str, ...]:
    """Loads as text, because only their dimension says how they are read."""
    return tuple(format_value(text).strip() for text in _as_list(given))


STEP, SHARE_MAX = 0.1, 3.0
"""Step of a range of loads, and the greatest load: beyond it an engine only fails sooner."""


def parse_shares(given: Any) -> tuple[float, ...]:
    """Loads as ascending shares: `20%,50%,80%`, or a range in steps of 10 %, such as `10%..110%`, with its end."""
    shares: list[float] = []
    for text in map(str, _as_list(given)):
        first, *last = (parse_share(end, "loads") for end in text.split("..", 1))
        steps = ceil(round((last[0] - first) / STEP, 9)) if last else 1
        shares += [round(first + STEP * n, 9) for n in range(max(1, min(steps, round(SHARE_MAX / STEP))))] + last
    ascends = all(a < b for a, b in pairwise((0.0, *shares)))
    rule = f"must ascend, from above 0% to at most {SHARE_MAX:.0%}"
    require(shares and ascends and shares[-1] <= SHARE_MAX, "loads", rule, given, "--loads 10%..110%")
    return tuple(shares)


def parse_number(least: int, greatest: int, text: Any) -> int:
    return parse_whole(text, "--number", least, greatest, "")


def quantity(parse: Callable[[Any], float], pattern: str) -> BeforeValidator:
    """Parses a number, or a text with a unit that matches `pattern`."""
    text: Any = Annotated[str, Field(pattern=pattern)]
    return BeforeValidator(parse, json_schema_input_type=float | text)


Rate = Annotated[float, quantity(parse_rate, RATE_PATTERN)]
Duration = Annotated[float, quantity(parse_duration, DURATION_PATTERN)]
Share = Annotated[float, quantity(parse_share, SHARE_PATTERN)]
Loads = Annotated[tuple[str, ...], BeforeValidator(parse_loads, json_schema_input_type=ONE_OR_LIST)]
Shares = Annotated[tuple[float, ...], BeforeValidator(parse_shares, json_schema_input_type=ONE_OR_LIST)]


def whole(least: int, greatest: int) -> BeforeValidator:
    """Validates a whole number from `least` to `greatest`; `10k` is 10000."""
    return BeforeValidator(partial(parse_number, least, greatest), json_schema_input_type=int | str)


def list_of(parse: Callable[[Any], Any]) -> BeforeValidator:
    """Parses a list, or values separated by commas, without duplicates. One InputError holds all problems."""

    def read(given: Any) -> tuple[Any, ...]:
        problems: list[Problem] = []
        values = [attempt(partial(parse, text), problems) for text in _as_list(given)]
        refuse(problems)
        return tuple(dict.fromkeys(values))

    return BeforeValidator(read, json_schema_input_type=ONE_OR_LIST)


def _as_list(given: Any) -> list[Any]:
    values = given.split(",") if isinstance(given, str) else given
    return list(values) if isinstance(values, list | tuple) else [values]


TABLES = {
    "engine": {"name": "engine", "parallelism": "parallelism", "options": "options"},
    "transport": {"name": "transport", "partitions": "partitions", "options": "transport_options"},
}
"""The settings that a file may also write as keys of one table, such as `engine.parallelism`."""


def flat_name(name: str) -> str:
    """The dotted name of a setting, of one that `TABLES` lists too."""
    table, _, key = name.partition(".")
    first, dot, rest = key.partition(".")
    flat = TABLES.get(table, {}).get(first)
    return name if flat is None else f"{flat}{dot}{rest}"


def without_tables(values: dict[str, Any]) -> dict[str, Any]:
    """The values with the keys of `TABLES` as settings. A key that is no setting stays, and is refused."""
    flat = dict(values)
    for table, names in TABLES.items():
        if not isinstance(given := values.get(table), dict):
            continue
        del flat[table]
        for key, value in given.items():
            name = names.get(key, f"{table}.{key}")
            rule, way_out = f"must be given once, and {name} is given too", f"only one of {table}.{key} and {name}"
            require(name not in flat, f"{table}.{key}", rule, value, way_out)
            flat[name] = value
    return flat
