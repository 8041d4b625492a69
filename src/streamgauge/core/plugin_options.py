"""Options of engines and transports, and what they fetch: how a plugin declares them, and the check of options."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from streamgauge.core.errors import Problem, near, nearest

Tuning = Literal["tuned", "idiomatic"]
"""The tuning profiles: our fastest correct form, and what a competent user writes without tricks."""
TUNED: Final = "tuned"
IDIOMATIC: Final = "idiomatic"
CLIENT_FILE = "client"
"""The transport option that names the file with the clients' login settings."""


@dataclass(frozen=True)
class Setting:
    """One option: name, default, meaning, and its values if they are fixed."""

    name: str
    default: str
    meaning: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fetch:
    """What a first use fetches and keeps: its name, about how many bytes, and the options with which it is needed.

    `transport`, `encoding`: what a run must use to need it; empty if any does.
    """

    name: str
    bytes: int
    needed_with: str
    transport: str = ""
    encoding: str = ""


def with_defaults(options: Mapping[str, str], settings: Sequence[Setting]) -> dict[str, str]:
    """All options."""
    return {setting.name: setting.default for setting in settings} | dict(options)


def problems_of(
    options: Mapping[str, str],
    settings: Sequence[Setting],
    of: str,
    word: str = "option",
    instead: str = "leave it out",
) -> Iterator[Problem]:
    """Problems of unknown options, and of values that are not among the choices.

    `of`: the owner of the options. `word`: what an option is called, on the command line `--WORD` with - for spaces.
    `instead`: the way out if there are no settings.
    """
    article = "an" if word[0] in "aeiou" else "a"
    known, flag = {setting.name: setting for setting in settings}, f"--{word.replace(' ', '-')}"
    for name, value in options.items():
        if name not in known:
            meant = near(name, known)
            way_out = f"{flag} {meant}=..." if meant else f"one of {', '.join(known)}" if known else instead
            yield Problem(f"{word} {name}", f"is not {article} {word} of {of}", value, way_out)
        elif (choices := known[name].choices) and value not in choices:
            way_out = f"{flag} {name}={nearest(value, choices)}"
            yield Problem(f"{word} {name}", f"must be one of {', '.join(choices)}", value, way_out)
