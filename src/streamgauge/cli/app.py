"""The command line's entry point. Each command is shorthand for an experiment (`--print-toml`)."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import traceback
from contextlib import suppress
from inspect import Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from streamgauge.cli.cluster import app as cluster_app
from streamgauge.cli.commands import (
    SHORTHANDS,
    Options,
    Shorthand,
    perform,
    perform_file,
    require_rate_is_used,
)
from streamgauge.cli.help import GroupedCommand, completion, workload_names
from streamgauge.cli.parameters import (
    BROKERS,
    BROKERS_TOO,
    AsJson,
    PrintToml,
    Quiet,
    Verbose,
    build_experiment,
    pairs,
    parameters_of,
)
from streamgauge.cli.usage import Command, CommandGroup
from streamgauge.config.experiment import SETTINGS
from streamgauge.config.file_terms import in_file_terms
from streamgauge.core.errors import InputError, MachineError, Problem, StreamgaugeError, nearest, require
from streamgauge.core.exit_codes import ExitCode
from streamgauge.core.output import print_answer, print_progress
from streamgauge.core.units import parse_share
from streamgauge.system.python_path import drop_foreign_pyspark

if TYPE_CHECKING:
    from streamgauge.results.run import Result


class _Unhandled(Exception):
    """Carries an error, as its cause, past Typer, which would end with an exit code of its own."""


class _Commands(CommandGroup):
    """All commands. The help ends with the exit codes."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of a pipe has enough, which Click ends quietly
            raise
        except (KeyboardInterrupt, EOFError, OSError) as error:
            raise _Unhandled from error

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), code.meaning) for code in ExitCode])


