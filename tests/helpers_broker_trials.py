"""Short real trials over a real broker, or another transport, on any of the engines that can read it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import build
from streamgauge.conformance.trials import DRAIN_S
from streamgauge.core.clock import Clock
from streamgauge.core.errors import MachineError
from streamgauge.core.trial import TrialSnapshot
from streamgauge.engines.registry import require, starter_of
from streamgauge.harness.start_processes import TestBed
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.results.run import Verification
from streamgauge.transports.kafka.broker import Broker
from streamgauge.transports.kafka.cluster import KafkaCluster
from streamgauge.trial.conductor import START_LEAD_US, TrialConductor, next_start, testbed_settings
from streamgauge.trial.events import Observer
from streamgauge.trial.policies import JudgedTrial
from streamgauge.trial.progress import Show, snapshots
from streamgauge.trial.trial_result import TrialResult

DURATION_S = 6.0
WINDOW = {"range": "2s", "slide": "1s", "packs": "200"}


def on_a_broker(test: Callable[..., None]) -> Callable[..., None]:
    """Marks a test that starts Spark and a broker; the fixture `jars` of its module skips it where there are none."""
    return pytest.mark.spark(pytest.mark.broker(pytest.mark.usefixtures("jars")(test)))


def require_jars(engine: str, **options: str) -> None:
    """The broker's and the engine's own; without a repository, and where none are kept, nothing here can be tried."""
    try:
        require(engine, "kafka", options)
    except MachineError as error:
        pytest.skip(str(error))


@contextmanager
def started(
    root: Path,
    workload: str,
    rate: str,
    engine: str = "spark",
    generators: int = 1,
    partitions: int | None = None,
    bound: str = "5m",
    transport_options: Mapping[str, str] | None = None,
    transport: str = "kafka",
    options: Mapping[str, str] | None = None,
    tuning: str = "tuned",
    warmup: str = "4s",
    **parameters: str,
) -> Iterator[tuple[ResolvedExperiment, TestBed, RunFolder]]:
    """Generators, a recorder, the engine and what stands between, running; ended at the end."""
    load = {"rate": rate, "warmup": warmup, "bound": bound, "generators": generators}
    values: dict[str, Any] = {
        "engine": engine,
        "transport": transport,
        "load": load,
        "out": str(root),
        "tuning": tuning,
    }
    values |= {"transport_options": transport_options or {}, "options": options or {}, "partitions": partitions}
    resolved = check(build({"workload": workload, "parameters": parameters, **values}))
    folder = RunFolder.create(root, resolved.workload.name, engine, datetime.now(UTC))
    with running(resolved, folder.path) as testbed:
        yield resolved, testbed, folder


@contextmanager
def running(resolved: ResolvedExperiment, path: Path) -> Iterator[TestBed]:
    """A started test bed, which writes below `path`."""
    make_engine = starter_of(resolved.experiment.engine, None, resolved.experiment.parallelism)
    with TestBed(testbed_settings(resolved), make_engine, path, Clock.fixed_now()) as testbed:
        testbed.start(resolved.plan(next_start(testbed) - START_LEAD_US, resolved.experiment.load.rate, 1.0))
        yield testbed


def trial(
    resolved: ResolvedExperiment,
    testbed: TestBed,
    folder: RunFolder,
    number: int = 1,
    on_progress: Show = lambda _: None,
    observe: Observer | None = None,
) -> TrialResult:
    """A short real trial in a folder of its own."""
    settings = JudgedTrial(
        resolved,
        resolved.experiment.load.rate,
        fresh=True,
        duration_s=DURATION_S,
        may_extend=False,
        drain_s=DRAIN_S,
    )
    conductor = TrialConductor(resolved, testbed, observe or snapshots(on_progress))
    return conductor.run(folder.trial(number, datetime.now(UTC)), settings)


class InMidTrial:
    """Does something once, at the first look at the measured span; `done` says whether it has."""

    def __init__(self, do: Callable[[], object]) -> None:
        self._do, self.done = do, False

    def __call__(self, snapshot: TrialSnapshot) -> None:
        if not self.done and snapshot.phase == "measured":
            self.done = True
            self._do()


def broker_of(testbed: TestBed) -> Broker:
    """The one that was started for the run."""
    assert isinstance(testbed._broker, KafkaCluster)
    assert testbed._broker._broker is not None
    return testbed._broker._broker


def check_answers(judged: TrialResult, rows_least: int) -> None:
    """Every result once, right, and every event read and committed once."""
    check_results(judged, rows_least)
    check_events(judged)


def check_results(judged: TrialResult, rows_least: int, independent: bool = True) -> None:
    """Judged by an independent reference or not, and nothing wrong with any answer."""
    assert judged.record.drained, judged.result.verdict.sentence
    check_right(judged.result.verification, rows_least, independent)


def check_right(found: Verification | None, rows_least: int, independent: bool = True) -> None:
    """As `check_results`, of what was found of the answers."""
    assert found is not None
    assert (found.judged, found.independent) == (True, independent), found.sentence
    assert found.fault_count == 0, (found.sentence, found.examples)
    assert found.matched == found.expected >= rows_least


def check_sinks(judged: TrialResult, rows_least: Mapping[str, int]) -> None:
    """Right results, as `check_results`, and at least so many of each sink."""
    check_results(judged, sum(rows_least.values()))
    assert judged.verified is not None
    matched = {sink.name: sink.verification.matched for sink in judged.verified.sinks}
    assert matched.keys() == rows_least.keys()
    assert all(matched[sink] >= least for sink, least in rows_least.items()), matched


def check_events(judged: TrialResult) -> None:
    """Every event went all the way once."""
    driver = judged.result.driver
    assert driver is not None
    assert driver.events_planned == driver.events_offered == driver.events_handed_out == driver.events_committed
