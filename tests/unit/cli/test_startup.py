"""cli: start and help load nothing heavy, and help is complete and readable."""

import subprocess
import sys
from typing import Any

import pytest
from typer.main import get_command

from streamgauge.cli import app
from streamgauge.core.exit_codes import ExitCode
from tests.unit.cli.helpers_commands import command

HEAVY = ("pyspark", "prometheus_client", "pyarrow.flight", "altair", "vl_convert", "duckdb", "scipy")


def loaded_by(code: str) -> set[str]:
    """The heavy modules that a piece of code loads."""
    asking = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", asking], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()) & set(HEAVY)


def test_the_package_loads_nothing_heavy() -> None:
    """`import streamgauge` is for scripts that may not need an engine."""
    assert loaded_by("import streamgauge") == set()


def test_help_loads_nothing_heavy() -> None:
    """Help comes at once: neither an engine nor Flight nor a plotting library is loaded for it."""
    code = """
from streamgauge.cli import app
for words in (["--help"], *([name, "--help"] for name in ("run", "sustain", "compare", "characterize"))):
    sys.argv = ["streamgauge", *words]
    try:
        app.main()
    except SystemExit as stop:
        assert not stop.code
"""
    assert loaded_by(code) == set()


def test_the_check_for_heavy_modules_can_fail() -> None:
    """It sees what is loaded."""
    assert loaded_by("import pyarrow.flight") == {"pyarrow.flight"}


def helps() -> list[tuple[str, Any]]:
    """Every command by its words, the whole first."""
    group: Any = get_command(app.app)
    of_groups = [
        (f"{name} {inner}", each)
        for name, command in group.commands.items()
        for inner, each in getattr(command, "commands", {}).items()
    ]
    return [("", group), *group.commands.items(), *of_groups]


def help_of(name: str, command: Any) -> str:
    context = command.make_context(f"streamgauge {name}".strip(), [], resilient_parsing=True)
    context.terminal_width = context.max_content_width = 78  # what Click uses of 80 columns
    return str(command.get_help(context))


@pytest.mark.parametrize(("name", "command"), helps(), ids=[name or "all" for name, _ in helps()])
def test_help_is_readable_at_80_columns(name: str, command: Any) -> None:
    """No line is longer, and none is cut short with an ellipsis."""
    lines = help_of(name, command).splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line.endswith("...") and not line.startswith("Usage: ")]


@pytest.mark.parametrize(("name", "command"), helps()[1:], ids=[name for name, _ in helps()[1:]])
def test_help_shows_every_default(name: str, command: Any) -> None:
    """Of each option what happens where it is left out, or that it must be given; metavars name what is wanted."""
    options = [one for one in command.params if one.param_type_name == "option" and one.name != "help"]
    text = " ".join(help_of(name, command).split()).partition(" Options: ")[2]
    assert "<str>" not in text
    starts = [f" {text}".index(f" {option.opts[0]} ") for option in options]
    for option, start, end in zip(options, starts, [*starts, len(text)][1:], strict=True):
        mine = text[start:end]
        assert "[default: " in mine or "[required]" in mine, option.opts


def test_help_ends_with_the_exit_codes() -> None:
    """Each with its meaning."""
    (name, group), *_ = helps()
    text = " ".join(help_of(name, group).split()).partition("Exit codes: ")[2]
    assert text == " ".join(f"{code} {code.meaning}" for code in ExitCode)


def test_help_names_every_command() -> None:
    """What there is can be seen from the first page."""
    done = command("--help")
    assert done.returncode == 0
    for name in ("run", "sustain", "generate", "experiment", "workloads", "engines", "compare", "report"):
        assert name in done.stdout
