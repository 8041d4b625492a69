"""Words to calls: parse, call, print; decides nothing. Each command is shorthand for an experiment (`--print-toml`)."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from streamgauge.cli_asked import asked_for
from streamgauge.cli_options import (
    AsJson,
    Bind,
    Bound,
    Brokers,
    Chunk,
    Duration,
    Engine,
    Frontier,
    Generators,
    Isolation,
    Keep,
    Limit,
    Master,
    Memory,
    Options,
    Out,
    Port,
    PrintToml,
    Profile,
    Rate,
    Seed,
    Sets,
    Transport,
    TransportOptions,
    Verbose,
    Warmup,
    Workload,
)
from streamgauge.cli_shown import (
    EXITS,
    answer,
    characterize_with_view,
    run_with_view,
    show_toml,
    sustain_with_view,
    take_apart,
    write_input,
)
from streamgauge.errors import InputError, Problem, StreamgaugeError, attempt
from streamgauge.events import parse_share

app = typer.Typer(
    help="How much a stream-processing job can sustain, how late its results are, and whether they are right.",
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip

DEFECT_EXIT = 3
"""Of an error that nobody foresaw: never 1, which would say that a rate is not sustained."""
TRACEBACK = "STREAMGAUGE_TRACEBACK"
TYPERS_INTERRUPTED = 130
"""What Typer makes of Ctrl-C before we see it."""


def main() -> None:
    """The command `streamgauge`."""
    signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        app()
    except InputError as error:
        from streamgauge.report.terminal import show_refusal

        show_refusal(error, options=_typed_names())
        sys.exit(error.exit_code)
    except StreamgaugeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except SystemExit as end:
        if end.code != TYPERS_INTERRUPTED:
            raise
        print("stopped", file=sys.stderr)
        sys.exit(EXITS["interrupted"])
    except Exception as error:
        _show_defect(error)
        sys.exit(DEFECT_EXIT)


def _typed_names() -> dict[str, str]:
    """Setting to option, but for a file's settings, which have the names that stand there."""
    from streamgauge.experiment import FLAGS

    return {} if sys.argv[1:2] == ["experiment"] else {name: flag for name, flag in FLAGS.items() if "." in name}


def _show_defect(error: Exception) -> None:
    """One line: that it is ours, what it was, how to see more; the traceback where it was asked for."""
    reason = " ".join(str(error).split()) or "no message"
    hint = "please report it with its traceback"
    if os.environ.get(TRACEBACK, "0") not in ("", "0"):
        import traceback

        traceback.print_exception(error)
    else:
        hint += f", which {TRACEBACK}=1 shows"
    print(f"error: a defect of streamgauge ({type(error).__name__}: {reason}): {hint}", file=sys.stderr)


def _as_interrupt(*_: object) -> NoReturn:
    """The system asks us to stop as a person does with Ctrl-C: keep what was measured, leave nothing behind."""
    raise KeyboardInterrupt


@app.command(short_help="One trial: is a rate sustained, how late, are the answers right?")
def run(
    workload: Workload, rate: Rate = "100k", duration: Duration = "60s", warmup: Warmup = None,
    engine: Engine = "spark", set_: Sets = None, option: Options = None, transport: Transport = "flight",
    brokers: Brokers = None, transport_option: TransportOptions = None,
    master: Master = None, isolation: Isolation = "shared", generators: Generators = None, seed: Seed = "1",
    profile: Profile = "constant",
    chunk: Chunk = None, bound: Bound = "30s", memory: Memory = None, frontier: Frontier = "common",
    limit: Limit = None, bind: Bind = "127.0.0.1", port: Port = None, out: Out = None, keep_results: Keep = False,
    json_: AsJson = False, verbose: Verbose = False, print_toml: PrintToml = False,
) -> None:  # fmt: skip
    """One trial: is this rate sustained, how late are the results, are they right?"""
    experiment = asked_for(
        "run", workload, sets=set_, options=option, engine=engine, transport=transport, brokers=brokers,
        transport_options=transport_option, master=master,
        isolation=isolation, limits=tuple(limit or ()), bind=bind, port=port, out=out, keep_results=keep_results,
        load={"rate": rate, "duration": duration, "warmup": warmup, "generators": generators, "seed": seed,
              "profile": profile, "chunk": chunk, "bound": bound, "memory": memory, "frontier": frontier},
    )  # fmt: skip
    answer(experiment, run_with_view, json_, verbose, print_toml)


