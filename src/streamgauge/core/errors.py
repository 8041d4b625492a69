"""Every error that streamgauge raises on purpose.

    StreamgaugeError
    |-- InputError        what was asked cannot be done as asked (also a ValueError)      exit 2
    |   |-- ExpressionError   an expression of a flow that the binder refuses
    |   |-- JobError          an own job that cannot be run as its file stands
    |   `-- SettingError      a setting that a started engine does not know, or refuses
    |-- MachineError      this machine lacks something: Java, room on a disk               exit 3
    |-- EngineError       the engine never started, or answered what cannot be used       exit 3
    |-- DriverError       our own processes failed: generator, transport, recorder        exit 3
    `-- Interrupted       a person or the system asked us to stop

Each message names the setting, the rule, the value got and the way out; `Problem` is that, as data.
"""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Problem:
    """One thing wrong with what was asked: `setting` breaks `rule` with `got`; `way_out` is what to do next."""

    setting: str
    rule: str
    got: object
    way_out: str

    def __str__(self) -> str:
        return f"{self.setting}: {self.rule}; got {self.got!r}\n  try: {self.way_out}"


def near(word: object, names: Iterable[str]) -> str | None:
    """The name that was probably meant by a word, in whatever case it was written; None where none is like it."""
    by_lower = {name.lower(): name for name in names}
    found = difflib.get_close_matches(str(word).lower(), by_lower, 1)
    return by_lower[found[0]] if found else None


def nearest(word: object, choices: Sequence[str]) -> str:
    """What to propose in the place of a value that is none of the choices: the one meant, else the first."""
    return near(word, choices) or choices[0]


def rule_of(item: Mapping[str, Any]) -> str:
    """The rule that a value breaks, in our words, from one item of a pydantic `ValidationError.errors()`."""
    limits = item.get("ctx", {})
    for bound, says in (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below")):
        if bound in limits:
            limit = limits[bound]
            return f"must be {says} {f'{limit:g}' if isinstance(limit, float) else limit}"
    if "error" in limits:
        return str(limits["error"])
    if choices := choices_of(item):
        return f"must be one of {', '.join(choices)}"
    return _RULES.get(item["type"].partition("_")[0], "must be a value of another kind")


def choices_of(item: Mapping[str, Any]) -> tuple[str, ...]:
    """What a literal may be, out of the phrase that pydantic makes of it: `'a', 'b' or 'c'`."""
    return tuple(re.findall(r"'([^']*)'", str(item.get("ctx", {}).get("expected", ""))))


_RULES = {
    "int": "must be a whole number",
    "float": "must be a number",
    "finite": "must be a finite number",
    "bool": "must be true or false",
    "string": "must be a text",
    "missing": "must be given",
    "dict": "must be a table of settings",
    "model": "must be a table of settings",
    "tuple": "must be a list",
}
"""By the first word of pydantic's own type of error."""

FULL_IN_WORDS = "No space left on device"
"""What a system says of a full disk, and whoever passes that on."""


class StreamgaugeError(Exception):
    """The base of all errors raised on purpose; anything else that escapes is a defect of ours."""

    exit_code = 3
    folder = ""
    """The run folder that holds what is known, where one was made before."""


class InputError(StreamgaugeError, ValueError):
    """What was asked cannot be done as asked; holds every problem found, because nothing has been started yet."""

    exit_code = 2

    def __init__(self, problems: Problem | Sequence[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


def attempt(call: Callable[[], Any], problems: list[Problem]) -> Any:
    """What a call gives, or None where it is refused, with what is wrong added to the problems."""
    try:
        return call()
    except InputError as error:
        problems += error.problems
        return None


class ExpressionError(InputError):
    """An expression of a flow is wrong: position and the columns there are stand in the message."""


class JobError(InputError):
    """An own job cannot be run as its file stands; where its code raised, the way out shows the user's traceback."""


class SettingError(InputError):
    """A started engine does not know a setting, or refuses its value; nothing was measured."""


class MachineError(StreamgaugeError):
    """The machine lacks what is needed; the message says what and how to get it."""


class EngineError(StreamgaugeError):
    """The engine failed outside a measurement; `log` is the file with everything it said."""

    def __init__(self, message: str, log: str | None = None) -> None:
        super().__init__(message if log is None else f"{message}\n  whole log: {log}")
        self.log = log


class DriverError(StreamgaugeError):
    """A process of our own failed, so no figure of this run may be used; `disk_full` where that is why."""

    def __init__(self, message: str, disk_full: bool = False) -> None:
        super().__init__(message)
        self.disk_full = disk_full


class Interrupted(StreamgaugeError):
    """Someone asked the run to stop; what was measured is kept."""

    exit_code = 1


def is_full(error: BaseException) -> bool:
    """Whether an error says that a disk is full; DuckDB's has no number, and says it in words."""
    known = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or getattr(error, "disk_full", False)
    return known or FULL_IN_WORDS in str(error)
