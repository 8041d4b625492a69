"""What a search stores in its folder to be resumed: the outcomes of its trials and the generators' ceiling."""

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from streamgauge.artifacts.atomic_write import OUT, disk, write_text
from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config import reproduce
from streamgauge.config.experiment import Experiment
from streamgauge.config.experiment_file import read as read_experiment
from streamgauge.core.errors import Rule, broken, refuse, require
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.studies.capacity.search_state import TrialOutcome
from streamgauge.user_workloads.lookup import changed_files, with_absolute_paths

_SEARCH_SETTINGS = "must be the search's own with --resume"
_FREE = ("out", "search.resume", "search.trials_max", "prometheus")
"""Settings that --resume may change: it may allow more trials, and export figures to another port."""
MEMO, CEILING = "search.jsonl", "ceiling.json"


def stored_ceiling(folder: RunFolder, measure: Callable[[], float]) -> float:
    """The generators' ceiling of a search, measured once and stored, since a resumed search needs the same rates."""
    path = folder.path / CEILING
    with suppress(FileNotFoundError, ValueError, TypeError):  # missing, empty, broken, or not a number
        return float(json.loads(path.read_text()))
    ceiling = measure()
    write_text(path, json.dumps(ceiling), OUT)
    return ceiling


def recorded(folder: RunFolder) -> list[TrialOutcome]:
    """The outcomes that a search left in its folder, except a last line that was cut short."""
    outcomes = []
    with suppress(FileNotFoundError, json.JSONDecodeError, TypeError):
        for line in (folder.path / MEMO).read_text().splitlines():
            outcomes.append(TrialOutcome(**json.loads(line)))
    return outcomes


def rewrite(folder: RunFolder, outcomes: Iterable[TrialOutcome]) -> None:
    """Replaces the memo, so that it ends with a whole line."""
    write_text(folder.path / MEMO, "".join(map(_line, outcomes)), OUT)


def remember(folder: RunFolder, outcome: TrialOutcome) -> None:
    """Adds an outcome to the memo."""
    path = folder.path / MEMO
    with disk(path), path.open("a") as memo:
        memo.write(_line(outcome))


def _line(outcome: TrialOutcome) -> str:
    """One line of the memo."""
    return json.dumps(asdict(outcome)) + "\n"


def require_same_job(resolved: ResolvedExperiment, folder: RunFolder) -> None:
    """InputError if a user job's files changed since the search started."""
    way_out = "restore the file, or start a new search without --resume"
    refuse(list(changed_files(resolved.workload, folder.read_result().job_files, way_out)))


def resumed(experiment: Experiment) -> tuple[Experiment, RunFolder | None]:
    """The experiment, and the folder of the search to continue."""
    experiment = with_absolute_paths(experiment)
    if experiment.search.resume is None:
        return experiment, None
    folder = RunFolder(Path(experiment.search.resume))
    file = folder.path / "experiment.toml"
    rule, way_out = "must be the folder of a search", "the run folder of a sustain"
    require(file.is_file(), "search.resume", rule, str(folder.path), way_out)
    previous = read_experiment(file)
    require(previous.command == "sustain", "search.resume", rule, str(folder.path), way_out)
    given = experiment.model_dump(mode="json")
    name = experiment.workload
    refuse([
        *broken(Rule(name == previous.workload, "workload", _SEARCH_SETTINGS, name, "leave WORKLOAD out")),
        *reproduce.contradictions(given, previous.model_dump(mode="json"), _SEARCH_SETTINGS, _FREE),
    ])  # fmt: skip
    previous = previous.model_copy(update={"prometheus": experiment.prometheus})
    made = len(recorded(folder))
    if any(setting.name == "search.trials_max" for setting in reproduce.settings(given)):
        search = previous.search.model_copy(update={"trials_max": experiment.search.trials_max})
        previous = previous.model_copy(update={"search": search})
    allowed = previous.search.trials_max
    rule = f"must be at least {made}, the number of trials that this search has made"
    require(allowed >= made, "search.trials_max", rule, allowed, str(made + 4))
    return previous, folder
