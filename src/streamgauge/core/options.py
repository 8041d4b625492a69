"""Options by name: which there are, and what is wrong with those given, as far as names and choices say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamgauge.core.errors import Problem, near, nearest


@dataclass(frozen=True)
class Setting:
    """One option: its name, default and meaning; `choices` where it has few values."""

    name: str
    default: str
    meaning: str
    choices: tuple[str, ...] = ()


def problems_of(
    options: Mapping[str, str],
    settings: Sequence[Setting],
    of: str,
    word: str = "option",
    instead: str = "leave it out",
) -> Iterator[Problem]:
    """Options that are none of the settings, and values that are not among a setting's choices.

    `of` says whose they are, `word` what one is called; on the command line it is `--WORD`, with - for blanks.
    `instead` is the way out where there are no settings at all.
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
