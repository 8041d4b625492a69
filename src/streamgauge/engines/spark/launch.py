"""Starts a process that starts Spark, and explains failed starts."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle

from streamgauge.core.errors import (
    EngineError,
    InputError,
    JobError,
    MachineError,
    MissingOnMachine,
    Problem,
    SettingError,
)
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.spark.session.environment import environment_note, environment_of
from streamgauge.engines.spark.session.python_workers import (
    HOME_NOTICE,
    UNCHANGED,
    VARIABLE,
    WORKERS_NOTICE,
    view_of_spark_home,
)
from streamgauge.engines.spark.session.session import LOG_LEVEL, RUNNING, end_session
from streamgauge.engines.spi import Edges
from streamgauge.system.child_processes import Child, ChildFailed, ChildSilent, Handlers, serve
from streamgauge.system.java import installed_spark_home
from streamgauge.system.machine import slow_start_advice

START_TIMEOUT_S = 180.0
_ZIP = "zip"
"""The value of `worker_start` that leaves Spark's home as it is."""
_REFUSALS = {kind.__name__: kind for kind in (JobError, MissingOnMachine, SettingError)}
"""Errors that the process may send over its pipe, by name."""
_JVM_ERROR_PREFIXES = ("Error occurred during initialization of VM", "Error: Could not", "Unrecognized VM option")


def spark_process(
    module: str,
    job: Any,
    folder: Path,
    log: Path,
    on_cpus: Sequence[int] | None = None,
    master: str = "local",
    options: Mapping[str, str] = {},
    name: str = "spark",
) -> Child:
    """A process that runs `module` on a job with Spark at `master`; `options` are the engine's.

    `folder`, which exists, takes what both write, `log` what the process says.
    """
    path = folder / "job.pkl"
    path.write_bytes(cloudpickle.dumps(job))
    from_zip = options.get("worker_start") == _ZIP
    environment = environment_of(
        installed_spark_home() if from_zip else view_of_spark_home(folder / "spark-home"), master
    )
    if options.get("python_workers") == UNCHANGED:
        environment[VARIABLE] = UNCHANGED
    return Child(name, module, [str(path)], log, on_cpus, environment)


def serve_job(commands_of: Callable[[Any], Handlers]) -> None:
    """The process itself: answers commands on the job in the file of its command line, until the driver ends."""
    path = Path(sys.argv[1])
    serve(commands_of(cloudpickle.loads(path.read_bytes())), on_orphaned=end_session, scratch=path.parent)


def started(child: Child, master: str = "local", options: Mapping[str, str] = {}) -> dict[str, str]:
    """Waits until Spark has started in it: the settings in force, with what these options do to every start.

    Raises:
        SettingError, JobError, InputError: what Spark, or the job itself, refuses; a function that does not return.
        MachineError: this machine lacks what the job needs, which only the started Spark could say.
        EngineError: Spark did not start, with the JVM's own reason where it never came up.
    """
    try:
        settings: dict[str, str] = child.ask("start", START_TIMEOUT_S)
    except ChildFailed as error:
        if error.problems:
            raise _REFUSALS.get(error.kind, InputError)(error.problems) from None
        if error.kind == MachineError.__name__:
            raise MachineError(str(error)) from None
        if isinstance(error, ChildSilent) and child.stage.startswith(RUNNING):
            rule = f"the function must return its DataFrame within {START_TIMEOUT_S:g} s"
            way_out = "remove calls that wait, and move slow work into functions that Spark's workers call"
            raise JobError(Problem("job", rule, child.stage, way_out)) from None
        slow = f". {slow_start_advice()}" if isinstance(error, ChildSilent) else ""
        reason = f"spark did not start: {error}{slow}{_jvm_message(child.log)}{environment_note(master)}"
        raise EngineError(reason, str(child.log)) from None
    # What is done for the Python workers of every start, unless an option leaves them to Spark.
    home = {} if options.get("worker_start") == _ZIP else {"spark home": HOME_NOTICE}
    workers = {} if options.get("python_workers") == UNCHANGED else {"python workers": WORKERS_NOTICE}
    return {**settings, **home, **workers, "log level": LOG_LEVEL}


def _jvm_message(log: Path) -> str:
    """The JVM's message if it did not start, because Spark's message lacks it."""
    lines = log.read_text(errors="replace").splitlines()
    at = next((index for index, line in enumerate(lines) if line.startswith(_JVM_ERROR_PREFIXES)), len(lines))
    message = ": ".join(one.strip() for one in lines[at : at + 2])[:300]
    return f"\n  {message}" if message else ""


@dataclass(frozen=True)
class SparkJob:
    """The driver's request, passed by file. `mode`: the name of an execution mode."""

    flow: Flow
    edges: Edges
    options: dict[str, str]
    master: str
    folder: str
    checkpoint: str
    jars: tuple[str, ...] = ()
    parallelism: int | None = None
    mode: str = "micro-batch"
