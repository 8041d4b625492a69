"""Every command in a block of the README, a tutorial or a how-to page is accepted as it stands there.

Commands with `--dry-run` get it, and so make all checks before a start; others are parsed only.
"""

import json
import os
import re
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from streamgauge.config.named_files import DATA, is_data
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.preflight import generator_ceiling
from streamgauge.studies.capacity import sustain as sustain_module
from streamgauge.workloads.registry import get
from tests.docs.helpers_pages import COMMANDS, fences
from tests.helpers_modules import ROOT
from tests.unit.cli.helpers_commands import call_and_read

PAGES = [
    ROOT / "README.md",
    *(page for part in ("tutorials", "how-to") for page in (ROOT / "docs" / part).glob("*.md")),
]
PROMPT = re.compile(r"^\s*(?:\$ )?streamgauge (.*)$", re.MULTILINE)
ENDS = {"||", "&&", "|", ">", "#"}
"""Words of a shell after which a command is over."""
SHELL = {"$(streamgauge cluster status)": "spark://127.0.0.1:7077", '"$2"': "runs", '"$3"': "1"}
"""What a shell would put in the place of its words."""
OF_A_RUN = {"RUN", "A", "B"}
"""Names of folders that only a run leaves; a command with one is parsed only."""
ROWS = 50


def command_lines(text: str) -> list[list[str]]:
    """The words of each command in the blocks of a page, without `streamgauge` and what a shell does with it."""
    lines = []
    for _, _, code in fences(re.sub(r"^ +```", "```", text, flags=re.MULTILINE)):
        for line in PROMPT.findall(code.replace("\\\n", " ")):
            for word, value in SHELL.items():
                line = line.replace(word, value)
            words = shlex.split(line, comments=True)
            lines.append(words[: next((n for n, word in enumerate(words) if word in ENDS), len(words))])
    return lines


def found() -> list[tuple[str, list[str]]]:
    """Each command with the page that shows it first."""
    lines = {tuple(words): page.name for page in reversed(PAGES) for words in command_lines(page.read_text())}
    return sorted((page, list(words)) for words, page in lines.items())


def refusal(words: list[str]) -> str:
    """Why the parser refuses a command; empty if it does not."""
    commands = COMMANDS.commands()
    name = next(name for name in (" ".join(words[:2]), words[0], "") if name in commands or not name)
    if not name:
        return f"no such command: {words[0]}"
    try:
        commands[name].make_context(name, words[len(name.split()) :])
    except Exception as error:  # the parser's own, which Typer does not export
        return f"{name}: {error}"
    return ""


def has_dry_run(words: list[str]) -> bool:
    command = COMMANDS.commands().get(words[0])
    options = [option for parameter in getattr(command, "params", ()) for option in parameter.opts]
    return "--dry-run" in options and not OF_A_RUN & {*words}


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a reader with four processors, the examples, the job of the first tutorial, and earlier runs."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    for module in (generator_ceiling, sustain_module):  # a page may ask for a rate that this machine cannot make
        monkeypatch.setattr(module, "ceiling_of", lambda *_: 1e9)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    tutorial = (ROOT / "docs" / "tutorials" / "first-user-job.md").read_text()
    job = next(code for _, language, code in fences(tutorial) if language == "python")
    (tmp_path / "my_job.py").write_text(job)
    (tmp_path / "runs").mkdir()
    (tmp_path / "client.properties").write_text("security.protocol=PLAINTEXT\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def left(reader: Path) -> set[Path]:
    """The files and folders of a reader, except what Python compiled."""
    return {path for path in (*reader.iterdir(), *(reader / "runs").iterdir()) if path.name != "__pycache__"}


def write_data(words: list[str]) -> None:
    """The files of data that a command names, with rows as the workload's generator makes them."""
    given = [word.partition("=") for flag, word in pairwise(words) if flag == "--set"]
    files = {name.removeprefix(DATA).removeprefix("."): Path(file) for name, _, file in given if is_data(name)}
    if not files:
        return
    workload = get(words[1])
    streams = workload.build(workload.read({}), float(ROWS)).streams
    plan = Plan(tuple(streams), parse_profile("constant", ROWS, 1.0), 0, 1.0, partitions=1, seed=1)
    for number, stream in enumerate(streams):
        file = files.get(stream.name) or files.get("")
        if file is not None:
            count = plan.count_before(number, 0, plan.end_us)
            _write(file, plan.batch(number, 0, 0, count, stream.schema.names))


def _write(file: Path, batch: pa.RecordBatch) -> None:
    if file.suffix == ".csv":
        pyarrow.csv.write_csv(batch, file)
        return
    rows: list[Any] = batch.to_pylist()
    is_text = file.suffix == ".log"
    file.write_text("".join(f"{next(iter(row.values())) if is_text else json.dumps(row)}\n" for row in rows))


@pytest.mark.parametrize(("page", "words"), found(), ids=[" ".join(words) for _, words in found()])
def test_a_command_of_a_page_is_accepted(
    page: str, words: list[str], reader: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is parsed, and a dry run makes its checks. A dry run leaves nothing behind."""
    assert refusal(words) == ""
    if not has_dry_run(words):
        return
    write_data(words)
    before = left(reader)
    code, _, error = call_and_read(monkeypatch, capsys, *words, *(() if "--dry-run" in words else ("--dry-run",)))
    assert code == 0, error
    assert left(reader) == before


def test_commands_are_found() -> None:
    """In blocks of every kind, with what a shell adds taken away; a line outside of a block is none."""
    text = (
        'streamgauge run no\n```\n$ streamgauge run a --limit "p50 <= 1s"  # why\nresult\n```\n\n1. x\n\n    ```\n'
        '    streamgauge run b --seed "$3" \\\n      --out "$2" || test $? = 1\n    ```\n'
    )
    assert command_lines(text) == [["run", "a", "--limit", "p50 <= 1s"], ["run", "b", "--seed", "1", "--out", "runs"]]
    assert {"README.md", "quickstart.md", "my-kafka-job.md"} <= {page for page, _ in found()}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["run", "identity", "--profile", "constant"], "--profile"),
        (["measure", "identity"], "no such command"),
        (["compare", "A"], "compare"),
        (["cluster", "start", "--workers", "2"], ""),
    ],
)
def test_an_outdated_command_is_found(words: list[str], why: str) -> None:
    found = refusal(words)
    assert (why in found, bool(found)) == (True, bool(why))
