"""Lines on a console, and refusals. It loads no result, so that a typing error is refused at once."""

import os
import sys
from collections.abc import Mapping
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from streamgauge.core.errors import InputError, JobError, SettingError
from streamgauge.core.formatting import format_value
from streamgauge.core.output import LossyStderr, silence


class AnswerConsole(Console):
    """A console on stdout. A reader of its pipe that has enough ends nothing, where Rich would end with 1."""

    def __init__(self) -> None:
        super().__init__(highlight=False, color_system=colors())

    def on_broken_pipe(self) -> None:
        silence(sys.stdout)
        self.quiet = True


def console() -> Console:
    """The console on stderr; a non-empty NO_COLOR turns colour and weight off."""
    stderr: Any = LossyStderr()  # Rich would end the running trial with a broken pipe (`2>&1 | head`)
    return Console(file=stderr, highlight=False, color_system=colors())


def colors() -> Literal["auto"] | None:
    return None if os.environ.get("NO_COLOR") else "auto"


def say(to: Console, *parts: tuple[str, str] | str) -> None:
    """Prints plain text, or (text, style). `[x]` is not markup, and the terminal wraps long lines."""
    to.print(Text.assemble(*parts), soft_wrap=True)


def show_refusal(error: InputError, on: Console | None = None, options: Mapping[str, str] | None = None) -> None:
    """Every problem with its way out, then whether anything was started or measured.

    `options`: setting to the name under which the user typed it, if that differs.
    """
    to = on or console()
    for problem in error.problems:
        setting = (options or {}).get(problem.setting, problem.setting)
        say(to, ("error: ", "bold red"), f"{setting}: {problem.rule}")
        say(to, f"  got: {format_value(problem.got)}")
        say(to, f"  try: {problem.way_out}")
    said = "nothing was measured" if isinstance(error, JobError | SettingError) else "nothing was started"
    said += "; more problems may follow once these are corrected" if error.incomplete else ""
    say(to, f"{said}; the engine's log is in {error.folder}" if error.folder else said)
