"""The commands' parameters for Typer, made from the settings that `config.options_and_settings` declares."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import Parameter
from typing import Annotated, Any

import typer

from streamgauge.config.options_and_settings import PROGRAM_DEFAULTS, SETTINGS
from streamgauge.config.setting_info import SettingInfo

AsJson = Annotated[bool, typer.Option("--json", help="print only the result object on stdout  [default: off]")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="show every check, not only the decisive ones  [default: off]")
]
PrintToml = Annotated[
    bool, typer.Option("--print-toml", help="print the experiment as a TOML file and stop  [default: off]")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="show how many trials and minutes it takes at most, and stop  [default: off]")
]
BROKERS = SettingInfo(
    "brokers", None, "addresses of your own brokers, for --transport kafka", "HOST:PORT,...", "--brokers",
    default_text="the run starts a broker",
)  # fmt: skip
"""Shorthand for `--transport-option brokers=...`."""


def parameters_of(command: str, workload_from: str, verbose: bool, dry_run: bool) -> Iterator[Parameter]:
    """The parameters of a command, for Typer: its context, then its arguments and options.

    Order of those: the workload, required options, the command's own settings, the load, the rest.
    `workload_from`: the setting that names a run folder; with it the workload is optional.
    """
    yield _parameter("context", typer.Context, Parameter.empty)
    yield _workload(workload_from)
    settings = [info.in_command(command) for info in SETTINGS.values() if command in info.commands]
    for info in sorted(settings, key=lambda info: (not info.required, "." not in info.name)):
        if info.name == "transport_options":
            yield _option(BROKERS)
        yield _option(info)
    if dry_run:
        yield _parameter("dry_run", DryRun, False)
    yield _parameter("json_", AsJson, False)
    if verbose:
        yield _parameter("verbose", Verbose, False)
    yield _parameter("print_toml", PrintToml, False)


def is_typed(context: typer.Context, setting: str) -> bool:
    """Whether the command line has the option of a setting, which may give its default."""
    source = context.get_parameter_source(_parameter_name(setting))
    return source is not None and source.name == "COMMANDLINE"


def _workload(workload_from: str) -> Parameter:
    help_ = "name of a workload (streamgauge workloads lists them), FILE.py of a user job, or FILE.toml of a program"
    if workload_from:
        flag = SETTINGS[workload_from].flag
        help_ = f"name of a workload, FILE.py of a user job, or FILE.toml of a program; not with {flag}"
    annotation = Annotated[str, typer.Argument(metavar="WORKLOAD", help=help_)]
    return _parameter("workload", annotation, "" if workload_from else Parameter.empty)


def _option(info: SettingInfo) -> Parameter:
    default: Any = Parameter.empty if info.required else info.default or (False if info.is_switch else None)
    text = "off" if info.is_switch else info.default_text
    if info.name in PROGRAM_DEFAULTS:  # the experiment fills it in, because a program has another one
        default, text = None, f"{info.default}; {PROGRAM_DEFAULTS[info.name]} for FILE.toml"
    help_ = f"{info.help}  [default: {text}]" if text else info.help
    type_: Any = bool if info.is_switch else list[str] | None if info.repeatable else str | None
    option = typer.Option(info.flag, metavar=info.metavar or None, help=help_)
    return _parameter(_parameter_name(info.name), Annotated[type_, option], default)


def _parameter_name(setting: str) -> str:
    return setting.replace(".", "__")


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
