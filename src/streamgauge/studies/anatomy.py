"""`anatomy`: where a record's time goes, stage by stage, from evidence outside of the query wherever there is some [L].

One trial, on an engine of its own, for each rate, interval of batches and size of a record. Each is taken apart result
by result (`studies.dissect`): by the plan, by the driver's stamps, and by what Spark says of its batches, in its
progress and its event log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from streamgauge.engines.spark import event_log
from streamgauge.errors import DriverError, EngineError, InputError, Problem
from streamgauge.events import US, Clock, parse_duration, parse_rate, parse_whole
from streamgauge.experiment import Experiment
from streamgauge.flow import graph
from streamgauge.flow.nodes import Explode, Flow, Lookup, Select, Source, Where
from streamgauge.load.stamped import RECORD_BYTES_MAX, RECORD_BYTES_MIN
from streamgauge.report.again import keep
from streamgauge.report.store import ANATOMY, new_folder
from streamgauge.report.terminal import TrialSnapshot
from streamgauge.run.check import check
from streamgauge.run.criteria import EXTENSION_SHARE_MAX, EXTENSIONS_MAX
from streamgauge.run.ready import Ready
from streamgauge.run.single import Progress, require_machine, run_judged
from streamgauge.studies.dissect import Seen, nothing, taken_apart
from streamgauge.system.machine import environment
from streamgauge.system.scratch import Scratch
from streamgauge.transports.catalogue import STAMPS

Value = TypeVar("Value")

SCHEMA_VERSION = 1
PROBES, RECORD_SIZE = "probes", "record_bytes"
"""The option that says what is kept of batches, and the parameter of a workload that has records of a chosen size."""
RECORDS_MAX = 10_000_000
"""Of a trial's span: each one's way is kept in memory, some 300 bytes."""
LONGEST = 1 + EXTENSIONS_MAX * EXTENSION_SHARE_MAX
"""How many times what was asked for a span may become."""
CLOCK_MOVED_US_MAX = 2000
"""How much the machine's clock, by which Spark stamps, may be moved within a trial against ours."""
_ROW_BY_ROW = (Source, Select, Where, Lookup, Explode)
PUBLISHED = (
    "one receiver took at most about 30 MB/s, or 1.5 M records/s",
    "batches of less than 10 ms were unstable",
    "with batches of 10 ms at 90 MB/s: at most 11 % of the time was useful work, about 20 % waiting for the wire, more "
    "than a third between making a block and telling the driver, about 11 ms scheduling",
)
"""What [L] found with DStreams, on machines of its own."""
STAGES = {
    "generated": "until it could be read: its chunk, and with a common frontier those of all generators, offered",
    "waiting": "until a batch of the engine began",
    "offset fixed": "until the batch knew up to where it reads",
    "planned": "the batch's plan written to the checkpoint, and its query planned",
    "taken by the writer": "over a broker: until our own writer of batches had told the recorder that it begins one",
    "scheduled": "until the first task of the batch was launched",
    "read": "until a task began to take the events over",
    "processed and written": "until the recorder had the result, the rest of reading included",
    "read, processed and written": "the same over a broker, where nobody sees what is read",
}
"""A stage to what its time is spent on."""


@dataclass(frozen=True)
class Asked:
    """The trials: every rate with every interval of batches and every size of a record; None: as without."""

    rates_per_s: tuple[float, ...]
    batch_windows: tuple[str | None, ...] = (None,)
    record_sizes: tuple[int | None, ...] = (None,)


def read(rates: str, batch_windows: str | None, record_sizes: str | None) -> Asked:
    """What is asked for, from the words of the command line; InputError with every problem."""
    problems: list[Problem] = []
    found = _each(rates, parse_rate, "--rates 20k,50k", problems)
    windows = _each(batch_windows, _interval, "--batch-windows 0s,500ms", problems)
    sizes = _each(record_sizes, _size, "--record-size 25,1000", problems)
    if problems:
        raise InputError(problems)
    return Asked(tuple(rate for rate in found if rate is not None), windows, sizes)


