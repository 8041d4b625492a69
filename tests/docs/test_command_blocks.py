"""Every command in a block of the README, a tutorial or a how-to page is accepted as it stands there, and runs.

`make test`: commands with `--dry-run` get it, and so make all checks before a start; others are parsed only.
`make test-long`: a shell runs each block, and each row of the README's table. A `streamgauge` on its path appends
options for shorter trials.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from streamgauge.config.named_files import DATA, is_data
from streamgauge.core.exit_codes import ExitCode
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
EARLIER_SEARCH = "RUN"
EARLIER = {"A": 3, "B": 3, "runs/A": 1, "runs/B": 1, EARLIER_SEARCH: 1}
"""Folders of earlier runs that a reader has, with their number. `make test` makes none, and only parses a command that
names one.
"""
SHELLS = ("", "sh")
"""Languages of blocks that may have commands."""
PROGRAMS = ("streamgauge", "mkdir", "set", "make", "sudo", "uv", "xdg-open", "kafka-topics.sh")
"""First words of blocks that have commands."""
NOT_RUN = {
    "sudo apt-get install": "it changes the machine",
    "make ": "it is what runs this test, or takes the environment away from it",
    "uv tool install": "it changes the user's tools; the wheel is tried in tests/real/test_installed_wheel.py",
    "xdg-open": "it needs a desktop",
    "streamgauge run windowed_aggregation --transport kafka --brokers kafka-1": "it needs brokers of the reader's",
    "kafka-topics.sh": "it needs brokers of the reader's",
    "streamgauge experiment experiments/karimov/exp1_aggregation.toml": "a search takes 25 minutes",
}
"""Beginnings of blocks that no test can run, with the reason."""
SHORTER = {
    "run": ("--warmup", "2s", "--duration", "10s"),
    "sustain": ("--warmup", "2s", "--duration", "10s", "--tolerance", "50%", "--trials-max", "4"),
    "scale": ("--warmup", "2s", "--duration", "10s", "--tolerance", "50%", "--loads", "50k,100k"),
    "sweep": ("--warmup", "2s", "--duration", "10s", "--loads", "50%,100%"),
    "anatomy": ("--warmup", "2s", "--duration", "10s"),
    "characterize": ("--slices", "5", "--slice-events", "1k", "--warmup-slices", "1"),
}
"""Options that make a command shorter, appended to it: the last of two counts."""
WHOLE_SPAN = {"--load-shape", "--limit"}
"""Options of `run` that are refused beside a span that is too short for them."""
MEASURED = {0, 1, 3, 4}
"""Exit codes of commands that did what they say, whatever they found."""
ROWS = 50


def command_lines(text: str) -> list[list[str]]:
    """The words of each command in the blocks of a page, without `streamgauge` and what a shell does with it."""
    lines = []
    for block in blocks(text):
        for line in PROMPT.findall(block.replace("\\\n", " ")):
            for word, value in SHELL.items():
                line = line.replace(word, value)
            words = shlex.split(line, comments=True)
            lines.append(words[: next((n for n, word in enumerate(words) if word in ENDS), len(words))])
    return lines


def without_prompts(code: str) -> str:
    """What a reader would type of a block: the lines after a prompt, or all of it."""
    return "\n".join(re.findall(r"^\$ (.*)$", code, re.MULTILINE)) or code


def blocks(text: str) -> list[str]:
    """The commands of a page as a reader gives them to a shell: each block, and each one in a row of a table."""
    codes = [
        without_prompts(code)
        for _, language, code in fences(re.sub(r"^ +```", "```", text, flags=re.MULTILINE))
        if language in SHELLS
    ]
    rows = "\n".join(re.findall(r"^\|.*$", text, re.MULTILINE))
    return [code for code in codes if code.split()[0] in PROGRAMS] + re.findall(r"`(streamgauge \w+ [^`]+)`", rows)


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
    return "--dry-run" in options and not EARLIER.keys() & {*words}


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a reader with two processors, the examples, the job of the first tutorial, and earlier runs."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    for module in (generator_ceiling, sustain_module):  # a page may ask for a rate that this machine cannot make
        monkeypatch.setattr(module, "ceiling_of", lambda *_: 1e9)
    for folder in ("examples", "experiments"):
        (tmp_path / folder).symlink_to(ROOT / folder)
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


def blocks_to_run() -> list[tuple[str, str]]:
    """Each block with the page that shows it first, except those that no test can run."""
    pages = {block: page.name for page in reversed(PAGES) for block in blocks(page.read_text())}
    return sorted((page, block) for block, page in pages.items() if not block.lstrip().startswith((*NOT_RUN,)))


def shorter(words: list[str]) -> tuple[str, ...]:
    """The options that make a command shorter."""
    if "--resume" in words:
        return ()
    options = SHORTER.get(words[0], ())
    return options[:2] if words[0] == "run" and WHOLE_SPAN & {*words} else options


PROGRAM = f"""#!{sys.executable}
import json, subprocess, sys
from tests.docs.test_command_blocks import shorter

