"""What this machine has and lacks: the checks that packages offer, for the refusal of a run and for `doctor`."""

from collections.abc import Iterable

from streamgauge.config.experiment import Experiment, build
from streamgauge.core.clock import Clock
from streamgauge.core.errors import InputError, Problem, refuse
from streamgauge.core.machine_check import MachineCheck, refuse_missing
from streamgauge.engines import registry as engines
from streamgauge.harness.monitors import BackgroundSample
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.system import machine
from streamgauge.system.machine_checks import quality_checks, starting_checks
from streamgauge.transports import registry as transports

DEFAULT_RUN = {"command": "run", "workload": "windowed_aggregation"}
"""The run that a machine must be able to start. Everything else is the default."""


def require_machine(*trials: ResolvedExperiment) -> None:
    """Raises MachineError if this machine lacks something that a trial needs, InputError if its master does.

    It also reads the code's commit for the results, before it can change.
    """
    machine.commit()
    refuse_missing(_starting_checks(trials))
    for one in {one.experiment.workload: one for one in trials}.values():
        one.workload.require()
    for one in {(one.experiment.engine, one.experiment.transport): one for one in trials}.values():
        engines.require(one.experiment.engine, one.experiment.transport, one.transport_options)
    masters = {
        (
            one.experiment.engine, one.experiment.master, one.experiment.parallelism,
            *sorted(one.engine_options.items()),
        ): one
        for one in trials
    }  # fmt: skip
    for one in masters.values():
        of = one.experiment
        engines.entry(of.engine).require_master(of.master, one.engine_options, of.parallelism)


def missing_here(*trials: ResolvedExperiment) -> tuple[str, ...]:
    """What this machine lacks for trials, as far as that can be seen without a fetch or a connection."""
    engine_names = dict.fromkeys(one.engine.name for one in trials)
    checks = [
        *_starting_checks(trials),
        *(one for name in engine_names for one in engines.entry(name).machine_checks()),
    ]
    problems = (problem for one in checks if one.status == "missing" for problem in one.problems)
    return tuple(dict.fromkeys(f"{one.setting}: {one.rule}; {one.way_out}" for one in problems))


def _starting_checks(trials: Iterable[ResolvedExperiment]) -> list[MachineCheck]:
    return starting_checks(next((one.engine.name for one in trials if one.engine.needs_java), ""))


def machine_checks(brokers: str | None = None) -> list[MachineCheck]:
    """All checks of this machine, within seconds. Nothing is fetched.

    `brokers`: HOST:PORT,... of brokers that shall answer. Raises InputError if this is no such list.
    """
    named = {} if brokers is None else {"brokers": brokers}
    refuse([problem for name in transports.BROKERED for problem in transports.problems(name, named)])
    background = BackgroundSample(Clock.fixed_now())
    experiment = build(DEFAULT_RUN)
    needs_java = engines.entry(experiment.engine).capabilities.needs_java
    return [
        *starting_checks(experiment.engine if needs_java else ""),
        default_run_check(experiment),
        *quality_checks(),
        *engines.machine_checks(experiment.engine),
        *(one for name in transports.NAMES for one in transports.transport(name).machine_checks({})),
        *(one for name in transports.BROKERED if named for one in transports.transport(name).machine_checks(named)),
        background.check(),
    ]


def can_start(checks: Iterable[MachineCheck]) -> bool:
    """Whether nothing is missing that every run needs."""
    return not any(one.status == "missing" and not one.needed_with for one in checks)


def named_are_missing(checks: Iterable[MachineCheck]) -> bool:
    """Whether brokers that were named do not answer, which runs with others do not need."""
    return any(one.status == "missing" and one.name == "brokers" for one in checks)


def default_run_check(experiment: Experiment) -> MachineCheck:
    """Whether the settings of a default run fit this machine and the folder in which the command runs."""
    problems: tuple[Problem, ...] = ()
    try:
        check(experiment)
    except InputError as error:
        problems = error.problems
    found = f"the settings of run {experiment.workload} are {'refused' if problems else 'accepted'} here"
    return MachineCheck("default_run", found, problems)
