"""The exit codes of every command, with what each means, those of verdicts, and which of several is the worst.

`streamgauge --help` and the reference of the command line show this table.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum, unique
from typing import Self


@unique
class ExitCode(IntEnum):
    """How a command ended. A stop has the code that a shell gives to the signal, 128 + its number."""

    meaning: str

    def __new__(cls, value: int, meaning: str = "") -> Self:
        code = int.__new__(cls, value)
        code._value_, code.meaning = value, meaning
        return code

    HOLDS = 0, "the criterion holds: sustained, every gate passed, every item of the self-test holds; or there was none"
    FAILS = (
        1,
        "the criterion does not hold: not sustained, a gate or an item of the self-test failed, the engine or the "
        "program did not start, or no whole cluster runs",
    )
    REFUSAL = 2, "the request is refused: a command, setting, file or user job cannot be used. Nothing was measured"
    UNDECIDED = 3, "not known: the verdict is undecided, or a gate is unknown"
    INVALID = (
        4,
        "the figures must not be used: the driver failed, the machine disturbed a trial, or one side of a comparison "
        "is invalid or interrupted",
    )
    ENVIRONMENT = 5, "the environment lacks something: Java, jars, disk space, a limit that is high enough"
    DEFECT = 70, "a defect of streamgauge: the message says where to report it and where its traceback is"
    SIGHUP = 129, "stopped by SIGHUP, when a terminal closes. As after every stop, measured figures are kept"
    SIGINT = 130, "stopped by SIGINT, which is Ctrl-C"
    SIGTERM = 143, "stopped by SIGTERM, as by a time limit in CI"


VERDICT_CODES: Mapping[str, ExitCode] = {
    "sustained": ExitCode.HOLDS,
    "not_sustained": ExitCode.FAILS,
    "undecided": ExitCode.UNDECIDED,
    "invalid": ExitCode.INVALID,
    "interrupted": ExitCode.SIGINT,
}
"""By the value of a verdict."""
SEVERITY = (
    ExitCode.HOLDS,
    ExitCode.UNDECIDED,
    ExitCode.FAILS,
    ExitCode.INVALID,
    ExitCode.REFUSAL,
    ExitCode.ENVIRONMENT,
    ExitCode.DEFECT,
    ExitCode.SIGHUP,
    ExitCode.SIGINT,
    ExitCode.SIGTERM,
)
"""From best to worst. As in a verdict, a proven failure outranks what is undecided, figures that must not be used
outrank both, and a stop outranks everything."""


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The code of a command that has several results; `HOLDS` if it has none."""
    return max(codes, key=SEVERITY.index, default=ExitCode.HOLDS)