app = typer.Typer(
    cls=_Commands,
    help="Measures how much load a stream-processing job sustains, how late its results are, and whether they are "
    "right.",
    no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip

STOPS = {
    signal.SIGHUP: ExitCode.SIGHUP,
    signal.SIGINT: ExitCode.SIGINT,
    signal.SIGTERM: ExitCode.SIGTERM,
}
"""Exit code by the first signal that stopped a command."""
TRACEBACK = "STREAMGAUGE_TRACEBACK"
DUCKDB_INTERRUPTED = ("RuntimeError", "InterruptException")
"""DuckDB's errors for Ctrl-C during a query."""


def main() -> NoReturn:
    """The command `streamgauge`, which ends with an `ExitCode`."""
    received: list[int] = []

    def stop(number: int, _: object) -> NoReturn:
        """Treats each signal as Ctrl-C: the run stores its measurements and ends its processes."""
        received.append(number)
        raise KeyboardInterrupt

    for number in STOPS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup makes it
            signal.signal(number, stop)
    drop_foreign_pyspark(sys.path, os.environ)
    code = _perform()
    stopped = code == ExitCode.SIGINT and received
    sys.exit(STOPS[signal.Signals(received[0])] if stopped else code)


def _perform() -> str | int | None:
    """Performs the typed command. Returns its exit code, after printing why it ended early."""
    try:
        if sys.flags.optimize > 1:
            raise MachineError("PYTHONOPTIMIZE=2 (or -OO) drops docstrings, which a library for charts needs. Unset it")
        app(prog_name="streamgauge")
    except InputError as error:
        from streamgauge.report.terminal.lines import show_refusal

        if sys.argv[1:2] == ["experiment"]:
            error.problems = tuple(map(in_file_terms, error.problems))
            show_refusal(error)
        else:
            show_refusal(error, options={name: info.flag for name, info in SETTINGS.items()})
        return error.exit_code
    except StreamgaugeError as error:
        print_progress(f"error: {error}")
        if error.folder:
            print_progress(f"its folder: {error.folder}")
        return error.exit_code
    except SystemExit as end:
        return end.code
    except Exception as raised:
        cause = raised.__cause__ if isinstance(raised, _Unhandled) and raised.__cause__ else raised
        by_duckdb = type(cause).__name__ in DUCKDB_INTERRUPTED and "interrupted" in str(cause).lower()
        if by_duckdb or isinstance(cause, KeyboardInterrupt):
            print_progress("stopped")
            return ExitCode.SIGINT
        _show_defect(cause)
        return ExitCode.DEFECT
    return ExitCode.HOLDS


def _show_defect(error: BaseException) -> None:
    """Prints where to report it, and where its traceback is kept; with `STREAMGAUGE_TRACEBACK` the traceback itself."""
    reason, trace = " ".join(str(error).split()) or "no message", "".join(traceback.format_exception(error))
    shown = os.environ.get(TRACEBACK, "0") not in ("", "0")
    kept = "" if shown else _kept(trace, getattr(error, "folder", ""))
    if not kept:
        print_progress(trace.rstrip())
    print_progress(
        f"error: a defect of streamgauge ({type(error).__name__}: {reason}). Report it in the issue tracker of "
        f"streamgauge, with {f'the traceback in {kept}' if kept else 'this traceback'}"
    )


def _kept(trace: str, folder: str) -> str:
    """The file that keeps a traceback: in the run folder, else a temporary one. Empty if neither takes it."""
    for place in (folder or None, None):
        with suppress(OSError):
            with tempfile.NamedTemporaryFile("w", prefix="traceback-", suffix=".txt", dir=place, delete=False) as file:
                file.write(trace)
            return file.name
    return ""


def _show_version(is_wanted: bool) -> None:
    if not is_wanted:
        return
    from streamgauge.system.machine import commit, version

    print_answer(f"streamgauge {version('streamgauge')}{commit()}")
    raise typer.Exit


@app.callback()
def _whole(
    version: Annotated[bool, typer.Option(
        "--version", callback=_show_version, is_eager=True, help="print the version and stop"
    )] = False,
) -> None:  # fmt: skip
    """Takes the options without a command; the help is that of `app`."""


def _add(name: str, shorthand: Shorthand) -> None:
    """Registers the command `name` with an option for each of its settings."""

    def call(
        workload: str, json_: bool, quiet: bool, print_toml: bool, verbose: bool = False,
        dry_run: bool = False, **words: Any,
    ) -> None:  # fmt: skip
        experiment = build_experiment(name, workload, words, shorthand.workload_from)
        if name == "scale" and experiment.search.resume is None and words["load__rate"] is not None:
            require_rate_is_used(experiment)
        perform(experiment, Options(json_, quiet, verbose), print_toml, dry_run)

    parameters = parameters_of(name, shorthand.workload_from, shorthand.verbose, shorthand.plan is not None)
    call.__signature__ = Signature(list(parameters))  # type: ignore[attr-defined]
    app.command(name, cls=GroupedCommand, help=shorthand.help, short_help=shorthand.short_help)(call)


for _name, _shorthand in SHORTHANDS.items():
    _add(_name, _shorthand)
app.add_typer(cluster_app, name="cluster", short_help="Run a Spark cluster on this machine")


@app.command("experiment", short_help="Run an experiment from a TOML file", cls=Command)
def experiment(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="a TOML file, as run WORKLOAD --print-toml prints it")
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="DIR", help="folder for run folders  [default: the file's, or runs]")
    ] = None,
    dry_run: Annotated[bool, typer.Option(
        "--dry-run", help="make all checks, show what would be started, of a matrix its cells, with their minutes, and "
        "stop  [default: off]",
    )] = False,
    cells: Annotated[
        str | None, typer.Option(metavar="N,N", help="numbers of the cells to run: 3,7  [default: all]")
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="folder of a matrix: run the cells that it lacks  [default: none]"),
    ] = None,
    quick: Annotated[bool, typer.Option(
        "--quick", help="a look within 10 minutes: one short trial a cell, no search  [default: off]",
    )] = False,
    json_: AsJson = False, quiet: Quiet = False, verbose: Verbose = False, print_toml: PrintToml = False,
) -> None:  # fmt: skip
    """Run an experiment, or a matrix of experiments, from a TOML file, which names the command and its settings."""
    perform_file(file, out, dry_run, cells, resume, quick, Options(json_, quiet, verbose), print_toml)


@app.command(short_help="List the workloads, or describe one", cls=Command)
def workloads(
    workload: Annotated[
        str, typer.Argument(
            metavar="WORKLOAD", help="describe this workload: streams, operators, parameters",
            autocompletion=completion(workload_names),
        )
    ] = "",
    json_: AsJson = False,
    flow_json: Annotated[bool, typer.Option(
        "--flow-json", help="print only the dataflow of WORKLOAD as JSON, for engines outside Python  [default: off]"
    )] = False,
    set_: Annotated[list[str] | None, typer.Option(
        "--set", metavar="NAME=VALUE", help="with --flow-json: a parameter of the workload  [default: none]"
    )] = None,
) -> None:  # fmt: skip
    """List the workloads. With a name, describe its streams, operators and parameters."""
    from streamgauge.report.terminal.catalogue import show_workload, show_workloads
    from streamgauge.workloads.registry import RATE_PER_S, catalogue, get

    if flow_json:
        chosen = get(workload)
        print_answer(json.dumps(chosen.flow_document(chosen.read(pairs("--set", set_)), RATE_PER_S), indent=2))
        return
    if set_:
        raise InputError(Problem("--set", "needs --flow-json", set_[0], f"--flow-json --set {set_[0]}"))
    rows = catalogue(name=workload)
    if json_:
        print_answer(json.dumps(rows, indent=2))
    elif workload:
        show_workload(rows[0])
    else:
        show_workloads(rows)


