"""The folder of a study to resume: what was asked then, and one process at a time, because two would overwrite each
other's findings.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from streamgauge.artifacts.atomic_write import disk
from streamgauge.config import reproduce
from streamgauge.config.experiment import ConfigModel, Experiment
from streamgauge.config.experiment_file import read
from streamgauge.core.errors import Rule, broken, refuse, require
from streamgauge.system.disk import try_lock
from streamgauge.trial.events import ignore
from streamgauge.user_workloads.lookup import with_absolute_paths

LOCK = ".running"
Lock = Callable[[Path], None]
"""Locks a folder. InputError if another process runs the study in it."""


@contextmanager
def exclusive(setting: str, study: str) -> Iterator[Lock]:
    """Gives the lock, and holds it to the end; `setting` and `study` (such as `a search`) are those of its error.

    The folder to resume is locked before anything is checked, because checks disturb a study that still runs.
    """
    with ExitStack() as stack:

        def lock(folder: Path) -> None:
            path = folder / LOCK
            with disk(path):
                locked = stack.enter_context(try_lock(path))
            rule = f"must be {study} that has ended, but another process is still running this one"
            require(
                locked, setting, rule, str(folder), f"wait for it, or end it with Ctrl-C, and then --resume {folder}"
            )

        yield lock


def requested_study(
    experiment: Experiment, file: str, defaults: ConfigModel, what: str, lock: Lock = ignore
) -> Experiment:
    """The experiment with absolute paths; with `search.resume` the stored one, which other settings must not change.

    `file`: the study's, in its folder, which `lock` locks. `defaults`: of the section that is named as the command.
    `what`: such as `a sweep`.
    """
    resume, command = experiment.search.resume, experiment.command
    if resume is None:
        return with_absolute_paths(experiment)
    folder = Path(resume)
    stored = read(folder / "experiment.toml") if (folder / file).is_file() else None
    rule, way_out = f"must be the folder of {what}, which holds a {file}", f"a folder runs/*-{command}"
    require(stored is not None and stored.command == command, "search.resume", rule, resume, way_out)
    assert stored is not None
    lock(folder)
    given, rule = experiment.model_dump(mode="json"), "must be the study's own with --resume"
    # A command line always has the defaults of the section, which a stored study may differ from.
    usual = defaults.model_dump(mode="json")
    given[command] = {name: value for name, value in (given[command] or {}).items() if value != usual[name]}
    is_same = experiment.workload in ("", stored.workload)
    refuse([
        *broken(Rule(is_same, "workload", rule, experiment.workload, "leave WORKLOAD out")),
        *reproduce.contradictions(given, stored.model_dump(mode="json"), rule, ("out", "search.resume")),
    ])  # fmt: skip
    return stored