def _each(
    texts: str | None, parse: Callable[[str], Value], example: str, problems: list[Problem]
) -> tuple[Value | None, ...]:
    """Values apart by commas, each once; `example` is the option with values that would do."""
    found: list[Value | None] = []
    for text in texts.split(",") if texts is not None else ():
        try:
            found.append(parse(text.strip()))
        except InputError as error:
            problems += [Problem(example.split()[0], one.rule, one.got, example) for one in error.problems]
    return tuple(dict.fromkeys(found)) or (None,)


def _interval(text: str) -> str:
    """In Spark's words."""
    interval_us = round(US * parse_duration(text))
    if interval_us % 1000:
        raise InputError(Problem("--batch-windows", "must be whole milliseconds", text, "--batch-windows 1ms"))
    return f"{interval_us // 1000} milliseconds"


def _size(text: str) -> int:
    return parse_whole(text, "--record-size", RECORD_BYTES_MIN, RECORD_BYTES_MAX, str(RECORD_BYTES_MIN))


def anatomy(experiment: Experiment, asked: Asked, on_progress: Progress = lambda _: None) -> dict[str, Any]:
    """The anatomy as plain data, which is also written to a folder of its own, with a page.

    Raises:
        InputError, MachineError: before anything was started, but for a rate that generators turn out not to make.
    """
    trials = _trials(experiment, asked)
    require_machine(trials[0])
    first, now = trials[0].experiment, datetime.now(UTC)
    folder = new_folder(experiment.out or "runs", first.workload, "anatomy", now)
    found: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION, "workload": experiment.workload, "engine": experiment.engine,
        "transport": experiment.transport, "transport_options": experiment.transport_options,
        "parameters": experiment.parameters, "options": first.options, "load": first.load.model_dump(mode="json"),
        "environment": environment(), "start_time": now.isoformat(timespec="seconds"), "folder": str(folder),
        "stages": STAGES, "published": PUBLISHED, "trials": [], "finished": False,
    }  # fmt: skip
    keep(folder, ANATOMY, found)
    for number, trial in enumerate(trials, 1):
        which = f"trial {number} of {len(trials)}, {_named(trial.experiment)}"
        found["trials"].append(_trial(trial, folder, partial(_tell, on_progress, which)))
        keep(folder, ANATOMY, found)
        if found["trials"][-1]["verdict"] == "interrupted":
            return found
    found["finished"] = True
    keep(folder, ANATOMY, found)
    return found


def _trials(experiment: Experiment, asked: Asked) -> list[Ready]:
    """Each one checked, all with chunks of one length: another would be another driver's part in the latency.

    Raises:
        InputError: with what is wrong with one, or cannot be taken apart.
    """
    _refuse_twice(experiment, asked)
    trials = []
    for window, size, rate in product(asked.batch_windows, asked.record_sizes, asked.rates_per_s):
        options = {PROBES: "progress", **experiment.options, **({} if window is None else {"trigger": window})}
        parameters = {**experiment.parameters, **({} if size is None else {RECORD_SIZE: size})}
        update = {"options": options, "parameters": parameters, "keep_results": True}
        load = experiment.load.model_copy(update={"rate": rate})
        trials.append(_checked(experiment.model_copy(update={**update, "load": load})))
    chunk_s = min(ready.chunk_for(ready.experiment.load.rate) for ready in trials) / US
    return [replace(ready, experiment=_with_chunk(ready.experiment, chunk_s)) for ready in trials]


def _with_chunk(trial: Experiment, chunk_s: float) -> Experiment:
    return trial.model_copy(update={"load": trial.load.model_copy(update={"chunk": chunk_s})})


def _refuse_twice(experiment: Experiment, asked: Asked) -> None:
    """What was asked for in two ways, of which one would be passed over in silence."""
    problems = []
    if asked.batch_windows != (None,) and "trigger" in experiment.options:
        rule = "is asked for by --batch-windows too"
        problems.append(Problem("option trigger", rule, experiment.options["trigger"], "one of both"))
    if asked.record_sizes != (None,) and RECORD_SIZE in experiment.parameters:
        rule = "is asked for by --record-size too"
        problems.append(Problem(f"set {RECORD_SIZE}", rule, experiment.parameters[RECORD_SIZE], "one of both"))
    if problems:
        raise InputError(problems)


