"""The command: how its words are read, what it writes, shows and refuses, and the trial that applies its advice."""

import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import Characterize, Experiment, build
from streamgauge.config.experiment_file import read
from streamgauge.core.errors import InputError
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import source
from streamgauge.engines.operator_profiler import IsolatedOperator, Samples, Slice
from streamgauge.engines.spark.operator_profiler import SparkOperatorProfiler
from streamgauge.engines.spark.parallelism import SETTING
from streamgauge.results.run import Result
from streamgauge.results.verdict import Verdict
from streamgauge.studies.operator_profile import characterize as characterize_module
from streamgauge.studies.operator_profile.profile import Timings
from streamgauge.system.cpu_pinning import cpus
from tests.unit.cli.helpers_commands import call_and_read
from tests.unit.studies.operator_profile.helpers_profile import by_name


def experiment(**sizes: str) -> Experiment:
    return build({"command": "characterize", "workload": "identity", "characterize": sizes})


def test_words_are_read_as_people_write_them() -> None:
    """10k is 10000 and 1e3 is 1000, as in rates; multipliers come once each."""
    sizes = experiment(slice_events="2.5k", slices="1e3", multipliers="1,2,2").characterize
    assert sizes == Characterize(slice_events=2500, slices=1000, multipliers=(1, 2))
    with pytest.raises(InputError, match="whole number"):
        experiment(slices="1.5")


def test_the_warm_up_counts_among_the_events() -> None:
    """Fifty million of them with it, and none more."""
    sizes = {"slices": "4000", "slice_events": "10k"}
    characterize_module.check_input(experiment(**sizes, warmup_slices="1000"))
    with pytest.raises(InputError, match="at most 50,000,000 events, warm-up included; got '50,010,000'"):
        characterize_module.check_input(experiment(**sizes, warmup_slices="1001"))


@pytest.mark.parametrize(("slices", "noted"), [(99, True), (100, False)])
def test_that_slices_are_too_few_is_noted(slices: int, noted: bool) -> None:
    """Those that warm up carry no p99."""
    notes = characterize_module._notes(Characterize(slices=slices, warmup_slices=20), [])
    assert ("fewer than 100 slices carry no p99, so nothing is advised" in notes) is noted


class Spark:
    """A process that times: slice N takes N seconds of 10 rows; one of two fails in slice `breaks`."""

    settings: ClassVar[dict[str, str]] = {"master": "local[1]"}

    def __init__(self, breaks: int) -> None:
        self._breaks = breaks
        self.numbers: list[int] = []

    def slice(self, number: int) -> Samples:
        self.numbers.append(number)
        samples = {"good": Slice(10, float(number), 0.0)}
        if number < self._breaks:
            samples["breaks"] = Slice(10, 1.0, 0.0)
        return Samples(samples, {"breaks": "it broke"} if number == self._breaks else {})

    def memory_bytes(self) -> int:
        return len(self.numbers)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Any]:
    """(timings, memory, settings) of operators that this process times, with its progress as last argument."""

    def timed(spark: Spark, operators: list[IsolatedOperator], config: Characterize, progress: list[str]) -> Any:
        monkeypatch.setattr(SparkOperatorProfiler, "timer", lambda *_: nullcontext(spark))
        return characterize_module._time(READY, operators, config, tmp_path, tmp_path / "log", progress.append)

    return timed


READY: Any = SimpleNamespace(engine_options={}, experiment=SimpleNamespace(engine="spark"))
NODE = source("numbers", Schema.from_types(value="int")).node
GOOD, BREAKS = (IsolatedOperator(name, NODE, {}, "__slice") for name in ("good", "breaks"))


@pytest.mark.parametrize("warmup", [0, 1, 3])
def test_slices_that_warm_up_are_thrown_away(time: Callable[..., Any], warmup: int) -> None:
    """Every slice is run, in order; only those behind the border count, and memory is looked at only then."""
    spark, progress = Spark(breaks=99), list[str]()
    timings, memory, settings = time(spark, [GOOD], Characterize(slices=4, warmup_slices=warmup), progress)
    assert spark.numbers == list(range(4 + warmup))
    assert [each.seconds for each in timings.slices["good"]] == [float(number) for number in range(warmup, warmup + 4)]
    assert (timings.methods, timings.failed, settings) == ({"good": "difference"}, {}, Spark.settings)
    assert min(memory) >= warmup
    assert progress[-1] == f"timing   slice {4 + warmup} of {4 + warmup}, {warmup} of them to warm up"


@pytest.mark.parametrize("breaks", [0, 1, 3])
def test_an_operator_that_failed_has_no_slice(time: Callable[..., Any], breaks: int) -> None:
    """Whether in the warm-up or after some slices: its reason stands alone, and the others go on."""
    timings, _, _ = time(Spark(breaks), [GOOD, BREAKS], Characterize(slices=4, warmup_slices=1), [])
    assert {name: len(slices) for name, slices in timings.slices.items()} == {"good": 4}
    assert timings.failed == {"breaks": "it broke"}


