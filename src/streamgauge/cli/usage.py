"""Typed words that are no command, option or value, refused in the form of every other refusal."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from typer import TyperException
from typer.core import TyperCommand, TyperGroup

from streamgauge.config.experiment import SETTINGS
from streamgauge.config.named_files import is_own_file
from streamgauge.core.errors import InputError, Problem, near

_RATES, _CORES = ("--rate", "--of", "--start-rate", "--rates", "--loads"), ("--parallelism", "--resources")
FROM_ELSEWHERE: Mapping[str, tuple[str, ...]] = {
    "--profile": ("--load-shape",), "--memory": ("--queue-memory",), "--bound": ("--queue-limit",),
    "--rate": _RATES, "--vus": _RATES, "-u": _RATES, "--rps": _RATES, "-d": ("--duration",),
    "--conf": ("--option",), "--driver-memory": ("--option",), "--executor-memory": ("--option",),
    "--num-executors": _CORES, "--executor-cores": _CORES, "--total-executor-cores": _CORES, "--parallelism": _CORES,
    "-b": ("--bootstrap-servers",), "-X": ("--transport-option",),
}  # fmt: skip
"""Options of earlier versions, other commands and other tools (k6, kcat), with those here that do the same. The first
one that the command has is meant.
"""
WITHOUT_ONE = {"-t": "leave it out: a run makes its topics, and the file of a program names its own"}
"""Such options that have none here, with the way out."""


_TYPED = "streamgauge.typed"
"""Where a command's context has the words that the parser read, by the name of their parameter."""
NEAR = 0.7
"""Least similarity of an option that is suggested. That of `--rate` and `--master` is 0.6."""


class Command(TyperCommand):
    """A command that refuses all its unknown options at once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        with _as_refusals(ctx):
            parser = self.make_parser(ctx)
            parser.ignore_unknown_options = True
            values, left, _ = parser.parse_args(args=list(args))
            ctx.meta[_TYPED] = values
            arguments = [one.name for one in self.params if one.param_type_name == "argument"]
            typed = [given for name in arguments for given in _words(values.get(name))]
            words = [word for word in (*typed, *left) if isinstance(word, str)]
            if "--" not in args and (unknown := [word for word in words if word.startswith("-") and word != "-"]):
                raise InputError([_unknown_option(ctx, word.partition("=")[0]) for word in unknown], incomplete=True)
            if left:
                rule = f"must have no further word, and {len(left)} follow"
                way_out = f"quotes around a value with blanks, or {ctx.command_path} --help"
                raise InputError(Problem(ctx.command_path, rule, " ".join(left), way_out), incomplete=True)
            return super().parse_args(ctx, args)


def _words(given: Any) -> Sequence[Any]:
    """What an argument was given, which may take any number of words."""
    return given if isinstance(given, list | tuple) else (given,)


class CommandGroup(TyperGroup):
    """Commands; an unknown one is refused with the most similar one, and the list of all."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with _as_refusals(ctx) if args else nullcontext():  # without a word Typer shows the help, by an error too
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word, names = args[0], ", ".join(self.commands)
        if word not in self.commands:
            meant = f"run {word}" if is_own_file(word) and "run" in self.commands else near(word, self.commands)
            way_out = f"{ctx.command_path} {meant or '--help'}"
            raise InputError(Problem("COMMAND", f"must be one of {names}", word, way_out))
        return super().resolve_command(ctx, args)


@contextmanager
def _as_refusals(ctx: Any) -> Iterator[None]:
    """Turns Typer's errors into refusals."""
    try:
        yield
    except TyperException as error:
        raise InputError(_problem_of(ctx, error), incomplete=True) from None


def _problem_of(ctx: Any, error: Any) -> Problem:
    """The problem of an option as it is typed, or of a parameter whose value is missing or, of a number, wrong."""
    if flag := getattr(error, "option_name", ""):
        if not any(flag in one.opts for one in ctx.command.params):
            return _unknown_option(ctx, flag)
        rule = error.message.removeprefix(f"Option {flag!r} ").rstrip(".")
        return Problem(flag, rule, None, _example(ctx, flag))
    if error.param.param_type_name == "argument":
        words = [one.metavar for one in ctx.command.params if one.param_type_name == "argument"]
        return Problem(error.param.metavar, "must be given", None, " ".join([ctx.command_path, *words]))
    flag, got = error.param.opts[0], ctx.meta[_TYPED].get(error.param.name)
    return Problem(flag, "must be given" if got is None else "must be a whole number", got, _example(ctx, flag))


def _unknown_option(ctx: Any, word: str) -> Problem:
    """With the option that does the same, if the word is one of another tool, or the most similar one."""
    flags = {flag: one for one in ctx.command.params for flag in one.opts if one.param_type_name == "option"}
    by_name = {flag.lstrip("-"): flag for flag in flags}
    same = [flag for flag in FROM_ELSEWHERE.get(word, ()) if flag in flags]
    meant = _example(ctx, same[0]) if same else by_name.get(near(word.lstrip("-"), by_name, NEAR) or "")
    way_out = WITHOUT_ONE.get(word) or meant or f"{ctx.command_path} --help"
    return Problem(word, f"must be an option of {ctx.command_path}", word, way_out)


def _example(ctx: Any, flag: str) -> str:
    """An option with a value that it takes."""
    info = next((one for one in SETTINGS.values() if one.flag == flag and ctx.info_name in one.commands), None)
    parameter = next(one for one in ctx.command.params if flag in one.opts)
    value = "" if info is None or info.repeatable else info.example or info.default
    return f"{flag} {value or parameter.metavar}" if not getattr(parameter, "is_flag", False) else flag