def _tell(on_progress: Progress, which: str, snapshot: TrialSnapshot) -> None:
    """A trial's progress, with which one it is."""
    on_progress(replace(snapshot, note=f"{which}; {snapshot.note}" if snapshot.note else which))


def _named(trial: Experiment) -> str:
    window = f", batches {trial.options['trigger']}" if "trigger" in trial.options else ""
    size = f", {trial.parameters[RECORD_SIZE]} bytes" if RECORD_SIZE in trial.parameters else ""
    return f"{trial.load.rate:g}/s{window}{size}"


def _checked(trial: Experiment) -> Ready:
    """A trial, ready to start; InputError with what is wrong with it, or cannot be taken apart."""
    problems = [
        Problem(f"option {name}", "is set by the anatomy itself", trial.options[name], "leave it out")
        for name in event_log.options(Path())
        if name in trial.options
    ]
    if trial.engine != "spark":
        rule = "must be spark: of other engines no batch is known"
        problems.append(Problem("engine", rule, trial.engine, "--engine spark"))
    if trial.options[PROBES] == "off":
        rule = "must be progress or on: batches are known by it"
        problems.append(Problem(f"option {PROBES}", rule, "off", "leave it out"))
    if (events := trial.load.rate * trial.load.duration * LONGEST) > RECORDS_MAX:
        rule = f"must ask for at most {RECORDS_MAX:,} events a trial, its span extended to its longest"
        problems.append(Problem("--rates", rule, f"{events:,.0f}", "a lower rate, or a shorter --duration"))
    if problems:
        raise InputError(problems)
    ready = check(trial)
    if not _row_by_row(ready.flow):
        rule = "must make rows of the rows of one stream, for one sink: a window has no way of its own"
        raise InputError(Problem("workload", rule, trial.workload, "stamped_text, identity, filter or throughput"))
    return ready


def _row_by_row(flow: Flow) -> bool:
    nodes = tuple(graph.operators(flow))
    sources = [node for node in nodes if isinstance(node, Source)]
    return len(flow.sinks) == len(sources) == 1 and all(isinstance(node, _ROW_BY_ROW) for node in nodes)


def _trial(ready: Ready, folder: Path, on_progress: Progress) -> dict[str, Any]:
    """One trial, and what came of its results; of one that could not be made, why."""
    trial, before = ready.experiment, Clock.fixed_now()
    asked = trial.model_copy(update={"out": str(folder)})
    said = {
        "rate_per_s": trial.load.rate, "record_bytes": getattr(ready.parameters, RECORD_SIZE, None),
        "chunk_us": round((trial.load.chunk or 0.0) * US),
    }  # fmt: skip
    with Scratch("anatomy") as private:
        logs = Path(private) / "events"
        logs.mkdir()
        try:
            result, judged = run_judged(asked, on_progress, event_log.options(logs))
        except (EngineError, DriverError) as error:
            failed = {"batch_window": trial.options.get("trigger", ""), "run": "", "verdict": "invalid"}
            return {**said, **failed, "sentence": str(error), "clock_moved_us": None, **nothing("it did not start")}
        moved_us = Clock.fixed_now().offset_us - before.offset_us
        said |= {
            "batch_window": result.settings.get("trigger", ""), "run": result.folder, "verdict": result.verdict.value,
            "sentence": result.verdict.sentence, "clock_moved_us": moved_us,
        }  # fmt: skip
        if judged is None or judged.verified is None or result.verdict.value == "invalid":
            reason = "it is invalid" if result.verdict.value == "invalid" else "its answers were not compared"
            return {**said, **nothing(reason)}
        stamped = trial.transport in STAMPS
        seen = Seen(stamped, stamped and trial.load.frontier == "common")
        found = {**said, **taken_apart(judged, Path(str(result.folder)), event_log.work(logs), seen)}
    if abs(moved_us) > CLOCK_MOVED_US_MAX and not found["reason"]:
        found["doubts"].append("the machine's clock, by which Spark stamps, was moved within the trial")
    return found
