"""The command line: exit codes, what goes to which stream, and that light commands load nothing heavy."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.cli import app, commands
from streamgauge.cli.parse import pairs
from streamgauge.config.options_and_settings import read
from streamgauge.core.errors import (
    DriverError,
    EngineError,
    InputError,
    Interrupted,
    JobError,
    MachineError,
    Problem,
    StreamgaugeError,
)
from streamgauge.results.causes import Cause
from streamgauge.results.run import Result
from streamgauge.results.verdict import Check, Verdict
from streamgauge.studies.capacity import command as capacity_command
from streamgauge.studies.selftest import checks
from streamgauge.trial.conductor import record_start_failure

Asked = Callable[..., "subprocess.CompletedProcess[str]"]
HEAVY = ("pyspark", "pyarrow.flight", "altair", "vl_convert", "duckdb", "scipy")


@pytest.fixture(autouse=True)
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run folders, should any be made, go to a place of the test's own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The command in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["streamgauge", *words])
    try:
        app.main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def command(*words: str) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "streamgauge", *words], capture_output=True, text=True, check=False, env=environment
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Asked:
    """The command in this process, as if it were one of its own: an error that it does not tell fails the test."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")

    def one(*words: str) -> subprocess.CompletedProcess[str]:
        code = call(monkeypatch, *words)
        said = capsys.readouterr()
        return subprocess.CompletedProcess(words, code, said.out, said.err)

    return one


def result_of(value: Any) -> Result:
    return Result(
        run_id="2026-01-31T12-00-00Z-identity-spark", start_time="2026-01-31T12:00:00+00:00", workload="identity",
        engine="spark", isolation="shared", experiment={}, verdict=Verdict(value=value, sentence="said so"),
    )  # fmt: skip


# --- exit codes ---


@pytest.mark.parametrize(
    ("value", "code"),
    [("sustained", 0), ("not_sustained", 1), ("undecided", 1), ("interrupted", 1), ("invalid", 3)],
)
def test_the_verdict_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: str, code: int
) -> None:
    """0 done, 1 the criterion failed, 3 the figures must not be used."""
    monkeypatch.setattr(commands, "run_with_view", lambda experiment: result_of(value))
    assert call(monkeypatch, "run", "identity", "--json") == code
    assert Result.model_validate_json(capsys.readouterr().out).verdict.value == value


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (MachineError("Java 17 or later is needed"), 3, "Java 17"),
        (EngineError("spark did not start: no memory", "engine/spark.log"), 3, "whole log: engine/spark.log"),
        (DriverError("generator 0 ended"), 3, "generator 0 ended"),
        (Interrupted("stopped by hand"), 1, "stopped by hand"),
        (KeyboardInterrupt(), 1, "stopped"),
    ],
)
def test_errors_are_one_message_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, text: str
) -> None:
    """Each kind has its exit code; nothing on stdout, no traceback."""

    def fail(experiment: Any) -> Any:
        raise error

    monkeypatch.setattr(commands, "run_with_view", fail)
    assert call(monkeypatch, "run", "identity", "--json") == code
    said = capsys.readouterr()
    assert said.out == ""
    assert text in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("error", [EngineError("spark did not start"), JobError(Problem("f()", "a rule", "a", "b"))])
def test_a_start_that_failed_names_its_folder_and_prints_its_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stand: Path, error: StreamgaugeError
) -> None:
    """A program that reads stdout gets what the folder holds; a person is told where the engine's log is."""
    folder = RunFolder.create(stand / "runs", "identity", "spark", datetime.now(UTC))
    folder.write_result(result_of("invalid"))

    def fail(experiment: Any) -> Any:
        with record_start_failure(folder):
            raise error

    monkeypatch.setattr(commands, "run_with_view", fail)
    assert call(monkeypatch, "run", "identity", "--json") == error.exit_code
    said = capsys.readouterr()
    printed = Result.model_validate_json(said.out)
    assert (printed.verdict.cause, printed.folder) == (Cause.START_FAILED, str(folder.path))
    assert str(folder.path) in " ".join(said.err.split())


@pytest.mark.parametrize("shown", [False, True])
def test_a_defect_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shown: bool
) -> None:
    """Exit code 1 would tell a pipeline that the rate is not sustained; the traceback comes where it is asked for."""

    def fail(experiment: Any) -> Any:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(commands, "run_with_view", fail)
    monkeypatch.setenv(app.TRACEBACK, "1" if shown else "")
    assert call(monkeypatch, "run", "identity", "--json") == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "a defect of streamgauge (RuntimeError: two lines)" in said.err
    assert ("Traceback" in said.err) is shown
    assert shown or len(said.err.splitlines()) == 1