@app.command(short_help="The highest rate that is sustained, by a search")
def sustain(
    workload: Annotated[
        str, typer.Argument(metavar="WORKLOAD", help="a workload's name, or FILE.py (left out with --resume)")
    ] = "",
    tolerance: Annotated[str, typer.Option(metavar="SHARE", help="relative width of the answer: 5%")] = "5%",
    quick: Annotated[
        bool, typer.Option("--quick", help="no confirmation on a fresh engine, and says so  [default: off]")
    ] = False,
    start_rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="where to begin  [default: an overload trial finds out]")
    ] = None,
    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="go on with a search that was ended  [default: a new one]")
    ] = None,
    trials_max: Annotated[str, typer.Option(metavar="N", help="stop after so many trials")] = "16",
    duration: Duration = "30s", warmup: Warmup = None, engine: Engine = "spark",
    set_: Sets = None, option: Options = None, transport: Transport = "flight",
    brokers: Brokers = None, transport_option: TransportOptions = None, master: Master = None,
    isolation: Isolation = "shared", generators: Generators = None, seed: Seed = "1",
    chunk: Chunk = None, bound: Bound = "30s", memory: Memory = None, frontier: Frontier = "common",
    limit: Limit = None, bind: Bind = "127.0.0.1", port: Port = None, out: Out = None, keep_results: Keep = False,
    json_: AsJson = False, verbose: Verbose = False, print_toml: PrintToml = False,
) -> None:  # fmt: skip
    """The highest rate that is sustained: bracketed, bisected, confirmed on a fresh engine."""
    experiment = asked_for(
        "sustain", workload, of=resume, sets=set_, options=option, engine=engine, transport=transport, brokers=brokers,
        transport_options=transport_option, master=master,
        isolation=isolation, limits=tuple(limit or ()), bind=bind, port=port, out=out,
        keep_results=keep_results,
        load={"duration": duration, "warmup": warmup, "generators": generators, "seed": seed, "chunk": chunk,
              "bound": bound, "memory": memory, "frontier": frontier},
        search={"tolerance": tolerance, "quick": quick, "start_rate": start_rate,
                "resume": resume, "trials_max": trials_max},
    )  # fmt: skip
    answer(experiment, lambda asked: sustain_with_view(asked, verbose), json_, verbose, print_toml, shown=True)


@app.command()
def generate(
    out: Annotated[Path, typer.Option(metavar="DIR", help="folder to write to: DIR/<stream>/part-<partition>.parquet")],
    workload: Annotated[
        str, typer.Argument(metavar="WORKLOAD", help="a workload's name, or FILE.py (left out with --of)")
    ] = "",
    rate: Rate = "100k", duration: Duration = "60s", warmup: Warmup = None, set_: Sets = None,
    generators: Generators = None, seed: Seed = "1", profile: Profile = "constant",
    start: Annotated[str | None, typer.Option(
        metavar="TIMESTAMP",
        help="a run's start_time: write what a run of these settings was offered at least, warm-up and tail included; "
        "one that was extended or warmed up longer had more: see the next option  [default: now, and the span alone]",
    )] = None,
    of: Annotated[str | None, typer.Option(
        metavar="RUN", help="a run's folder: write all that this very run was offered, its extensions included"
        "  [default: none]",
    )] = None,
    json_: AsJson = False, print_toml: PrintToml = False,
    engine: Engine = "spark", option: Options = None, transport: Transport = "flight",
    brokers: Brokers = None, transport_option: TransportOptions = None, master: Master = None,
    isolation: Isolation = "shared", keep_results: Keep = False,
) -> None:  # fmt: skip
    """The planned input itself, as Parquet, without any engine."""
    experiment = asked_for(
        "generate", workload, of=of, sets=set_, options=option, engine=engine, transport=transport, brokers=brokers,
        transport_options=transport_option, master=master,
        isolation=isolation, keep_results=keep_results, out=str(out),
        load={"rate": rate, "duration": duration, "warmup": warmup, "generators": generators, "seed": seed,
              "profile": profile, "start": start, "of": of},
    )  # fmt: skip
    if print_toml:
        show_toml(experiment)
        return
    write_input(experiment, json_)