@app.command(short_help="List the engines, or describe one", cls=Command)
def engines(
    engine: Annotated[
        str, typer.Argument(metavar="ENGINE", help="describe this engine: operators, options, what it fetches")
    ] = "",
    json_: AsJson = False,
) -> None:
    """List the engines and their capabilities."""
    from streamgauge.engines.registry import matrix, transport_rows
    from streamgauge.report.terminal.catalogue import show_engine, show_engines

    rows, transports = matrix(), transport_rows()
    names = [row["name"] for row in rows]
    if engine:
        way_out = f"streamgauge engines {nearest(engine, names)}"
        require(engine in names, "ENGINE", f"must be one of {', '.join(names)}", engine, way_out)
        rows = [row for row in rows if row["name"] == engine]
    if json_:
        options = {transport["name"]: transport["options"] for transport in transports}
        full = [{**row, "transport_options": {name: options[name] for name in row["transports"]}} for row in rows]
        print_answer(json.dumps(full, indent=2))
    elif engine:
        show_engine(rows[0], transports)
    else:
        show_engines(rows)


@app.command(short_help="Show what this machine has and lacks", cls=Command)
def doctor(
    brokers: Annotated[
        str | None,
        typer.Option(
            BROKERS.flag,
            BROKERS_TOO,
            metavar=BROKERS.metavar,
            help="your own brokers, which must answer without a log-in  [default: none]",
        ),
    ] = None,
    json_: AsJson = False,
) -> None:
    """Show what this machine has and lacks for a run, and what to do, within seconds. Nothing is fetched.

    Each check is good, a warning or missing. With a warning runs start, but may be disturbed, or fetch jars first. A
    run that needs what is missing is refused with the same message. The check default_run is of the settings of
    run windowed_aggregation in this folder.

    The exit code is 5 if a default run cannot start, or if named brokers do not answer.

    The JSON has can_start (whether a default run could) and checks: name, status, found, problems (setting, rule, got,
    way_out) and needed_with (options of the runs that need it; empty for every run).
    """
    from streamgauge.preflight.machine_requirements import can_start, machine_checks, named_are_missing
    from streamgauge.report.terminal.catalogue import show_machine

    checks = machine_checks(brokers)
    answer = {"can_start": can_start(checks), "checks": [one.to_json() for one in checks]}
    print_answer(json.dumps(answer, indent=2)) if json_ else show_machine(answer)
    sys.exit(ExitCode.HOLDS if answer["can_start"] and not named_are_missing(checks) else ExitCode.ENVIRONMENT)


@app.command(short_help="Print the JSON schema of experiment or program files", cls=Command)
def schema(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="kind of file: experiment or program")],
) -> None:
    """Print the JSON schema (draft 2020-12) of a kind of file, with which editors complete and check such files."""
    from streamgauge.config.file_schema import experiment_schema
    from streamgauge.user_workloads.program_fields import program_schema

    schemas = {"experiment": experiment_schema, "program": program_schema}
    way_out = f"streamgauge schema {nearest(kind, list(schemas))}"
    require(kind in schemas, "KIND", f"must be {' or '.join(schemas)}", kind, way_out)
    print_answer(json.dumps(schemas[kind](), indent=2))


@app.command(cls=Command)
def selftest(
    json_: AsJson = False, silent: Quiet = False,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="fewer and shorter trials; the full test takes about 10 minutes  [default: off]"),
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(metavar="LETTER,LETTER", help="letters of the checks to run, from a to f: a,c  [default: all]"),
    ] = None,
) -> None:  # fmt: skip
    """Check on this machine that streamgauge measures correctly."""
    from streamgauge.report.terminal.console import SelfTestView, progress_console
    from streamgauge.studies.selftest.selftest import as_json
    from streamgauge.studies.selftest.selftest import selftest as run_selftest
    from streamgauge.studies.selftest.testbed import View

    with SelfTestView(progress_console(silent)) as view:
        items = run_selftest(quick, only, View(view.line, view.trial, view.line if json_ else view.item))
    if json_:
        print_answer(json.dumps(as_json(items, quick), indent=2))
    sys.exit(ExitCode.HOLDS if all(item.ok for item in items) else ExitCode.FAILS)


