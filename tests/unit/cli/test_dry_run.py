"""cli: `--dry-run` of a run and of a search."""

import csv
import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from streamgauge.core.errors import MissingOnMachine, Problem
from streamgauge.core.exit_codes import ExitCode
from streamgauge.core.machine_check import MachineCheck
from streamgauge.engines.spi import EnginePlugin
from streamgauge.preflight import generator_ceiling
from streamgauge.preflight.resolved_experiment import spare_s
from streamgauge.results.dry_run import TrialPlan
from streamgauge.studies.capacity import sustain as sustain_module
from streamgauge.studies.run import run as run_module
from streamgauge.system import java
from tests.unit.cli.helpers_commands import Invoke

CEILING_PER_S = 5e6
DATA = Path(__file__).parents[3] / "docs" / "results" / "data"


@pytest.fixture(autouse=True)
def nothing_but_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What starts, fetches or connects fails the test; the ceiling is not measured."""

    def fail(*_: Any) -> None:
        raise AssertionError("a dry run went too far")

    for module in (generator_ceiling, sustain_module):
        monkeypatch.setattr(module, "ceiling_of", lambda *_: CEILING_PER_S)
    for module in (run_module, sustain_module):
        monkeypatch.setattr(module, "require_machine", fail)
        monkeypatch.setattr(module, "create_folder", fail)


def plan_of(invoke: Invoke, *words: str) -> TrialPlan:
    done = invoke(*words, "--dry-run", "--json")
    plan = TrialPlan.model_validate(json.loads(done.stdout))
    assert done.returncode == (ExitCode.ENVIRONMENT if plan.missing else 0), done.stderr
    return plan


def gaps(plan: TrialPlan) -> list[str]:
    return [one.name for one in plan.unavailable]


def test_a_run_shows_what_it_would_start_and_how_long(stand: Path, invoke: Invoke) -> None:
    """For people on stdout. It leaves nothing behind."""
    done = invoke("run", "windowed_aggregation", "--generators", "2", "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    for part in ("2 generators", "engine spark", "--duration 400s", "nothing was started"):
        assert part in done.stdout
    assert list(stand.iterdir()) == []


def test_the_plan_of_a_run_as_json(invoke: Invoke) -> None:
    """Spans and processes of a trial. Windows of 4 s: 60 s hold 15, of which p95 needs 20."""
    plan = plan_of(invoke, "run", "windowed_aggregation", "--generators", "2", "--rate", "50k")
    assert (plan.rate_per_s, plan.duration_s, plan.trials, plan.trials_max) == (50_000, 60, 1, 1)
    assert {one.role: one.count for one in plan.starts} == {"generator": 2, "recorder": 1, "sut": 1}
    assert plan.seconds_max == plan.seconds + spare_s(60)
    assert plan.seconds > plan.warmup_s + plan.duration_s + plan.tail_s
    assert gaps(plan) == ["p95", "p99", "p99.9"]
    assert plan.fetches == ()


def test_a_way_out_gives_the_percentile(invoke: Invoke) -> None:
    """The duration that the plan names carries it."""
    first = plan_of(invoke, "run", "windowed_aggregation")
    words = {one.name: one.way_out for one in first.unavailable}["p99"].split()
    assert gaps(plan_of(invoke, "run", "windowed_aggregation", *words)) == ["p99.9"]


def test_a_span_by_events_is_planned_in_seconds(stand: Path, invoke: Invoke) -> None:
    """4 M events at 50 k/s are 80 s; a percentile is had by more events."""
    words = ("run", "windowed_aggregation", "--rate", "50k", "--events", "4M")
    plan = plan_of(invoke, *words)
    assert (plan.duration_s, plan.events, plan.unavailable[-1].way_out[:9]) == (80, 4_000_000, "--events ")
    assert "4,000,000 events in the measured span" in invoke(*words, "--dry-run").stdout


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (["--load-shape", "ramp:200k"], "latency_trend"),
        (["--transport", "kafka"], "processing_time"),
        ([], None),
    ],
)
def test_what_cannot_be_had(words: list[str], missing: str | None, invoke: Invoke) -> None:
    assert gaps(plan_of(invoke, "run", "identity", *words)) == ([missing] if missing else [])


def test_a_broker_is_started_and_fetched_unless_there_is_one(invoke: Invoke) -> None:
    """A broker of the user's own is neither asked nor fetched, and the plan says so."""
    ours = plan_of(invoke, "run", "identity", "--transport", "kafka")
    theirs = plan_of(invoke, "run", "identity", "--transport", "kafka", "--bootstrap-servers", "nowhere:9092")
    same = plan_of(invoke, "run", "identity", "--transport", "kafka", "--brokers", "nowhere:9092")
    assert [one.role for one in ours.starts] == ["generator", "recorder", "broker", "sut"]
    assert [one.role for one in theirs.starts] == ["generator", "recorder", "sut"]
    assert len(ours.fetches) == len(theirs.fetches) + 1
    assert any("nowhere:9092" in one for one in theirs.not_checked)
    assert same == theirs


