"""Options and arguments of the commands, made from the metadata of the settings."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import Parameter
from typing import Annotated, Any

import typer

from streamgauge.config.experiment import SETTINGS
from streamgauge.config.settings import SettingInfo

AsJson = Annotated[bool, typer.Option("--json", help="the result object on stdout, nothing else there  [default: off]")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="every check, not only those that matter  [default: off]")
]
PrintToml = Annotated[
    bool, typer.Option("--print-toml", help="show the experiment as a file, and stop  [default: off]")
]
BROKERS = SettingInfo(
    "brokers", None, "of --transport kafka: your own", "HOST:PORT,...", "--brokers",
    default_text="one is started for the run",
)  # fmt: skip
"""Shorthand for `--transport-option brokers=...`."""


def parameters_of(command: str, workload_from: str, verbose: bool) -> Iterator[Parameter]:
    """What Typer makes the arguments and options of a command from.

    The order: the workload, what is required, the command's own settings, the load, the rest.
    `workload_from`: the setting that names a run folder; with it the workload may be left out.
    """
    yield _workload(workload_from)
    there = [info.in_command(command) for info in SETTINGS.values() if command in info.commands]
    for info in sorted(there, key=lambda info: (not info.required, "." not in info.name)):
        if info.name == "transport_options":
            yield _option(BROKERS)
        yield _option(info)
    yield _parameter("json_", AsJson, False)
    if verbose:
        yield _parameter("verbose", Verbose, False)
    yield _parameter("print_toml", PrintToml, False)


def _workload(workload_from: str) -> Parameter:
    help_ = "a workload's name (streamgauge workloads lists them), or FILE.py: an own job"
    if workload_from:
        help_ = f"a workload's name, or FILE.py (left out with {SETTINGS[workload_from].flag})"
    kind = Annotated[str, typer.Argument(metavar="WORKLOAD", help=help_)]
    return _parameter("workload", kind, "" if workload_from else Parameter.empty)


def _option(info: SettingInfo) -> Parameter:
    default: Any = Parameter.empty if info.required else info.default or (False if info.is_switch else None)
    text = "off" if info.is_switch else info.default_text
    help_ = f"{info.help}  [default: {text}]" if text else info.help
    shape: Any = bool if info.is_switch else list[str] | None if info.repeatable else str | None
    option = typer.Option(info.flag, metavar=info.metavar or None, help=help_)
    return _parameter(info.name.replace(".", "__"), Annotated[shape, option], default)


def _parameter(name: str, kind: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
