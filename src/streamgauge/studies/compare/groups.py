"""The run groups of a comparison: reads the runs that the command line names, and refuses unusable ones."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, product
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.artifacts.run_folder import STUDIES, RunFolder
from streamgauge.core.arrays import Floats
from streamgauge.core.errors import InputError, Problem
from streamgauge.core.exit_codes import ExitCode
from streamgauge.core.formatting import flatten, format_fact
from streamgauge.engines.registry import location_settings
from streamgauge.metrics.histogram import read_log, slots_of
from streamgauge.results import labels
from streamgauge.results.comparison import ComparedRun, ComparedSide, NotTheSame
from streamgauge.results.run import Result
from streamgauge.results.search import SearchResult, last_that_held
from streamgauge.results.text.sentences import counts_in_words
from streamgauge.stats.ratio import Resampled

Kind = Literal["run", "search"]

_FILES = ("result.json", *STUDIES)
"""Files that mark a folder; studies are refused by their kind."""
_WAY_OUT = "a run folder, a search's folder, a folder that holds runs, or several separated by commas"
UNJUDGED = "answers not judged"


@dataclass(frozen=True)
class RunData:
    """One run, or one search with the figures of its confirmed rate; `seconds` is the folder with the series."""

    folder: RunFolder
    seconds: RunFolder
    result: Result

    @property
    def kind(self) -> Kind:
        return "search" if self.result.search is not None else "run"

    @property
    def missing_files(self) -> tuple[str, ...]:
        """Files that a run with such a result leaves, and that are gone."""
        latency = self.result.latency.event_time_us
        left = {"series.parquet": self.result.rate is not None, "latency.hlog": latency is not None and latency.count}
        return tuple(name for name, was in left.items() if was and not (self.seconds.path / name).exists())

    @cached_property
    def series(self) -> pa.Table:
        """The seconds of the measured span."""
        return self.seconds.read_series().filter(pc.field("phase") == "measured")

    def column(self, name: str) -> Floats:
        """The known values of a column in the measured span (n,)."""
        return np.asarray(self.series[name].drop_null().to_numpy(), dtype=np.float64)

    @cached_property
    def resampled(self) -> dict[str, Resampled]:
        """Kind of latency to its resampled seconds from latency.hlog, of kinds with results in several seconds.

        With several sinks (lines tagged `event_time/SINK`), the slowest one's, because its latency is the run's.
        """
        sink = f"/{self.result.slowest_sink}" if self.result.slowest_sink else ""
        with self.seconds.whole("latency.hlog"):
            by_tag = groupby(read_log(self.seconds.read_hlog() or ""), key=itemgetter(0))
            packed = {tag: slots_of(h for _, _, h in lines if h.count) for tag, lines in by_tag}
        return {
            tag.removesuffix(sink): Resampled(counts, values.astype(np.float64))
            for tag, (counts, values) in packed.items()
            if tag.partition("/")[2] == sink[1:] and len(counts) > 1
        }


@dataclass(frozen=True)
class RunGroup:
    """The runs of one side, in the order given."""

    name: str
    given: str
    runs: tuple[RunData, ...]

    @property
    def answer(self) -> ComparedSide:
        runs = tuple(
            ComparedRun(
                run_id=run.result.run_id,
                folder=str(run.folder.path),
                engine=run.result.engine,
                start_time=run.result.start_time,
                verdict=run.result.verdict.value,
                failed=_failed(run.result),
            )
            for run in self.runs
        )
        return ComparedSide(given=self.given, runs=runs)


def _failed(result: Result) -> str:
    """The run's failures, wrong answers first."""
    verdict, answers = result.verdict, answers_fault(result)
    found = [answers] if answers else []
    by = [name for name in verdict.decided_by if name != "answers"]
    if verdict.value != "sustained" and (by or not found):
        found.append(labels.VERDICTS[verdict.value] + (f" by {', '.join(by)}" if by else ""))
    return ", ".join(found)


def answers_fault(result: Result) -> str:
    """Why the answers are not known to be right; empty if they are."""
    if result.verification is None or not result.verification.judged:
        return UNJUDGED
    return "" if result.verification.right else f"wrong answers ({counts_in_words(result.verification.faults)})"


def read_group(name: str, given: str) -> RunGroup:
    """Side `name` (A or B) from the text `given` for it; `InputError` with all its problems."""
    problems: list[Problem] = []
    runs: list[RunData] = []
    for folder in _folders(name, given, problems):
        try:
            run = _read_run(name, folder)
        except InputError as error:
            problems += [replace(problem, setting=name) for problem in error.problems]
        else:
            problems += copy_problems(name, "must be different runs; this one is there twice", "leave out", runs, [run])
            runs.append(run)
    if problems:
        raise InputError(_merged_problems(problems))
    return RunGroup(name, given, tuple(runs))