words = sys.argv[1:]
code = subprocess.call([sys.executable, "-m", "streamgauge", *words, *shorter(words)])
with open("calls", "a") as calls:
    print(json.dumps([code, *words]), file=calls)
sys.exit(code)
"""
"""The `streamgauge` of a reader: it makes commands shorter, and notes their exit codes."""


@pytest.fixture
def shell(reader: Path) -> dict[str, str]:
    """The environment of a reader's shell in a git repository with two branches."""
    (reader / "bin").mkdir()
    (reader / "bin" / "streamgauge").write_text(PROGRAM)
    (reader / "bin" / "streamgauge").chmod(0o755)
    name = "user.name=reader", "user.email=reader@example.org"
    for words in ("init -q -b main", f"-c {name[0]} -c {name[1]} commit -q --allow-empty -m first", "branch feature"):
        subprocess.run(["git", *words.split()], cwd=reader, check=True)
    return {
        **os.environ, "PATH": f"{reader / 'bin'}:{os.environ['PATH']}", "TMPDIR": str(reader),
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
    }  # fmt: skip


def leave_earlier_runs(block: str, shell: dict[str, str]) -> None:
    """The folders of earlier runs that a block names, made on the engine of known capacity."""
    for folder in EARLIER.keys() & {*block.split()}:
        command = ("sustain", "--quick", "--trials-max", "3") if folder == EARLIER_SEARCH else ("run",)
        for seed in range(EARLIER[folder]):
            words = (*command, "filter", "--engine", "known", "--warmup", "1s", "--duration", "4s", "--seed", str(seed))
            program = (sys.executable, "-m", "streamgauge", *words, "--out", folder)
            assert subprocess.run(program, env=shell, check=False).returncode in MEASURED
    if (search := Path(EARLIER_SEARCH)).exists():
        (one,) = search.iterdir()
        one.rename("searched")
        search.rmdir()
        Path("searched").rename(search)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("page", "block"), blocks_to_run(), ids=[block.split("\n")[0] for _, block in blocks_to_run()])
def test_a_block_of_a_page_runs(page: str, block: str, shell: dict[str, str]) -> None:
    """Every command comes to an answer; a machine that is busy or slow may make it another answer. A comparison may
    refuse what an earlier command of the block did not find.
    """
    commands = command_lines(f"```\n{block}\n```\n")
    for words in commands:
        write_data(words)
    leave_earlier_runs(block, shell)
    try:
        done = subprocess.run(["sh", "-c", block], env=shell, capture_output=True, text=True, check=False)
    finally:
        if "cluster start" in block:
            subprocess.run([sys.executable, "-m", "streamgauge", "cluster", "stop"], env=shell, check=True)
    calls = [json.loads(line) for line in Path("calls").read_text().splitlines()]
    codes = [code for code, *_ in calls]
    if ExitCode.ENVIRONMENT in codes:
        pytest.skip(done.stderr[-500:])
    wrong = [
        call
        for n, call in enumerate(calls)
        if call[0] not in MEASURED and not (call[:2] == [ExitCode.REFUSAL, "compare"] and any(codes[:n]))
    ]
    assert wrong == [], done.stderr
    assert len(calls) >= len(commands) or (done.returncode == codes[-1] == ExitCode.INVALID), done.stderr


def test_blocks_that_are_not_run_exist() -> None:
    """Each reason is about a block of a page."""
    every = [block for page in PAGES for block in blocks(page.read_text())]
    assert [start for start in NOT_RUN if not any(block.startswith(start) for block in every)] == []


def test_commands_are_found() -> None:
    """In blocks of every kind, with what a shell adds taken away; a line outside of a block is none."""
    text = (
        'streamgauge run no\n```\n$ streamgauge run a --limit "p50 <= 1s"  # why\nresult\n```\n\n1. x\n\n    ```\n'
        '    streamgauge run b --seed "$3" \\\n      --out "$2" || test $? = 1\n    ```\n'
    )
    assert command_lines(text) == [["run", "a", "--limit", "p50 <= 1s"], ["run", "b", "--seed", "1", "--out", "runs"]]
    assert {"README.md", "quickstart.md", "my-kafka-job.md"} <= {page for page, _ in found()}


@pytest.mark.parametrize(("words", "why"), [
    (["run", "identity", "--profile", "constant"], "--profile"), (["measure", "identity"], "no such command"),
    (["compare", "A"], "compare"), (["cluster", "start", "--workers", "2"], ""),
])  # fmt: skip
def test_an_outdated_command_is_found(words: list[str], why: str) -> None:
    found = refusal(words)
    assert (why in found, bool(found)) == (True, bool(why))