def test_a_refusal_names_everything_and_starts_nothing(stand: Path) -> None:
    """Exit code 2; every problem with its value and its way out; nothing was made."""
    done = command("run", "identity", "--rate", "fast", "--duration", "soon", "--seed", "-1", "--set", "x", "--json")
    assert done.returncode == 2
    assert done.stdout == ""
    for text in (
        "error: --rate: ", "fast", "--rate 100k", "error: --duration: ", "soon", "error: --seed: ", "-1", "--set",
        "NAME=VALUE",
    ):  # fmt: skip
        assert text in done.stderr
    assert done.stderr.count("try:") == 4
    assert "nothing was started" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(stand.iterdir()) == []


def test_what_needs_a_flow_is_told_where_none_can_be_built(stand: Path, asked: Asked) -> None:
    """Five slips of five kinds, told at once."""
    done = asked(
        "run", "windowed_aggregation", "--set", "slide=9s", "--rate", "100kb", "--duration", "5x", "--seed", "abc",
        "--option", "lowering.agg=window",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    for name in ("--rate", "--duration", "--seed", "slide", "option lowering.agg"):
        assert f"error: {name}: " in done.stderr
    assert done.stderr.count("try:") == 5


def test_a_files_settings_have_the_names_that_stand_there(stand: Path, asked: Asked) -> None:
    """Nobody has typed an option for them."""
    (stand / "a.toml").write_text('command = "run"\nworkload = "identity"\n[load]\nrate = "fast"\n')
    done = asked("experiment", "a.toml")
    assert done.returncode == 2
    assert "error: load.rate: " in done.stderr


@pytest.mark.parametrize("flag", ["--set", "--option"])
def test_a_setting_that_is_given_twice_is_refused(flag: str) -> None:
    """Which of the two was meant is not known; the message shows both."""
    with pytest.raises(InputError) as caught:
        pairs(flag, ["range=4s", "other=1", " range =8s"])
    (problem,) = caught.value.problems
    assert (problem.setting, problem.got) == (flag, " range =8s")
    assert "'4s'" in problem.rule
    assert pairs(flag, ["a=1", "b=x=y"]) == {"a": "1", "b": "x=y"}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["sustain", "x", "--tolerance", "wide"], ["workload", "--tolerance", "--seed", "engine"]),
        (["sustain", "--tolerance", "2"], ["workload", "--tolerance", "--seed", "engine"]),
        (["sustain", "--resume", "missing"], ["RUN", "--seed", "engine"]),
        (["generate", "--out", "there", "--set", "x"], ["workload", "--set", "--seed", "engine"]),
    ],
)
def test_a_search_or_an_input_is_told_all_its_problems(
    stand: Path, asked: Asked, words: list[str], named: list[str]
) -> None:
    """Also where no workload is named, or its run folder is not there; nothing is told twice."""
    done = asked(*words, "--seed", "-1", "--engine", "sprak")
    assert (done.returncode, done.stdout) == (2, "")
    for name in named:
        assert f"{name}: " in done.stderr
    assert done.stderr.count("try:") == len(named)
    assert list(stand.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ["run", "identiti"],
        ["run", "identity", "--engine", "sprak"],
        ["run", "identity", "--set", "rang=8s"],
        ["run", "identity", "--option", "tirgger=1s"],
        ["run", "identity", "--bind", ""],
        ["run", "identity", "--limit", "p98<=2s"],
        ["run", "identity", "--memory", "much"],
        ["run", "identity", "--generators", "none"],
        ["run", "identity", "--no-such-option"],
        ["run"],
        ["no-such-command"],
        ["generate", "identiti", "--out", "there"],
        ["experiment", "missing.toml"],
        ["report", "missing"],
        ["characterize", "identiti"],
        ["workloads", "identiti"],
        ["workloads", "identiti", "--json"],
        ["characterize", "identity", "--slices", "few"],
        ["compare", "missing"],
        ["compare", "missing", "missing"],
        ["compare", "missing", "missing", "--confidence", "high"],
    ],
    ids=" ".join,
)
def test_bad_words_are_refused(stand: Path, asked: Asked, words: list[str]) -> None:
    """Exit code 2, a message on stderr, nothing on stdout, no traceback, nothing made."""
    done = asked(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip()
    assert "Traceback" not in done.stderr
    assert list(stand.iterdir()) == []


@pytest.mark.parametrize("page", ["", "missing/page.html"])
def test_a_page_that_cannot_be_written_is_refused_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, stand: Path, page: str
) -> None:
    """Nothing is computed for it: the sides are not looked at."""
    monkeypatch.setattr("streamgauge.studies.compare.command.compare", lambda *_: pytest.fail("the sides were read"))
    with pytest.raises(InputError, match="--html"):
        app.compare("a", "b", html=stand / page)