@app.command("experiment", short_help="A declared experiment: a command as a TOML file")
def declared(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="a TOML file, such as --print-toml shows")],
    json_: AsJson = False, verbose: Verbose = False, print_toml: PrintToml = False,
) -> None:  # fmt: skip
    """A declared experiment: what the command in the file would do."""
    from streamgauge.experiment import read

    experiment = read(file)
    if experiment.command == "generate" and not print_toml:
        write_input(experiment, json_)
        return
    if experiment.command == "anatomy":
        take_apart(experiment, json_, print_toml)
        return
    if experiment.command == "sustain":
        answer(experiment, lambda asked: sustain_with_view(asked, verbose), json_, verbose, print_toml, shown=True)
    else:
        answer(experiment, run_with_view, json_, verbose, print_toml)


@app.command(short_help="The workloads there are, and all that is known of one")
def workloads(
    workload: Annotated[
        str, typer.Argument(metavar="WORKLOAD", help="one of them: its streams, operators and parameters too")
    ] = "",
    json_: AsJson = False,
) -> None:
    """The workloads there are; of one, its streams, operators and parameters too."""
    from streamgauge.report.listing import show_workload, show_workloads
    from streamgauge.run.catalogue import workload_rows

    rows = workload_rows(workload)
    if json_:
        print(json.dumps(rows, indent=2))
    elif workload:
        show_workload(rows[0])
    else:
        show_workloads(rows)


@app.command()
def engines(json_: AsJson = False) -> None:
    """The engines there are, and what each can do."""
    from streamgauge.report.listing import show_engines
    from streamgauge.run.catalogue import matrix, transport_rows

    rows, carriers = matrix(), transport_rows()
    if json_:
        options = {each["name"]: each["options"] for each in carriers}
        told = [{**row, "transport_options": {name: options[name] for name in row["transports"]}} for row in rows]
        print(json.dumps(told, indent=2))
    else:
        show_engines(rows, carriers)


@app.command(short_help="Where a record's time goes, stage by stage")
def anatomy(
    workload: Workload,
    rates: Annotated[str, typer.Option(metavar="RATE,RATE", help="a trial at each of them")] = "20k",
    batch_windows: Annotated[
        str | None,
        typer.Option(metavar="TIME,TIME", help="the same at each of these intervals of batches  [default: trigger's]"),
    ] = None,
    record_size: Annotated[
        str | None,
        typer.Option(metavar="N,N", help="the same at each of these sizes of a record, of stamped_text  [default: 25]"),
    ] = None,
    duration: Duration = "30s", warmup: Warmup = None, engine: Engine = "spark", set_: Sets = None,
    option: Options = None, transport: Transport = "flight", brokers: Brokers = None,
    transport_option: TransportOptions = None, master: Master = None, isolation: Isolation = "shared",
    generators: Generators = None, seed: Seed = "1", chunk: Chunk = None, out: Out = None, json_: AsJson = False,
    print_toml: PrintToml = False,
) -> None:  # fmt: skip
    """Where a record's time goes: every result's way, in stages, by the driver's stamps and what else is known."""
    experiment = asked_for(
        "anatomy", workload, sets=set_, options=option, engine=engine, transport=transport, brokers=brokers,
        transport_options=transport_option, master=master, isolation=isolation, out=out,
        anatomy={"rates": rates, "batch_windows": batch_windows, "record_sizes": record_size},
        load={"duration": duration, "warmup": warmup, "generators": generators, "seed": seed, "chunk": chunk},
    )  # fmt: skip
    take_apart(experiment, json_, print_toml)


@app.command()
def selftest(
    json_: AsJson = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="fewer and shorter trials; all of them take ten minutes  [default: off]")
    ] = False,
    only: Annotated[str | None, typer.Option(metavar="A,B", help="some of the proofs a to f  [default: all]")] = None,
) -> None:
    """Prove that the instrument itself is right on this machine."""
    from streamgauge.report.terminal import ProofView
    from streamgauge.studies import selftest as study
    from streamgauge.studies.known_bench import View

    with ProofView() as shown:
        items = study.selftest(quick, only, View(shown.line, shown.trial))
    if json_:
        print(json.dumps(study.as_json(items, quick), indent=2))
    sys.exit(0 if all(item.ok for item in items) else 1)


