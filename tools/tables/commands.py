"""Tables of the command line: commands, keys of an experiment, exit codes, checks, metrics; and of the packages."""

from __future__ import annotations

import ast
import runpy
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import typer

import streamgauge
from streamgauge.cli.app import app
from streamgauge.config.experiment import SETTINGS, Experiment
from streamgauge.config.file_schema import experiment_schema
from streamgauge.config.limits import BATCHES_MIN, BOUND_S_MIN, WINDOWS_MIN
from streamgauge.core.exit_codes import SEVERITY, ExitCode
from streamgauge.harness.recorder_process import STILL_US_MIN
from streamgauge.results import codes
from streamgauge.studies.run.prometheus import METRICS
from streamgauge.verdict import driver_check as d
from streamgauge.verdict.trend_checks import BACKLOG_SLOPE_SHARE_MAX, OUTPUT_SLOPE_MAX
from streamgauge.verdict.verdict import CHECKS
from tables.markdown import DOCS, code, described, table


def makers() -> dict[str, Callable[[], str]]:
    return {
        "packages": packages,
        "commands": command_list,
        "shared options": shared_options,
        "exit codes": exit_codes,
        "experiment parts": experiment_parts,
        "experiment keys": experiment_keys,
        "checks": check_list,
        "metrics": metrics,
        "causes": partial(codes_of, "Cause"),
        "warning codes": partial(codes_of, "WarningCode"),
        "search ends": partial(codes_of, "SearchEnd"),
    }


def packages() -> str:
    """Every package with its purpose, in the order of `tests/test_layers.py`, lowest first."""
    source = Path(streamgauge.__file__).parent
    layers: Mapping[str, str] = runpy.run_path(str(DOCS.parent / "tests" / "test_layers.py"))["MAY_IMPORT"]
    rows = []
    for name in (name for name in layers if "." not in name and (source / name).is_dir()):
        purpose = ast.get_docstring(ast.parse((source / name / "__init__.py").read_text())) or ""
        rows.append((code(name), " ".join(purpose.split())))
    return described(rows)


@cache
def commands() -> dict[str, Any]:
    """Command name to the parsed command, in the order of the help. A command of a group has both names."""
    group: Any = typer.main.get_command(app)
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        found[name] = command
        found |= {f"{name} {inner}": each for inner, each in getattr(command, "commands", {}).items()}
    return found


Row = tuple[str, str, str]
"""An argument or option of a command, its default and its meaning."""


def rows_of_commands() -> dict[str, list[Row]]:
    """The arguments and options of each command."""
    single = {name: command for name, command in commands().items() if not hasattr(command, "commands")}
    return {name: [_parameter(p) for p in command.params if p.name != "help"] for name, command in single.items()}


def is_shared(rows: Mapping[str, Sequence[Row]], option: str, meaning: str) -> bool:
    """Whether several commands have the option with this meaning."""
    return sum((option, meaning) in {(one, text) for one, _, text in each} for each in rows.values()) > 1


def shared_options() -> str:
    """The options that several commands take with one meaning, each once; a default that differs names its command."""
    rows = rows_of_commands()
    takers: dict[tuple[str, str], dict[str, str]] = {}
    for name, each in rows.items():
        for option, default, meaning in each:
            if option.startswith("`--") and is_shared(rows, option, meaning):
                takers.setdefault((option, meaning), {})[name] = default
    groups: dict[str, list[tuple[str, str]]] = {}
    for (option, meaning), defaults in takers.items():
        groups.setdefault(_takers(defaults, rows), []).append((_with_default(option, _defaults(defaults)), meaning))
    return "\n\n".join(f"{names}:\n\n{described(each)}" for names, each in groups.items())


def _defaults(defaults: Mapping[str, str]) -> str:
    usual = next(iter(defaults.values()))
    rest = (f"; {command}: {value}" for command, value in defaults.items() if value != usual)
    return usual + "".join(rest)


def _takers(takers: Collection[str], commands: Collection[str]) -> str:
    """The commands that take an option, or those that do not, whichever are fewer."""
    others = [name for name in commands if name not in takers]
    return ", ".join(takers) if len(takers) <= len(others) + 1 else f"all but {', '.join(others)}"


def command_list() -> str:
    rows = rows_of_commands()
    return "\n\n".join(_command(name, rows) for name in rows)


def _command(name: str, rows: Mapping[str, Sequence[Row]]) -> str:
    """The section of a command: what it does, its arguments, and the options that are its own."""
    own = [row for row in rows[name] if not (row[0].startswith("`--") and is_shared(rows, row[0], row[2]))]
    parts = [f"### {name}", commands()[name].help]
    if own:
        parts.append(described((_with_default(option, default), meaning) for option, default, meaning in own))
    return "\n\n".join(parts)


def _with_default(option: str, default: str) -> str:
    return option if default == "-" else f"{option} ({default})"


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    return str(name) if parameter.required else f"[{name}]"


