"""cli: start and help load nothing heavy, and help is complete and readable."""

import os
import re
import subprocess
import sys
from typing import Any

import pytest
from typer.main import get_command

from streamgauge import __version__
from streamgauge.cli import app
from streamgauge.cli.help import GROUPS
from streamgauge.core.exit_codes import ExitCode
from tests.unit.cli.helpers_commands import Invoke

HEAVY = ("pyspark", "prometheus_client", "pyarrow.flight", "altair", "vl_convert", "duckdb", "scipy", "pandas")


HELP = """
from streamgauge.cli import app
for words in (["--help"], *([name, "--help"] for name in ("run", "sustain", "compare", "characterize"))):
    sys.argv = ["streamgauge", *words]
    try:
        app.main()
    except SystemExit as stop:
        assert not stop.code
"""

TYPING_ERRORS = """
import sys
from streamgauge.cli import app
for words, without in (
    (["--rat", "5k"], "streamgauge.report.document_blocks"), (["--engine", "sparc"], "streamgauge.trial.conductor"),
    (["idenity"], "streamgauge.trial.conductor"),
):
    sys.argv = ["streamgauge", "run", *(words if len(words) == 1 else ["identity", *words])]
    try:
        app.main()
    except SystemExit as stop:
        assert stop.code == 2
    assert without not in sys.modules
"""

BEGUN = """
import sys
from streamgauge.cli import app, commands
commands.print_progress = sys.exit
sys.argv = ["streamgauge", "run", "identity"]
try:
    app.main()
except SystemExit as stop:
    assert stop.code == "checking the request"
"""


@pytest.mark.parametrize(("code", "heavy"), [
    ("import streamgauge", set()), (HELP, set()), (BEGUN, set()), (TYPING_ERRORS, set()),
    ("from streamgauge.workloads.registry import names\nnames()", set()),  # every command that names one loads all
    ("import pyarrow.flight", {"pyarrow.flight"}),
], ids=["package", "help", "first line", "typing errors", "workloads", "heavy"])  # fmt: skip
def test_nothing_heavy_is_loaded(code: str, heavy: set[str]) -> None:
    """By scripts that may not need an engine, and before help, a run's first line and refusals, which come at once."""
    asking = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", asking], capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()) & set(HEAVY) == heavy


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
    entries = re.split(r"^  (?=-)", help_of(name, command), flags=re.MULTILINE)[1:]
    assert entries.pop().startswith("--help")
    assert len(entries) == len(options)
    for entry in entries:
        assert "<str>" not in entry
        assert "[default:" in entry or "[required]" in entry


def test_options_stand_in_groups() -> None:
    """A command's own group comes first; each option stands below the heading of its group."""
    by_name = dict(helps())
    for name, own in (("run", []), ("sustain", ["Search"]), ("generate", []), ("anatomy", ["Anatomy"])):
        text = help_of(name, by_name[name])
        headings = re.findall(r"^(\w+):$", text, re.MULTILINE)
        shared = [group for group in GROUPS if name in ("run", "sustain") or group != "Verdict"]
        assert headings == ["Arguments", *own, *shared]
    engine, transport = text.index("\nEngine:"), text.index("\nTransport:")
    assert engine < text.index(" --tuning ") < transport < text.index(" --partitions ")


def test_help_has_only_options_that_the_command_takes() -> None:
    """An input that is only written meets neither a broker nor a cluster, and an anatomy takes no program."""
    by_name = dict(helps())
    generate = help_of("generate", by_name["generate"])
    assert [option for option in ("--brokers", "--transport-option", "--master", "--limit") if option in generate] == []
    assert "FILE.toml" not in help_of("anatomy", by_name["anatomy"])


def test_the_version(invoke: Invoke) -> None:
    done = invoke("--version")
    assert (done.returncode, done.stdout.startswith(f"streamgauge {__version__}")) == (0, True)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("sust", {"sustain"}),
        ("run windowed_a", {"windowed_aggregation"}),
        ("run word_count --engine flin", {"flink"}),
        ("run word_count --transport ", {"memory", "kafka", "socket"}),
        ("run word_count --load-sh", {"--load-shape"}),
    ],
)
def test_the_tab_key_completes_commands_options_and_names(words: str, offered: set[str]) -> None:
    """As bash asks: the words so far, and the number of the word that is begun."""
    environment = {
        **os.environ, "_STREAMGAUGE_COMPLETE": "complete_bash", "COMP_WORDS": f"streamgauge {words}",
        "COMP_CWORD": str(len(f"streamgauge {words}".split(" ")) - 1),
    }  # fmt: skip
    code = "import sys\nfrom streamgauge.cli import app\nsys.argv = ['streamgauge']\napp.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert set(done.stdout.split()) == offered


def test_help_ends_with_the_exit_codes() -> None:
    """Each with its meaning."""
    (name, group), *_ = helps()
    text = " ".join(help_of(name, group).split()).partition("Exit codes: ")[2]
    assert text == " ".join(f"{code} {code.meaning}" for code in ExitCode)