@app.command()
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="a run, a search, a folder of runs, or several with commas")],
    b: Annotated[str, typer.Argument(metavar="B", help="the same for the other side")],
    fail_if: Annotated[list[str] | None, typer.Option(
        "--fail-if", metavar="RULE",
        help='exit 1 unless B keeps it and answers rightly: "rate -5%", "p99 +10%"; wants three runs a side'
        "  [default: none]",
    )] = None,
    confidence: Annotated[str, typer.Option(metavar="SHARE", help="confidence of the intervals")] = "95%",
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="write the comparison as one HTML file too  [default: none]")
    ] = None,
    json_: AsJson = False,
) -> None:  # fmt: skip
    """Is B different from A, by how much, and how sure is that?"""
    from streamgauge.report.comparison_terminal import show_comparison
    from streamgauge.studies.compare import compare as ask

    if html is not None:
        from streamgauge.artifacts.run_folder import require_place
        from streamgauge.report.comparison_page import HTML

        require_place(html, HTML)
    comparison = ask(a, b, fail_if or (), parse_share(confidence, "confidence"))
    if html is not None:
        from streamgauge.report.comparison_page import write_comparison

        write_comparison(html, comparison)
    if json_:
        print(comparison.to_json())
    else:
        show_comparison(comparison, html)
    sys.exit(0 if comparison.passed else 1)


@app.command(short_help="What each operator of a workload does to the stream, and what it costs")
def characterize(
    workload: Workload,
    slices: Annotated[
        str, typer.Option(metavar="N", help="slices that are timed; fewer than 100 carry no p99, so no advice")
    ] = "100",
    slice_events: Annotated[str, typer.Option(metavar="N", help="events of the input in a slice")] = "10k",
    warmup_slices: Annotated[
        str, typer.Option(metavar="N", help="slices before them, which warm the engine up and are thrown away")
    ] = "20",
    rate: Annotated[
        str, typer.Option(metavar="RATE", help="how dense the input is in event time, which windows feel: 10k")
    ] = "10k",
    target: Annotated[str, typer.Option(metavar="K", help="instances that eq. 3.4 shares out")] = "10",
    weights: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="cumulative: rows of an input for each event; immediate: selectivity of the operator before",
        ),
    ] = "cumulative",
    multipliers: Annotated[
        str, typer.Option(metavar="N,N", help="what instances are multiplied by, in the thesis's three ways")
    ] = "1,2,4,8",
    apply: Annotated[
        bool,
        typer.Option("--apply", help="run it with the instances advised, where Spark has any  [default: off]"),
    ] = False,
    set_: Sets = None, option: Options = None, seed: Seed = "1", out: Out = None, json_: AsJson = False,
) -> None:  # fmt: skip
    """Selectivity, tuple size and time per tuple of each operator alone, Spark's memory, and advised instances."""
    from streamgauge.run.check import check
    from streamgauge.studies.apply import check_trial
    from streamgauge.studies.characterize import read

    words = {"slices": slices, "slice_events": slice_events, "warmup_slices": warmup_slices, "target": target,
             "weights": weights, "multipliers": multipliers}  # fmt: skip
    problems: list[Problem] = []
    sizes = attempt(lambda: read(words), problems)
    experiment = attempt(lambda: asked_for(
        "generate", workload, sets=set_, options=option, out=out, load={"rate": rate, "seed": seed, "generators": 1},
    ), problems)  # fmt: skip
    if experiment is not None and (apply or problems):
        attempt(lambda: (check_trial if apply else check)(experiment), problems)
    if problems:
        raise InputError(problems)
    assert experiment is not None
    assert sizes is not None
    characterize_with_view(experiment, sizes, apply, json_)


@app.command(short_help="Make the HTML report of a run folder again")
def report(
    run_folder: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="a run folder, a trial's inside it, or a folder of characterize or anatomy"),
    ],
    json_: AsJson = False,
) -> None:
    """Make the HTML report of a run, a characterization or an anatomy again from what its folder holds."""
    from streamgauge.artifacts.run_folder import RUN, RunFolder
    from streamgauge.report.again import write_again
    from streamgauge.report.page import write_page
    from streamgauge.run.picture import flow_of

    path = write_again(run_folder)
    if path is None:
        folder = RunFolder.open(run_folder)
        path = write_page(folder, flow_of(folder.read_result()), RUN)
    print(json.dumps({"report": str(path)}) if json_ else str(path))


if __name__ == "__main__":
    main()
