"""Every error that streamgauge raises on purpose.

    StreamgaugeError
    |-- InputError        the request is invalid (also a ValueError)
    |   |-- ExpressionError   an invalid expression in a flow
    |   |-- JobError          a user job that cannot be run
    |   `-- SettingError      a setting that a started engine does not know or refuses
    |-- MachineError      this machine lacks something: Java, disk space
    |-- EngineError       the engine did not start, or its results cannot be used
    |-- DriverError       a driver process failed: generator, transport, recorder
    `-- Interrupted       a person or the system stopped the run

Each has an exit code (`core.exit_codes`). Each message names the setting, the rule, the value and the way out;
`Problem` holds them as data.
"""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from streamgauge.core.exit_codes import ExitCode, worst

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic.fields import FieldInfo


@dataclass(frozen=True)
class Problem:
    """One problem of a request: `setting` breaks `rule` with the value `got`; `way_out` is what to do next.

    `code`: how a command with this problem alone ends.
    """

    setting: str
    rule: str
    got: object
    way_out: str
    code: ExitCode = ExitCode.REFUSAL

    def __str__(self) -> str:
        return f"{self.setting}: {self.rule}; got {self.got!r}\n  try: {self.way_out}"


def near(word: object, names: Iterable[str], least: float = 0.6) -> str | None:
    """The name most similar to a word, ignoring case; None if none is. `least`: similarity, as difflib's ratio."""
    by_lower, lower = {name.lower(): name for name in names}, str(word).lower()
    found = [lower] if lower in by_lower else difflib.get_close_matches(lower, by_lower, 1, least)
    return by_lower[found[0]] if found else None


def nearest(word: object, choices: Sequence[str]) -> str:
    """The choice to suggest instead of an invalid value: the most similar one, else the first."""
    return near(word, choices) or choices[0]


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
    "list": "must be a list",
}
"""Keyed by the first word of pydantic's error type."""
_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
_MISSING = ("missing", "union_tag_not_found")
_LENGTHS = {"too_short": ("at least", "min_length"), "too_long": ("at most", "max_length")}


@dataclass(frozen=True)
class Fault:
    """One item of a pydantic `ValidationError`, from which each kind of file or option makes its own `Problem`."""

    kind: str
    location: tuple[int | str, ...]
    got: Any
    context: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The location as a dotted name."""
        return ".".join(map(str, self.location))

    @property
    def is_unknown(self) -> bool:
        """Whether the value has a name that the model does not have."""
        return self.kind == "extra_forbidden"

    @property
    def inner(self) -> tuple[Problem, ...]:
        """The problems of the `InputError` that one of our validators raised; empty if pydantic refused the value."""
        error = self.context.get("error")
        return error.problems if isinstance(error, InputError) else ()

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed values of a literal, parsed from pydantic's text `'a', 'b' or 'c'`."""
        return tuple(re.findall(r"'([^']*)'", str(self.context.get("expected", ""))))

    @property
    def rule(self) -> str:
        """The broken rule as text."""
        limits = [
            f"{says} {f'{limit:g}' if isinstance(limit, float) else limit}"
            for bound, says in _BOUNDS.items()
            if (limit := self.context.get(bound)) is not None
        ]
        if limits:
            return f"must be {' and '.join(limits)}"
        if self.kind in _LENGTHS:
            says, bound = _LENGTHS[self.kind]
            number = self.context[bound]
            return f"must have {says} {number} {'entry' if number == 1 else 'entries'}"
        if "error" in self.context:
            return str(self.context["error"])
        if self.choices:
            return f"must be one of {', '.join(self.choices)}"
        return _RULES.get(self.kind.partition("_")[0], "must be a value of another kind")


def faults_of(error: ValidationError, fields: Mapping[str, FieldInfo] | None = None) -> list[Fault]:
    """The faults that pydantic found, in its order. With `fields` of the model, a rule names both bounds."""
    return [_fault(item, fields or {}) for item in error.errors()]


def _fault(item: Mapping[str, Any], fields: Mapping[str, FieldInfo]) -> Fault:
    location, context = item["loc"], item.get("ctx", {})
    if not _BOUNDS.keys().isdisjoint(context) and (field := fields.get(location[0])) is not None:
        context = {bound: getattr(mark, bound) for mark in field.metadata for bound in _BOUNDS if hasattr(mark, bound)}
    return Fault(item["type"], location, context.get("tag", item["input"]), context)


def problems_of(
    faults: Iterable[Fault],
    setting: Callable[[Fault], str],
    unknown: Callable[[Fault], tuple[str, str]],
    way_out: Callable[[Fault, str], str],
    rules: Mapping[str, str] | None = None,
) -> list[Problem]:
    """The faults in words. What differs between kinds of files and options is passed in.

    - `setting`: the name of the setting.
    - `unknown`: rule and way out of a setting that does not exist.
    - `way_out`: what to do next; its second argument is what the validator of the value offers, or empty.
    - `rules`: other rules than those of `Fault.rule`, by kind of fault.
    """
    problems: list[Problem] = []
    for fault in faults:
        name, got, rule = setting(fault), fault.got, (rules or {}).get(fault.kind) or fault.rule
        if fault.inner:
            problems += (
                replace(one, setting=name or one.setting, way_out=way_out(fault, one.way_out)) for one in fault.inner
            )
        elif fault.is_unknown:
            got = f"a table of {', '.join(got)}" if got and isinstance(got, dict) else got
            rule, todo = unknown(fault)
            problems.append(Problem(name, rule, got, todo))
        else:
            problems.append(Problem(name, rule, None if fault.kind in _MISSING else got, way_out(fault, "")))
    return problems


