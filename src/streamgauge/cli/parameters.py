"""The commands' parameters for Typer, made from the declared settings, and the experiment that their values build."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import typer

from streamgauge.cli.help import completion, engine_names, group_order, transport_names, workload_names
from streamgauge.config.experiment import PROGRAM_DEFAULTS, SETTINGS, Experiment, build
from streamgauge.config.experiment_file import read
from streamgauge.config.setting_info import NAME_VALUE, SettingInfo
from streamgauge.core.errors import InputError, Problem, Rule, attempt, first_broken, refuse, require

AsJson = Annotated[bool, typer.Option("--json", help="print only the result object on stdout  [default: off]")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="show no progress, only the result and errors  [default: off]")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="show every check, not only the decisive ones  [default: off]")
]
PrintToml = Annotated[
    bool, typer.Option("--print-toml", help="print the experiment as a TOML file and stop  [default: off]")
]
DryRun = Annotated[
    bool, typer.Option(
        "--dry-run", help="make all checks, show what would be started and how long it takes, and stop  [default: off]"
    )
]  # fmt: skip
BROKERS = SettingInfo(
    "brokers", None, "addresses of your own brokers, for --transport kafka", "HOST:PORT,HOST:PORT",
    "--bootstrap-servers", default_text="the run starts a broker", group="Transport",
)  # fmt: skip
"""Shorthand for `--transport-option brokers=...`."""
BROKERS_TOO = "--brokers"
"""The other name of its option."""


def parameters_of(command: str, workload_from: str, verbose: bool, dry_run: bool) -> Iterator[Parameter]:
    """The parameters of a command, for Typer: its arguments, then its options.

    Options stand in the order of their groups; within a group, those without which the command cannot start are first.
    `workload_from`: the setting that names a run folder; with it the workload is optional.
    """
    yield _workload(command, workload_from)
    settings = [info.in_command(command) for info in SETTINGS.values() if command in info.commands]
    for info in sorted(settings, key=lambda info: (group_order(info.group), not info.required)):
        if info.name == "transport_options":
            yield _option(command, BROKERS, BROKERS_TOO)
        yield _option(command, info)
    if dry_run:
        yield _parameter("dry_run", DryRun, False)
    yield _parameter("json_", AsJson, False)
    yield _parameter("quiet", Quiet, False)
    if verbose:
        yield _parameter("verbose", Verbose, False)
    yield _parameter("print_toml", PrintToml, False)


_FILES = {"anatomy": "", "characterize": ", or FILE.py of a user job"}
"""What a command takes beside the name of a workload, if not everything."""


def _workload(command: str, workload_from: str) -> Parameter:
    files = _FILES.get(command, ", FILE.py of a user job, or FILE.toml of a program")
    help_ = f"name of a workload (streamgauge workloads lists them){files}"
    if workload_from:
        flag = SETTINGS[workload_from].flag
        help_ = f"name of a workload, FILE.py of a user job, or FILE.toml of a program; not with {flag}"
    argument = typer.Argument(metavar="WORKLOAD", help=help_, autocompletion=completion(workload_names))
    annotation = Annotated[str, argument]
    return _parameter("workload", annotation, "" if workload_from else Parameter.empty)


_COMPLETIONS = {"engine": completion(engine_names), "transport": completion(transport_names)}


def _option(command: str, info: SettingInfo, *other_flags: str) -> Parameter:
    default: Any = Parameter.empty if info.required else False if info.is_switch else info.default or None
    text = "off" if info.is_switch else info.default_text
    # The experiment fills these in: a program has other defaults, and what is typed may be the default.
    if info.name in (*PROGRAM_DEFAULTS, "load.rate", "load.duration"):
        default, text = None, info.default_text or info.default
    if info.name in PROGRAM_DEFAULTS and command not in _FILES:
        text += f"; {PROGRAM_DEFAULTS[info.name]} for FILE.toml"
    help_ = f"{info.help}  [default: {text}]" if text else info.help
    type_: Any = bool if info.is_switch else list[str] | None if info.repeatable else str | None
    option = typer.Option(
        info.flag, *other_flags, metavar=info.metavar or None, help=help_, rich_help_panel=info.group,
        autocompletion=_COMPLETIONS.get(info.name),
    )  # fmt: skip
    return _parameter(_parameter_name(info.name), Annotated[type_, option], default)


def _parameter_name(setting: str) -> str:
    return setting.replace(".", "__")


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def pairs(flag: str, given: list[str] | None) -> dict[str, str]:
    """Parses NAME=VALUE texts. Raises InputError on a repeated name, which would hide a value."""
    problems: list[Problem] = []
    pairs: dict[str, str] = {}
    for text in given or []:
        before, equals, value = text.partition("=")
        key = before.strip()
        repeated = f"must give each name once; {key} already has {pairs.get(key)!r}"
        problems += first_broken(
            Rule(equals and key, flag, "must be NAME=VALUE", text, f"{flag} {key or 'name'}=value"),
            Rule(key not in pairs, flag, repeated, text, f"only {flag} {text}"),
        )
        pairs.setdefault(key, value)
    refuse(problems)
    return pairs


def build_experiment(command: str, workload: str, words: Mapping[str, Any], workload_from: str = "") -> Experiment:
    """The experiment of a command.

    `words`: the typed values by setting name, with `__` for the dot. `workload_from`: the setting whose run folder
    gives the workload if the command line does not name one.
    """
    values: dict[str, Any] = {"command": command, "workload": ""}
    problems: list[Problem] = []
    run = words.get(workload_from.replace(".", "__")) or ""
    if (name := attempt(lambda: workload or _workload_of(run, workload_from), problems)) is not None:
        values["workload"] = name
    typed = {name: given for name, given in words.items() if name != "brokers"}
    if (brokers := words.get("brokers")) is not None:
        typed["transport_options"] = [*(typed["transport_options"] or ()), f"brokers={brokers}"]
    for name, given in typed.items():
        section, _, key = name.rpartition("__")
        info = SETTINGS[name.replace("__", ".")]
        value = attempt(partial(pairs, info.flag, given), problems) if info.metavar == NAME_VALUE else given
        if info.default is True:  # an option that turns it off
            value = not given
        if value is not None:
            (values.setdefault(section, {}) if section else values)[key] = value
    return built(values, problems)


def built(values: dict[str, Any], problems: Sequence[Problem] = ()) -> Experiment:
    """The experiment of plain values. `problems`: those known already, which the values no longer have.

    Raises:
        InputError: with all problems, if there are any of these, or values cannot be built.
    """
    known = list(problems)
    experiment = attempt(partial(build, values), known)
    if known:
        from streamgauge.preflight.settings_checks import further_problems

        raise InputError([*known, *further_problems(values, known)], incomplete=True)
    assert isinstance(experiment, Experiment)
    return experiment


def _workload_of(run: str, setting: str) -> str:
    """The workload that the experiment of a run folder, or of a study's, names, which `setting` gave."""
    require(run, "workload", "must be given", "", "streamgauge workloads lists them")
    from streamgauge.artifacts.run_folder import MATRIX, SCALE, RunFolder

    if any((Path(run) / file).is_file() for file in (MATRIX, SCALE)):
        return read(Path(run) / "experiment.toml").workload

    try:
        result = RunFolder.open(run).read_result()
    except InputError as error:
        raise InputError([replace(problem, setting=setting) for problem in error.problems]) from None
    return str(result.experiment.get("workload", result.workload))