def test_a_report_that_cannot_be_written_names_its_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stand: Path
) -> None:
    """`report` has no --out, which a refusal must not advise."""
    (stand / "result.json").write_text(result_of("sustained").to_json())

    def refuse(*_: Any, **__: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    assert call(monkeypatch, "report", str(stand)) == 2
    said = capsys.readouterr().err
    assert "RUN: must be a place that can be written to" in said
    assert "try: a copy of the run folder in a folder you may write to" in said


def test_a_machine_without_java_is_exit_code_3(monkeypatch: pytest.MonkeyPatch, stand: Path) -> None:
    """The message says how to install it; no run folder is made."""
    for name in ("JAVA_HOME", "PATH"):
        monkeypatch.setenv(name, str(stand / "nowhere"))
    done = command("run", "identity", "--json")
    assert (done.returncode, done.stdout) == (3, "")
    assert "Java 17 or later is needed" in done.stderr
    assert "install" in done.stderr
    assert list(stand.iterdir()) == []


# --- what is printed ---


@pytest.mark.parametrize("what", ["workloads", "engines"])
def test_lists_as_json_hold_nothing_else(what: str) -> None:
    """Standard output is one JSON list of objects with a name."""
    done = command(what, "--json")
    assert done.returncode == 0
    names = [row["name"] for row in json.loads(done.stdout)]
    assert {"workloads": "windowed_aggregation", "engines": "spark"}[what] in names


def test_engines_as_json_have_the_options_of_their_transports() -> None:
    """Of those that they know; one that takes none has an empty list."""
    rows = {row["name"]: row["transport_options"] for row in json.loads(command("engines", "--json").stdout)}
    assert rows["known"] == {"flight": []}
    names = {option["name"] for option in rows["spark"]["kafka"]}
    assert {"brokers", "encoding", "acks"} <= names


@pytest.mark.parametrize("what", ["workloads", "engines"])
def test_lists_for_people(what: str, asked: Asked) -> None:
    """A table, with every name in it."""
    done = asked(what)
    assert done.returncode == 0
    names = [row["name"] for row in json.loads(asked(what, "--json").stdout)]
    assert all(name in done.stdout for name in names)


def test_all_of_one_workload_where_it_is_named(asked: Asked) -> None:
    """For people and as JSON: its own row alone, as it stands in the whole list."""
    whole = json.loads(asked("workloads", "--json").stdout)
    (row,) = json.loads(asked("workloads", "windowed_join", "--json").stdout)
    assert row in whole
    assert row["name"] == "windowed_join"
    shown = asked("workloads", "windowed_join").stdout
    assert all(f"  {one['name']}={one['default']}\n" in shown for one in row["parameters"])
    assert "voipstream" not in shown
    assert len(asked("workloads").stdout.splitlines()) < 5 * len(whole)


def test_print_toml_comes_back_as_it_went(stand: Path, asked: Asked) -> None:
    """The file that a command shows asks the same when it is read; nothing is started for it."""
    words = ["run", "windowed_aggregation", "--rate", "1.5M", "--duration", "2m", "--set", "range=10s", "--seed", "7",
             "--option", "spark.sql.shuffle.partitions=4", "--limit", "p50<=2s", "--generators", "3"]  # fmt: skip
    shown = command(*words, "--print-toml")
    assert shown.returncode == 0
    path = stand / "experiment.toml"
    path.write_text(shown.stdout)
    experiment = read(path)
    load = experiment.load
    assert (load.rate, load.duration, load.seed, load.generators) == (1.5e6, 120.0, 7, 3)
    assert (experiment.parameters, experiment.limits) == ({"range": "10s"}, ("p50<=2s",))
    again = asked("experiment", str(path), "--print-toml")
    assert (again.returncode, again.stdout) == (0, shown.stdout)
    assert list(stand.iterdir()) == [path]


def test_print_toml_shows_nothing_that_would_be_refused(stand: Path) -> None:
    """A file that cannot be asked is of no use, and who made it would hear of it later."""
    done = command("run", "windowed_aggregation", "--set", "nope=3", "--print-toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nope" in done.stderr


def test_generate_says_what_it_wrote(stand: Path) -> None:
    """Files as promised, their counts as JSON alone on stdout."""
    done = command(
        "generate", "identity", "--rate", "1k", "--duration", "2s", "--generators", "2", "--out", "there", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["events"] == {"purchases": 2000}
    assert sorted(path.name for path in (stand / "there" / "purchases").iterdir()) == [
        "part-0.parquet",
        "part-1.parquet",
    ]


def test_generate_notes_what_a_run_notes_of_own_data(stand: Path, asked: Asked) -> None:
    """On stderr with the counts, or as JSON: what is null in the files, and how often the rows come."""
    (stand / "bought.csv").write_text("user_id,gem_pack_id,price\n1,2,30\n1,2,dear\n")
    args = ("generate", "identity", "--set", "data=bought.csv", "--rate", "10", "--duration", "1s", "--out")
    told, found = asked(*args, "told"), asked(*args, "found", "--json")
    notes = json.loads(found.stdout)["notes"]
    assert notes[0] == "data of purchases: price is null in 1 of 2 rows (unreadable value: 1)"
    assert notes[1].startswith("data of purchases: its 2 rows come 5 times; ")
    assert [line for note in notes if (line := f"note  {note}") not in told.stderr.replace("\n", " ")] == []


@pytest.mark.parametrize("as_json", [True, False])
def test_generate_shows_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, stand: Path, asked: Asked, as_json: bool
) -> None:
    """On stderr, with --json too: what is written for an hour may take minutes."""

    def written(experiment: Any, out: Path, progress: Callable[[int, int], None]) -> dict[str, Any]:
        progress(2_000_000, 4_000_000)
        return {"out": str(out), "events": {"purchases": 4_000_000}, "replaced": 2, "notes": []}

    monkeypatch.setattr("streamgauge.trial.generate_input.generate", written)
    monkeypatch.setattr("streamgauge.report.terminal.console.PLAIN_EVERY_S", 0.0)
    done = asked("generate", "identity", "--out", "there", *(["--json"] if as_json else []))
    assert done.returncode == 0
    assert "written 2 M events of 4 M events" in done.stderr
    assert (json.loads(done.stdout)["events"] == {"purchases": 4_000_000}) if as_json else (done.stdout == "")
    assert as_json or "replaced  the previous input" in done.stderr


@pytest.mark.parametrize(("holds", "code"), [(True, 0), (False, 1)])
def test_the_self_test_answers_as_json(monkeypatch: pytest.MonkeyPatch, asked: Asked, holds: bool, code: int) -> None:
    """One object on stdout with all its items; exit code 1 where one does not hold. What goes on is told on stderr."""
    if not holds:
        monkeypatch.setattr(checks, "_input_digest", lambda seed: "the same for each")
    done = asked("selftest", "--only", "f", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["ok"], found["quick"]) == (code, holds, False)
    assert [(item["item"], item["ok"]) for item in found["items"]] == [("f", holds)]
    assert set(found) == {"ok", "quick", "seconds", "environment", "items"}
    assert found["environment"]["cpus"] >= 1
    assert f"{'holds' if holds else 'FAILS'}  f  the same seed" in done.stderr


def test_a_report_says_where_it_is_as_json(stand: Path, asked: Asked) -> None:
    """One object on stdout; the page is there."""
    (stand / "result.json").write_text(result_of("sustained").to_json())
    done = asked("report", str(stand), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"report": str(stand / "report.html")}
    assert "said so" in (stand / "report.html").read_text()


@pytest.mark.parametrize("words", [["sustain", "identity", "-v"], ["experiment", "asked.toml", "-v"]])
def test_a_search_shows_its_answer_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stand: Path, words: list[str]
) -> None:
    """With every check where they are asked for: its view shows it, and nothing after that."""
    (stand / "asked.toml").write_text('command = "sustain"\nworkload = "identity"\n')
    check = Check(name="driver", value=0, limit=0, unit="", ok=True, state="ok", sentence="")
    answer = result_of("sustained")
    answer = answer.model_copy(update={"verdict": answer.verdict.model_copy(update={"checks": (check,)})})
    monkeypatch.setattr(capacity_command, "sustain", lambda experiment, view, *_: view.finish(answer) or answer)
    assert call(monkeypatch, *words) == 0
    said = capsys.readouterr().err
    assert (said.count("said so"), said.count("driver ")) == (1, 1)


# --- light ---


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
    return [("", group), *group.commands.items()]


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
    for option, start, end in zip(options, starts, [*starts[1:], len(text)], strict=True):
        mine = text[start:end]
        assert "[default: " in mine or "[required]" in mine, option.opts


def test_help_names_every_command() -> None:
    """What there is can be seen from the first page."""
    done = command("--help")
    assert done.returncode == 0
    for name in ("run", "sustain", "generate", "experiment", "workloads", "engines", "compare", "report"):
        assert name in done.stdout