def test_where_nothing_came_in_nothing_is_started(time: Callable[..., Any], tmp_path: Path) -> None:
    """No operator, no Spark."""
    assert time(None, [], Characterize(), []) == (Timings(), [], {})
    assert list(tmp_path.iterdir()) == []


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Call:
    """streamgauge with these words: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: call_and_read(monkeypatch, capsys, *words)


@pytest.fixture
def characterize(call: Call) -> Call:
    """The command with these words."""
    return lambda *words: call("characterize", *words)


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each operator's tuples take 2 us, whatever it is; the reference counts as ever."""

    def time(resolved: Any, operators: Any, config: Any, *_: Any) -> Any:
        slices = {each.name: [Slice(100, 2e-4, 0.0)] * config.slices for each in operators}
        return Timings(slices, {each.name: "difference" for each in operators}), [2**30] * 5, {"master": "local[1]"}

    monkeypatch.setattr(characterize_module, "_time", time)
    monkeypatch.setattr(characterize_module, "require_machine", lambda resolved: None)


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[Experiment]:
    """What is run with the advice, in the place of running it; each trial finds that its rate is not sustained."""
    experiments: list[Experiment] = []

    def run(experiment: Experiment, *_: object) -> Result:
        experiments.append(experiment)
        folder = RunFolder.create(str(experiment.out), experiment.workload, experiment.engine, datetime.now(UTC))
        verdict = Verdict(value="not_sustained", sentence="made up")
        folder.write_result(folder.read_result().model_copy(update={"verdict": verdict}))
        return folder.read_result()

    monkeypatch.setattr(characterize_module, "run_single", run)
    return experiments


SMALL = ("word_count", "--slice-events", 10, "--warmup-slices", 2)


@pytest.mark.usefixtures("without_spark")
def test_json_is_the_file_of_the_folder(characterize: Call, tmp_path: Path) -> None:
    """The object on stdout, nothing else there, and the same in the run's folder; its form is what readers rely on."""
    code, out, _ = characterize(*SMALL, "--json", "--set", "words=4")
    profile = json.loads(out)
    (file,) = tmp_path.glob("runs/*-word_count-characterize/characterization.json")
    assert (code, json.loads(file.read_text())) == (0, profile)
    assert (profile["finished"], profile["parameters"]) == (True, {"window": 0.0, "words": 4})
    rows = by_name(profile)
    assert list(rows) == ["sentences", "splitter", "lower_case", "counter", "counts"]
    splitter, counter = rows["splitter"], rows["counter"]
    assert (splitter["selectivity"], splitter["rows_in"]) == (4.0, [1020])
    assert (counter["counted_as"], counter["thesis"]) == ("updates", [{"operator": "counter", "instances": 6}])
    assert splitter["advised_instances_by_weights"]["cumulative"] == 2  # 2 us a line of 2 + 4 * 2 + 4 * 2
    assert counter["advised_instances_by_weights"]["cumulative"] == 5
    assert profile["apply"]["line"] == "--option spark.sql.shuffle.partitions=5"
    assert profile["memory"]["behaviour"] == "fixed"


@pytest.mark.usefixtures("without_spark")
def test_its_folder_has_a_page_that_is_made_again(call: Call, tmp_path: Path) -> None:
    """`report` knows the folder; where a run is wanted, as in `compare`, the refusal says what it is."""
    assert call("characterize", *SMALL)[0] == 0
    (page,) = tmp_path.glob("runs/*-word_count-characterize/report.html")
    first = page.read_text()
    page.unlink()
    assert call("report", page.parent)[:2] == (0, f"{page}\n")
    assert page.read_text() == first
    code, _, err = call("compare", page.parent, page.parent)
    assert (code, "this is a characterization" in err) == (2, True)


@pytest.mark.usefixtures("without_spark")
def test_the_same_input_is_counted_again(characterize: Call) -> None:
    """Neither now nor this machine's processors have a part in what is counted; the seed has."""
    first, second, other = (
        json.loads(characterize(*SMALL, "--json", "--seed", seed)[1])["operators"] for seed in (1, 1, 2)
    )
    assert first == second
    assert [row["rows_out"] for row in first] != [row["rows_out"] for row in other]