def test_a_missing_java_is_shown(monkeypatch: pytest.MonkeyPatch, invoke: Invoke) -> None:
    """The rest of the plan does not need it."""

    def none(_: str) -> None:
        raise MissingOnMachine(Problem("PATH", "must lead to Java", "no java", "install it"))

    monkeypatch.setattr(java, "find_java", none)
    assert plan_of(invoke, "run", "identity").missing == ("PATH: must lead to Java; install it",)
    assert plan_of(invoke, "run", "identity", "--engine", "known").missing == ()
    check = MachineCheck("key", "none", (Problem("KEY", "must be there", None, "buy one"),))
    monkeypatch.setattr(EnginePlugin, "machine_checks", lambda _: [check])
    assert plan_of(invoke, "run", "identity", "--engine", "known").missing == ("KEY: must be there; buy one",)
    done = invoke("run", "identity", "--dry-run")
    assert ("missing here: PATH" in done.stdout, done.returncode) == (True, ExitCode.ENVIRONMENT)


def test_a_search_shows_its_trials(invoke: Invoke) -> None:
    """Without a start rate its first one is open. A rate that is fixed, and fewer trials, are taken."""
    plan = plan_of(invoke, "sustain", "identity")
    assert (plan.rate_per_s, plan.trials_max) == (None, 16)
    assert plan.trials < plan.trials_max
    few = plan_of(invoke, "sustain", "identity", "--trials-max", "4", "--start-rate", "20k")
    assert (few.rate_per_s, few.trials, few.trials_max) == (20_000, 4, 4)
    assert few.seconds_max < plan.seconds_max


@pytest.mark.parametrize(("words", "settings"), [
    (["run", "identity", "--rate", "2G", "--duration", "9d", "--engine", "sparc"],
     ["--duration", "--engine", "--rate"]),
    (["run", "identity", "--rate", "6M"], ["--rate"]),
    (["run", "identity", "--prometheus", "99999", "--queue-memory", "much"], ["--prometheus", "--queue-memory"]),
    (["sustain", "identity", "--resume", "nowhere"], ["--resume"]),
    (["sustain", "idenity", "--limit", "p99=2s"], ["--limit", "workload"]),
])  # fmt: skip
def test_what_the_run_refuses_is_refused_at_once(words: list[str], settings: list[str], invoke: Invoke) -> None:
    """Every problem, with exit code 2; above the generators' ceiling too."""
    done = invoke(*words, "--dry-run")
    named = sorted(line.split(": ")[1] for line in done.stderr.splitlines() if line.startswith("error: "))
    assert (done.returncode, done.stdout, named) == (2, "", settings)


def test_an_experiment_file_is_planned_as_its_command(stand: Path, invoke: Invoke) -> None:
    path = stand / "one.toml"
    path.write_text(invoke("run", "identity", "--rate", "20k", "--print-toml").stdout)
    assert plan_of(invoke, "experiment", str(path)) == plan_of(invoke, "run", "identity", "--rate", "20k")


def test_names_of_sparks_settings_are_not_checked_before_its_start(stand: Path, invoke: Invoke) -> None:
    words = ("run", "identity", "--option", "spark.sql.shufle.partitions=2", "--option", "trigger=1 second")
    named = [text for text in plan_of(invoke, *words).not_checked if "spark." in text]
    assert [("spark.sql.shufle.partitions" in text, "trigger" in text) for text in named] == [(True, False)]
    assert [text for text in plan_of(invoke, "run", "identity").not_checked if "spark." in text] == []


def test_the_usual_time_of_a_search_is_near_the_measured_ones(stand: Path, invoke: Invoke) -> None:
    """Half of the searches that were not stopped took less."""
    with (DATA / "search-time.csv").open() as file:
        took = [re.fullmatch(r"(\d+) min(?: (\d+) s)?", row["took"]) for row in csv.DictReader(file)]
    seconds = statistics.median(60 * int(one[1]) + int(one[2] or 0) for one in took if one is not None)
    assert plan_of(invoke, "sustain", "windowed_aggregation").seconds == pytest.approx(seconds, rel=0.25)


def test_files_of_data_are_named(stand: Path, invoke: Invoke) -> None:
    """With their rows and their stream; a stream whose rows are generated has none."""
    (stand / "bought.csv").write_text("user_id,gem_pack_id,price\n1,2,30\n4,5,60\n")
    words = ("run", "windowed_join", "--set", "data.purchases=bought.csv")
    assert [(one.stream, one.rows) for one in plan_of(invoke, *words).data] == [("purchases", 2)]
    assert (
        f"data        {stand / 'bought.csv'}   2 rows for the stream purchases\n" in invoke(*words, "--dry-run").stdout
    )
    assert plan_of(invoke, "run", "identity").data == ()