FULL_IN_WORDS = "No space left on device"
"""The system's message for a full disk, which libraries pass on."""


class StreamgaugeError(Exception):
    """The base of all deliberate errors. Any other exception is a defect of streamgauge."""

    exit_code: ExitCode
    folder = ""
    """The run folder, if one was created before the error."""


class InputError(StreamgaugeError, ValueError):
    """The request is invalid. Has every problem, because validation comes before the start.

    `incomplete`: whether some checks need a setting that is refused, so that more problems may follow.
    """

    exit_code = ExitCode.REFUSAL

    def __init__(self, problems: Problem | Sequence[Problem], incomplete: bool = False) -> None:
        self.incomplete = incomplete
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        self.exit_code = worst(problem.code for problem in self.problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class Rule(NamedTuple):
    """A rule with the value that it is about, and whether it `holds`. Its words must be makeable in both cases."""

    holds: object
    setting: str
    rule: str
    got: object
    way_out: str


def broken(*rules: Rule) -> list[Problem]:
    """A problem for each rule that does not hold."""
    return [Problem(one.setting, one.rule, one.got, one.way_out) for one in rules if not one.holds]


def first(rules: Iterable[Rule]) -> list[Rule]:
    """The first broken rule, for rules that presume those before them."""
    return list(islice((rule for rule in rules if not rule.holds), 1))


def first_broken(*rules: Rule) -> list[Problem]:
    """The problem of the first rule that does not hold."""
    return broken(*first(rules))


def in_file(file: str, rules: Iterable[Rule]) -> Iterator[Rule]:
    """Rules whose settings stand in a file of this name."""
    return (rule._replace(setting=f"{file}: {rule.setting}") for rule in rules)


def require(holds: object, setting: str, rule: str, got: object, way_out: str) -> None:
    """Raises InputError with this one problem unless `holds` is true."""
    refuse(broken(Rule(holds, setting, rule, got, way_out)))


def require_all(*rules: Rule) -> None:
    """Raises one InputError with every broken rule."""
    refuse(broken(*rules))


def refuse(problems: Sequence[Problem], error: type[InputError] = InputError, incomplete: bool = False) -> None:
    """Raises one error with all problems, if there are any."""
    if problems:
        raise error(problems, incomplete)


@contextmanager
def collected(problems: list[Problem]) -> Iterator[None]:
    """Ends the block at an InputError, and adds its problems to `problems`."""
    try:
        yield
    except InputError as error:
        problems += error.problems


def attempt(call: Callable[[], Any], problems: list[Problem]) -> Any:
    """The result of a call; if it raises InputError, None, and its problems are added to `problems`."""
    with collected(problems):
        return call()
    return None


class ExpressionError(InputError):
    """An invalid expression in a flow. The message has the position and the available columns."""


class JobError(InputError):
    """A user job cannot be run. If its code raised, the way out shows the user's traceback."""


class SettingError(InputError):
    """A started engine does not know a setting or refuses its value. Nothing was measured."""


class MachineError(StreamgaugeError):
    """The machine lacks something. The message says what, and how to get it."""

    exit_code = ExitCode.ENVIRONMENT


class MissingOnMachine(InputError, MachineError):
    """What the machine lacks, as problems in the form of refused settings. It was looked for before a start."""

    def __init__(self, problems: Problem | Sequence[Problem], incomplete: bool = False) -> None:
        each = (problems,) if isinstance(problems, Problem) else problems
        super().__init__([replace(one, code=ExitCode.ENVIRONMENT) for one in each], incomplete)


class EngineError(StreamgaugeError):
    """The engine failed outside a measurement; `log` is the file with its whole output."""

    exit_code = ExitCode.FAILS

    def __init__(self, message: str, log: str | None = None) -> None:
        super().__init__(message if log is None else f"{message}\n  whole log: {log}")
        self.log = log


class DriverError(StreamgaugeError):
    """A driver process failed, so no figure of this run may be used. `disk_full`: whether a full disk is the cause."""

    exit_code = ExitCode.INVALID

    def __init__(self, message: str, disk_full: bool = False) -> None:
        super().__init__(message)
        self.disk_full = disk_full


class Interrupted(StreamgaugeError):
    """The run was stopped. Measurements so far are kept."""

    exit_code = ExitCode.SIGINT


def is_full(error: BaseException) -> bool:
    """Whether an error means a full disk. DuckDB's error has no errno, only a text."""
    return (
        getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        or getattr(error, "disk_full", False)
        or FULL_IN_WORDS in str(error)
    )