def _merged_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Merges a problem that several runs share, with all their names."""
    offenders: dict[tuple[str, str, str, ExitCode], list[str]] = {}
    for one in problems:
        offenders.setdefault((one.setting, one.rule, one.way_out, one.code), []).append(str(one.got))
    return [
        Problem(setting, rule, ", ".join(got), way_out, code)
        for (setting, rule, way_out, code), got in offenders.items()
    ]


def _folders(name: str, given: str, problems: list[Problem]) -> Iterator[Path]:
    """The run folders behind the words; unusable words go to `problems`."""
    for part in [given] if Path(given).exists() else given.split(","):
        path, named = Path(part.strip()), part.strip() != ""
        inside = sorted(found.parent for found in path.glob("*/result.json")) if named else []
        if named and (path.is_file() or any((path / file).exists() for file in _FILES)):
            yield path
        elif inside:
            yield from inside
        else:
            rule = "must hold a result.json, or runs" if path.is_dir() and named else f"must be there, not {part!r}"
            problems.append(Problem(name, rule, part, _WAY_OUT))


def _read_run(name: str, path: Path) -> RunData:
    folder = RunFolder.open(path)
    result = folder.read_result()
    verdict, where = result.verdict, str(folder.path)
    reason = verdict.sentence.removeprefix(f"{verdict.value}: ").rstrip(".")
    if verdict.value in ("invalid", "interrupted"):
        rule = f"must be runs whose figures may be used, and not {verdict.value} ({reason})"
        way_out = "run it again, or name the runs without it"
        raise InputError(Problem(name, rule, where, way_out, ExitCode.INVALID))
    if result.search is None:
        return RunData(folder, folder, result)
    if result.search.sustained_per_s is None or not result.search.confirmed:
        rule = f"must be a search that confirmed a rate; {result.search.sentence or 'this one did not'}"
        raise InputError(Problem(name, rule, where, "streamgauge sustain without --quick, or one of its trials/NN"))
    return RunData(folder, _confirming(folder, result.search), result)


def _confirming(folder: RunFolder, search: SearchResult) -> RunFolder:
    """The folder of the trial that confirmed the rate; the search's own (without seconds) if it is gone."""
    confirming = last_that_held(search.trials, search.sustained_per_s)
    trials = {trial.name: trial for trial in folder.trials()}
    return trials.get(Path(confirming.folder).name, folder) if confirming is not None else folder


def copy_problems(
    name: str, rule: str, way_out: str, before: Iterable[RunData], runs: Iterable[RunData]
) -> list[Problem]:
    """A run must not count twice: on both sides it cannot differ from itself, but its interval would suggest that."""
    return [
        Problem(name, f"{rule}, or is a copy", str(run.folder.path), f"{way_out} {other.folder.path}")
        for run, other in product(runs, before)
        if run.result.model_copy(update={"folder": ""}) == other.result.model_copy(update={"folder": ""})
    ]


_IRRELEVANT = (
    "command",
    "workload",
    "engine",
    "isolation",
    "cpus.driver",
    "cpus.sut",
    "tuning",
    "out",
    "bind",
    "port",
    "prometheus",
    "keep_results",
    "load.start",
)
_ALIASES = {"options.": "settings.", "master": "settings.master"}


def differing(of_a: list[dict[str, Any]], of_b: list[dict[str, Any]]) -> tuple[NotTheSame, ...]:
    """What differs between the facts of both sides, each a mapping from dotted names."""
    names = dict.fromkeys(name for facts in (*of_a, *of_b) for name in facts)
    found = [NotTheSame(setting=name, a=_values(of_a, name), b=_values(of_b, name)) for name in names]
    # Seeds may differ within a side if both sides have the same ones.
    differing = {
        one.setting: one for one in found if set(one.a) != set(one.b) or (len(one.a) > 1 and one.setting != "load.seed")
    }
    return tuple(one for name, one in differing.items() if not _is_redundant(name, differing))


def facts_of(run: RunData) -> dict[str, Any]:
    """Dotted name to value of everything that should be the same in a comparison."""
    result = run.result
    experiment, environment = flatten(result.experiment), flatten(result.environment)
    left_out = {*_IRRELEVANT, "parameters", "options", "cpus"}  # the last three are there if they are empty
    of_search = {name for name in experiment if name.startswith("search.")}
    left_out |= {"load.rate", "search.start_rate", "search.resume"} if run.kind == "search" else of_search
    settings = {name: value for name, value in result.settings.items() if name not in location_settings()}
    return {
        "workload": result.workload,
        "engine": result.engine,
        "tuning": result.tuning,
        "isolation": result.isolation,
        **{name: value for name, value in experiment.items() if name not in left_out},
        **{f"job_files.{name}": f"SHA-256 {digest[:12]}" for name, digest in result.job_files.items()},
        **{f"settings.{name}": value for name, value in settings.items()},
        **{f"environment.{name}": value for name, value in environment.items()},
    }


def _values(facts: list[dict[str, Any]], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(format_fact(name.rpartition(".")[2], one.get(name)) for one in facts))


def _is_redundant(name: str, names: Iterable[str]) -> bool:
    """Whether the settings in force already contain this requested option."""
    return any(
        name.startswith(requested) and name.replace(requested, effective, 1) in names
        for requested, effective in _ALIASES.items()
    )