def _parameter(parameter: Any) -> tuple[str, str, str]:
    name = _argument(parameter) if parameter.param_type_name == "argument" else ", ".join(parameter.opts)
    meaning, _, said = (parameter.help or "").partition("  [default: ")
    unset = parameter.required or parameter.default in (None, "", False)
    return code(name), said.removesuffix("]") or ("-" if unset else code(parameter.default)), meaning


def exit_codes() -> str:
    """Every exit code with what it means, and which of several wins."""
    order = ", ".join(map(str, SEVERITY))
    rows = table(("exit code", "what happened"), [(str(code), code.meaning) for code in ExitCode])
    return f"{rows}\n\nA command with several results ends with the worst. From best to worst: {order}."


def experiment_parts() -> str:
    """The keys and sections of an experiment file that have no option, as its JSON Schema has them."""
    schema = experiment_schema()
    parts, top = schema["$defs"], {name: schema["properties"][name] for name in Experiment.model_fields}
    own = {
        f"{part.lower()}.{name}": one
        for part in ("Matrix", "Paper", "Quick")
        for name, one in parts[part]["properties"].items()
        if "description" in one
    }
    rows = []
    for name, value in {**top, **own}.items():
        if name not in SETTINGS:
            part = parts[value["$ref"].rpartition("/")[2]] if "$ref" in value else value
            choices = f": {', '.join(map(code, part['enum']))}" if "enum" in part else ""
            default = code(part["default"]) if "default" in part else "-"
            rows.append((_with_default(code(name), default), " ".join(part["description"].split()) + choices))
    return described(rows)


def experiment_keys() -> str:
    """Every key of an experiment file that has an option on the command line, by the settings themselves."""
    return described((code(name), code(info.flag)) for name, info in SETTINGS.items())


def metrics() -> str:
    """Every metric for Prometheus."""
    rows = [
        (
            code(f"streamgauge_{info.name}{'_total' * (info.kind == 'counter')}"),
            ", ".join(map(code, info.labels)),
            info.text,
        )
        for info in METRICS
    ]
    return table(("metric", "labels", "value"), rows)


def check_list() -> str:
    """The checks of a verdict with the limits that stand there."""
    rows = {
        "driver": (
            f"in every second at least {d.PLAN_SHARE_MIN:.0%} of the plan was offered in time; schedule delay p99 is "
            f"at most {d.SCHEDULE_DELAY_US_MAX / 1000:.0f} ms or {d.DELAY_SHARE_OF_LATENCY:.0%} of the event-time p50 "
            "(where no latencies are known, of how far the output is behind, median), whichever is larger; "
            f"no driver process waited longer than {d.CORE_WAIT_US_MAX / 1000:.0f} ms for a core, on average "
            "each time it was ready; no latency is negative; generators delivered events, the recorder worked on "
            f"results, and it wrote them to its disk each for at most {d.BUSY_SHARE_MAX:.0%} of the span, "
            f"{d.BUSY_SHARE_MAX_IF_SLOW:.0%} where the system was not seen to keep up; the recorder stood still "
            f"for at most {d.STALL_SHARE_MAX:.0%} of the span, not counting the first {STILL_US_MIN / 1000:.0f} ms of "
            "each time",
            "invalid",
        ),
        "connected": (
            "no process of the SUT died; in the span no read was cut off before it was taken whole (a job of your own "
            "may), and no task was retried; something shows how far a program has read",
            "not sustained; invalid if nothing shows how far a program has read",
        ),
        "backlog_trend": (
            f"the slope of the backlog is at most {BACKLOG_SLOPE_SHARE_MAX:.0%} of the rate",
            "not sustained",
        ),
        "output_trend": (
            f"planned time - output frontier grows by at most {OUTPUT_SLOPE_MAX:g} s per second; batches that seem "
            "to get longer would not fill their interval in one more span",
            "not sustained",
        ),
        "latency_trend": (
            "nothing shows that the results' latency, from the delivery of their last event, grows by more than "
            f"{OUTPUT_SLOPE_MAX:g} s per second",
            "not sustained",
        ),
        "queue_bound": (
            "the backlog stayed below the queue's bound; where memory cuts the bound below "
            f"{BOUND_S_MIN:.0f} s of the rate, or was full by what is in flight or kept for a repeat while less than "
            "that waited, the trial is invalid",
            "not sustained, or invalid",
        ),
        "answers": (
            "0 rows are missing, extra, duplicate, wrong or late; where nothing was judged, undecided. At least once "
            "allows equal duplicates after a restart, or of a program",
            "not sustained, or undecided",
        ),
        "evidence": (
            f"at least {BATCHES_MIN} batches, and for windowed flows {WINDOWS_MIN} windows closed; no backlog of "
            "the start drained within the span",
            "undecided",
        ),
    }
    return table(("check", "holds when", "else"), [(code(spec.name), *rows[spec.name]) for spec in CHECKS])


def codes_of(name: str) -> str:
    """The codes of an enumeration of `results.codes`, each with what it means."""
    return described((code(one), one.meaning) for one in getattr(codes, name))