@app.command(cls=Command)
def compare(
    a: Annotated[
        str, typer.Argument(
            metavar="A", help="run folder, search folder, folder of runs, or several with commas; or a study of scale"
        )
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="the same for the other side")],
    fail_if: Annotated[list[str] | None, typer.Option(
        "--fail-if", metavar="RULE",
        help='a gate for B, whose answers must be right too: "rate -5%", "p99 +10%"; exit 1 if it fails, 3 if it is '
        "unknown; needs three runs a side  [default: none]",
    )] = None,
    confidence: Annotated[
        str | None, typer.Option(metavar="SHARE", help="confidence of the intervals  [default: 95%]")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="also write the comparison as one HTML file  [default: none]")
    ] = None,
    json_: AsJson = False,
) -> None:  # fmt: skip
    """Compare the runs of A and B, with confidence intervals."""
    from streamgauge.report.documents import comparison as comparison_document
    from streamgauge.report.terminal.console import show
    from streamgauge.studies.compare.compare import compare as compare_runs
    from streamgauge.studies.compare.scale_studies import compare_studies, is_study

    if html is not None:
        from streamgauge.artifacts.atomic_write import require_place

        require_place(html, comparison_document.HTML)
    code, share = ExitCode.HOLDS, parse_share(confidence or "95%", "confidence")
    if is_study(a) or is_study(b):
        rule = "must not be given with studies of scale, whose capacities have no intervals"
        require(confidence is None, "--confidence", rule, confidence, "leave --confidence out")
        studies = compare_studies(a, b, fail_if or ())
        answer, document = studies.to_json(), comparison_document.scale_document(studies)
    else:
        comparison = compare_runs(a, b, fail_if or (), share)
        code, answer, document = comparison.exit_code, comparison.to_json(), comparison_document.document(comparison)
    if html is not None:
        comparison_document.write_comparison(html, document)
    print_answer(answer) if json_ else show(document, str(html or ""))
    sys.exit(code)


@app.command(short_help="Rate systems by what experiments found", cls=Command)
def scorecard(
    studies: Annotated[
        list[str], typer.Argument(metavar="STUDY", help="folder of an experiment with a matrix, or its matrix.json")
    ],
    json_: AsJson = False,
) -> None:
    """Rate systems by the criteria of Karimov et al. 2018, table V, with the rule and the cells of each rating."""
    from streamgauge.report.documents import scorecard as scorecard_document
    from streamgauge.report.terminal.console import show
    from streamgauge.studies.scorecard.scorecard import scorecard as rate

    card = rate(studies)
    print_answer(card.to_json()) if json_ else show(scorecard_document.document(card))
    sys.exit(ExitCode.HOLDS if any(one.grade != "unknown" for one in card.ratings) else ExitCode.UNDECIDED)


@app.command(short_help="Write the HTML report of a run folder again", cls=Command)
def report(
    run_folder: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="folder of a run, of a trial, or of another command that has a report"),
    ],
    json_: AsJson = False,
) -> None:
    """Write the HTML report of a run or of a study again, from its folder. Damaged files are named and left out."""
    from streamgauge.artifacts.atomic_write import RUN
    from streamgauge.artifacts.run_folder import RunFolder
    from streamgauge.report.documents.run import write_page
    from streamgauge.report.documents.study_pages import rerender_study

    path, damage = rerender_study(run_folder), list[Problem]()
    if path is None:
        folder = RunFolder.open(run_folder)
        path = write_page(folder, _flow_of(folder.read_result()), RUN, damage)
    for one in damage:
        print_progress(f"warning: {one.rule}; the page is made of the rest\n  try: {one.way_out}")
    print_answer(json.dumps({"report": str(path), "damage": [one.rule for one in damage]}) if json_ else str(path))


def _flow_of(result: Result) -> list[dict[str, Any]] | None:
    """The nodes of the flow of a result's workload; None if the workload no longer exists."""
    from streamgauge.config.experiment import build
    from streamgauge.dataflow.describe import describe
    from streamgauge.user_workloads.data_files import with_user_data
    from streamgauge.user_workloads.lookup import get

    try:
        experiment = build(result.experiment)
        workload, values = with_user_data(get(experiment.workload), experiment.parameters)
        return describe(workload.build(workload.read(values), experiment.load.rate)[0])
    except InputError:
        return None


if __name__ == "__main__":
    main()