@pytest.mark.usefixtures("without_spark")
def test_advice_is_applied_in_a_trial(characterize: Call, trials: list[Experiment], tmp_path: Path) -> None:
    """The same workload at the same rate with the setting advised, in the characterization's folder."""
    words = (*SMALL, "--apply", "--rate", "2k", "--set", "words=4", "--seed", "7", "--option", "buckets=4")
    code, out, _ = characterize(*words, "--json")
    assert code == 1
    (trial,), (folder,) = trials, (tmp_path / "runs").iterdir()
    assert (trial.command, trial.workload, trial.parameters) == ("run", "word_count", {"words": "4"})
    assert (trial.load.rate, trial.load.seed, trial.load.generators) == (2000.0, 7, None)
    assert trial.options == {"buckets": "4", SETTING: "5"}
    assert Path(str(trial.out)).resolve() == folder
    profile, before = json.loads(out), str(max(2, len(cpus())))
    applied = {"setting": SETTING, "before": before, "after": "5", "verdict": "not_sustained", "sentence": "made up"}
    assert {name: profile["applied"][name] for name in applied} == applied
    assert Path(profile["applied"]["run"]).resolve().parent == folder
    assert json.loads((folder / "characterization.json").read_text()) == profile
    assert f"{SETTING} {before} -&gt; 5" in (folder / "report.html").read_text()
    assert read(folder / "applied.toml") == trial.model_copy(update={"out": None})


@pytest.mark.usefixtures("without_spark")
def test_an_option_of_the_users_own_is_what_was_before(characterize: Call, trials: list[Experiment]) -> None:
    """And the advice stands in its place; the terminal shows both, and the trial's verdict."""
    code, out, _ = characterize(*SMALL, "--apply", "--option", f"{SETTING}=3")
    (line,) = [line for line in out.splitlines() if line.startswith("applied")]
    assert [word for word in (f"{SETTING} 3 -> ", "applied.toml runs it again") if word not in line] == []
    assert (code, "not sustained" in out, trials[0].options[SETTING] == "3") == (1, True, False)


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("words", [("identity", "--slice-events", 10), ("word_count", "--slices", 3)])
def test_where_nothing_acts_nothing_is_run(
    characterize: Call, trials: list[Experiment], tmp_path: Path, words: tuple[object, ...]
) -> None:
    """No exchange, or no advice: it says so, and that is no failure."""
    code, out, _ = characterize(*words, "--apply", "--warmup-slices", 2)
    (advice,) = [line for line in out.splitlines() if line.startswith("on spark ")]
    assert "not applicable: no operator" in advice
    assert (code, trials, list(tmp_path.glob("runs/*/applied.toml"))) == (0, [], [])


def test_all_that_is_wrong_is_reported_at_once(characterize: Call, tmp_path: Path) -> None:
    """Exit code 2, each with its way out; no folder is made."""
    code, out, err = characterize(
        "word_cont", "--slices", "none", "--slice-events", "1.5", "--warmup-slices", "-1", "--target", "0",
        "--multipliers", "1,x", "--weights", "heavy", "--rate", "1k", "--option", "tirgger=1s",
    )  # fmt: skip
    assert (code, out) == (2, "")
    named = ("--slices", "--slice-events", "--warmup-slices", "--target", "--multipliers", "--weights", "workload",
             "option tirgger")  # fmt: skip
    assert [name for name in named if f"error: {name}: " not in err] == []
    assert err.count("try:") == len(named)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("word_count", "--rate", "fast"), "error: --rate: "),
        (("word_count", "--slices", "100k", "--slice-events", "10k"), "at most 50,000,000 events"),
        (("word_count", "--option", "trigger=1 second"), "option trigger: has no effect"),
        (("word_count", "--set", "wrds=3"), "set wrds"),
        (("missing.py",), "must be an existing file"),
        (("word_count", "--out", "no/such"), "error: --out: "),
        # What only the run with the advice refuses is not found out after minutes of timing.
        (("word_count", "--set", "words=2000", "--rate", "20M", "--apply"), "error: --rate: "),
    ],
)
def test_each_bad_word_is_refused(characterize: Call, words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    """Before anything is started or written."""
    code, out, err = characterize(*words)
    assert (code, out, message in err) == (2, "", True)
    assert re.search("nothing was (started|measured)", err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("without_spark")
def test_an_own_job_is_one_operator(characterize: Call, tmp_path: Path) -> None:
    """Counted by its reference, over all that its function may read; lineage is in no tuple's size."""
    job = tmp_path / "own_job.py"
    job.write_text(
        "from streamgauge.jobs import Integer, job, stream\n\n\n"
        '@job(stream("a", Integer("v", 1, 10)), reach="0s",\n'
        '     reference="SELECT v, event_time, ingest_time, event_id FROM a WHERE v <= 5")\n'
        'def own(spark, inputs):\n    return inputs["a"].where("v <= 5")\n'
    )
    code, out, err = characterize(job, "--slices", "100", "--slice-events", "100", "--json")
    assert code == 0, err
    rows = by_name(json.loads(out))
    assert list(rows) == ["a", "own", "results"]
    own = rows["own"]
    assert (own["rows_in"], own["selectivity"]) == ([12_000], pytest.approx(0.5, abs=0.03))
    assert (rows["a"]["tuple_bytes"], own["tuple_bytes"]) == (4.0, pytest.approx(4.0, abs=0.2))
    assert own["time_per_tuple_us"]["median"] == pytest.approx(2.0)
    assert list(tmp_path.glob("runs/*-own_job-characterize"))
