"""What follows from counts and times: weights, instances, what applies on Spark; and the command around it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.options_and_settings import Characterize, Experiment, read
from streamgauge.core.schema import Schema
from streamgauge.dataflow import graph
from streamgauge.dataflow.builder import source, tumble
from streamgauge.dataflow.nodes import Flow, Node, Source
from streamgauge.engines.operator_profiler import Slice
from streamgauge.engines.spark.parallelism import SETTING
from streamgauge.engines.spark.user_job.operator_profiler import SparkOperatorProfiler
from streamgauge.report.documents import profile as profile_document
from streamgauge.report.terminal import console
from streamgauge.results.profile import ParallelismPlans
from streamgauge.results.run import Result
from streamgauge.results.verdict import Verdict
from streamgauge.studies.operator_profile import apply_advice, command, profile
from streamgauge.studies.operator_profile.operator_io import OperatorIO
from streamgauge.studies.operator_profile.profile import Timings
from streamgauge.system.machine import cpus
from streamgauge.workloads.registry import get, names
from tests.helpers_study_results import operator_profile, profiled_operator, tuple_time
from tests.unit.cli.helpers_commands import call_and_read

Say = Callable[..., tuple[int, str, str]]
NUMBERS = source("numbers", Schema.of(key="int", value="int"))
FLOW = (
    NUMBERS.where("value > 1", name="dear").select(key="key", name="key").running(keys="key", n="count(*)").sink("out")
)
ROWS = {"numbers": 1000, "dear": 100, "key": 100, "running": 20}


def counted(flow: Flow, rows: dict[str, int]) -> dict[Node, OperatorIO]:
    """As if the reference had counted so many rows."""
    return {
        node: OperatorIO(node, node, tuple(rows[each.name] for each in graph.inputs(node)), rows[node.name], 8.0)
        for node in graph.operators(flow)
    }


def timed(**us: float) -> Timings:
    """As if each operator's tuples had taken so long in each of a hundred slices."""
    slices = {name: [Slice(100, 1e-4 * each, 0.0)] * 100 for name, each in us.items()}
    return Timings(slices, dict.fromkeys(slices, "difference"))


def profile_figures(*given: Any) -> dict[str, Any]:
    """The figures as they stand in characterization.json."""
    arguments: tuple[Any, ...] = (*given, SparkOperatorProfiler())
    return profile.profile_figures(*arguments).model_dump(mode="json")


def by_name(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in found["operators"]}


def test_both_weights_by_hand() -> None:
    """One row in ten is kept, and each takes 1 us everywhere.

    Cumulative: 1, 0.1, 0.1 of 1.2 -> 8.3, 0.8, 0.8 of ten. Immediate: 1, 0.1 (of the filter), 1 (of the projection)
    of 2.1 -> 4.8, 0.5, 4.8: as if the counter had as much to do as the filter.
    """
    rows = by_name(
        profile_figures("made", FLOW, counted(FLOW, ROWS), timed(dear=1.0, key=1.0, running=1.0), Characterize())
    )
    weights = {name: row["weights"] for name, row in rows.items()}
    assert weights["dear"] == {"cumulative": [1.0], "immediate": [1.0]}
    assert weights["key"] == {"cumulative": [0.1], "immediate": [0.1]}
    assert weights["running"] == {"cumulative": [0.1], "immediate": [1.0]}
    instances = {name: row["advised_instances_by_weights"] for name, row in rows.items()}
    assert instances == {
        "numbers": {"cumulative": None, "immediate": None},
        "dear": {"cumulative": 9, "immediate": 5},
        "key": {"cumulative": 1, "immediate": 1},
        "running": {"cumulative": 1, "immediate": 5},
        "out": {"cumulative": None, "immediate": None},
    }


def test_what_was_not_timed_has_a_reason_and_no_share() -> None:
    """A source and a sink never are; one that failed says why; one with too few slices has a median, and no advice."""
    some = {"dear": [Slice(100, 1e-4, 0.0)] * 100, "key": [Slice(100, 1e-4, 0.0)] * 99}
    timings = Timings(some, dict.fromkeys(some, "difference"), {"running": "it broke"})
    found = profile_figures("made", FLOW, counted(FLOW, ROWS), timings, Characterize())
    rows = by_name(found)
    reasons = {name: row["time_reason"] for name, row in rows.items()}
    assert reasons == {
        "numbers": profile.SOURCE_REASON,
        "dear": None,
        "key": "p99 needs 100 slices with rows, and there were 99",
        "running": "it could not be run alone: it broke",
        "out": profile.SINK_REASON,
    }
    assert rows["key"]["time_per_tuple_us"]["median"] == pytest.approx(1.0)
    assert rows["running"]["time_per_tuple_us"] is None
    assert {name: row["advised_instances_by_weights"]["cumulative"] for name, row in rows.items()} == {
        "numbers": None, "dear": 10, "key": None, "running": None, "out": None,
    }  # fmt: skip
    assert found["apply"]["line"] is None
    assert found["apply"]["reason"] == "not applicable: no operator after an exchange could be timed"


@pytest.mark.parametrize(("weights", "instances"), [("cumulative", (9, 1, 1)), ("immediate", (5, 1, 5))])
def test_what_others_read_has_flat_names(weights: profile.Weights, instances: tuple[int, int, int]) -> None:
    """[design 7]: bytes of a tuple, its p99, and the instances by the weights that were asked for, a number each."""
    times = timed(dear=1.0, key=1.0, running=1.0)
    rows = by_name(profile_figures("made", FLOW, counted(FLOW, ROWS), times, Characterize(weights=weights)))
    worked = [rows[name] for name in ("dear", "key", "running")]
    assert tuple(row["advised_instances"] for row in worked) == instances
    assert [row["time_per_tuple_us_p99"] for row in worked] == [pytest.approx(1.0)] * 3
    assert {row["tuple_bytes"] for row in rows.values()} == {8.0}
    for name in ("numbers", "out"):
        assert (rows[name]["time_per_tuple_us_p99"], rows[name]["advised_instances"]) == (None, None)


NOISE = [Slice(100, 1e-3, 1.1e-3), Slice(100, 1.2e-3, 1e-3)] * 50
"""An operator of nothing: as often quicker as slower than only reading."""


def test_an_operator_that_cannot_be_told_from_reading_gets_one() -> None:
    """It has the reason in place of a time, counts as no work, and leaves all ten to the other."""
    slices = {"dear": NOISE, "key": [Slice(100, 1e-3, 0.0)] * 100, "running": [Slice(100, 1e-3, 0.0)] * 100}
    found = profile_figures("made", FLOW, counted(FLOW, ROWS), Timings(slices), Characterize())
    rows = by_name(found)
    assert (rows["dear"]["time_per_tuple_us"]["median"], rows["dear"]["time_per_tuple_us_p99"]) == (None, None)
    assert rows["dear"]["time_reason"].startswith("below what can be told from only reading")
    assert rows["dear"]["s_op_us"] == {"cumulative": 0.0, "immediate": 0.0}
    advised = {name: rows[name]["advised_instances_by_weights"]["cumulative"] for name in slices}
    assert advised == {"dear": 1, "key": 5, "running": 5}


def test_advised_instances_have_their_spread() -> None:
    """Slices that are all the same leave none; a p99 that hangs on two slow slices is not always in a resampling."""
    steady = profile_figures("made", FLOW, counted(FLOW, ROWS), timed(dear=1.0, key=1.0, running=1.0), Characterize())
    assert {name: row["advised_instances_interval"]["cumulative"] for name, row in by_name(steady).items()} == {
        "numbers": None, "dear": [9, 9], "key": [1, 1], "running": [1, 1], "out": None,
    }  # fmt: skip
    slow_twice = [Slice(100, 1e-4, 0.0)] * 98 + [Slice(100, 1e-2, 0.0)] * 2
    times = Timings({"dear": [Slice(100, 1e-4, 0.0)] * 100, "key": slow_twice})
    found = profile_figures("made", FLOW, counted(FLOW, ROWS), times, Characterize())
    key = by_name(found)["key"]
    assert key["advised_instances_by_weights"]["cumulative"] == 10  # 100 us of a tenth, of 11 us in all
    assert key["advised_instances_interval"]["cumulative"] == [1, 10]
    again = profile_figures("made", FLOW, counted(FLOW, ROWS), times, Characterize())
    assert again == found


def test_few_slices_advise_nothing() -> None:
    """Both operators were timed: what is missing is a p99, and with it what would be multiplied."""
    few = {name: [Slice(100, 1e-4, 0.0)] * 4 for name in ("dear", "key", "running")}
    found = profile_figures("made", FLOW, counted(FLOW, ROWS), Timings(few), Characterize(multipliers=(1, 2)))
    assert found["apply"]["reason"] == (
        "not applicable: no operator after an exchange has a p99 (100 slices with rows carry one)"
    )
    assert found["ways"] == {
        "formula": None,
        "one_each": [{"times": 1, "instances": [1] * 5}, {"times": 2, "instances": [2] * 5}],
        "source_only": None,
    }
    assert profile_document._plans(ParallelismPlans.model_validate(found["ways"])) == [
        ("by the formula, all multiplied", "- (nothing is advised)"),
        ("one each, all multiplied", "x1 1_1_1_1_1, x2 2_2_2_2_2"),
        ("by the formula, sources multiplied", "- (nothing is advised)"),
    ]
    assert by_name(found)["running"]["advised_instances_interval"] == {"cumulative": None, "immediate": None}


def test_an_operator_of_two_inputs_works_for_both() -> None:
    """0.2 and 0.8 of the events come in, each tuple takes 2 us: 2 us an event; of sources the immediate weight is 1."""
    other = source("others", Schema.of(key="int"))
    flow = NUMBERS.join(other, window=tumble(1), on="key", name="join").sink("out")
    rows = by_name(
        profile_figures(
            "made", flow, counted(flow, {"numbers": 200, "others": 800, "join": 50}), timed(join=2.0), Characterize()
        )
    )
    assert rows["join"]["weights"] == {"cumulative": [0.2, 0.8], "immediate": [1.0, 1.0]}
    assert rows["join"]["s_op_us"]["cumulative"] == pytest.approx(2.0)
    assert rows["join"]["s_op_us"]["immediate"] == pytest.approx(4.0)
    assert rows["join"]["selectivity"] == 0.05


def test_spark_has_one_number_for_what_follows_an_exchange() -> None:
    """The filter's nine instances are nobody's to choose; the most of those after an exchange is what is set."""
    times = timed(dear=1.0, key=1.0, running=20.0)
    found = profile_figures("made", FLOW, counted(FLOW, ROWS), times, Characterize())
    assert found["apply"]["line"] == "--option spark.sql.shuffle.partitions=7"  # 2 of 3.1, of ten
    acts = {row["name"]: row["instances_on_spark"]["acts"] for row in found["operators"]}
    assert acts == {"numbers": False, "dear": False, "key": False, "running": True, "out": False}
    assert all(row["instances_on_spark"]["reason"] for row in found["operators"])
    rows_alone = NUMBERS.where("value > 1", name="dear").sink("out")
    alone = profile_figures("made", rows_alone, counted(rows_alone, ROWS), timed(dear=1.0), Characterize())
    assert found["s_app_us"] == {"cumulative": pytest.approx(3.1), "immediate": pytest.approx(21.1)}
    assert alone["apply"] == {
        "setting": "spark.sql.shuffle.partitions", "value": None, "line": None,
        "reason": "not applicable: no operator follows an exchange",
    }  # fmt: skip


def test_the_most_of_several_exchanges_is_set() -> None:
    """By the weights that were asked for: 1, 1 and 0.8 of 2.8, or 1, 1 and 8 of ten."""
    flow = (
        NUMBERS.where("value > 1", name="dear")
        .distinct(keys="value", name="first")
        .running(keys="key", n="count(*)", name="running")
        .sink("out")
    )
    some = counted(flow, {"numbers": 1000, "dear": 100, "first": 100, "running": 20})
    times = timed(dear=1.0, first=10.0, running=8.0)
    found = {
        weights: profile_figures("made", flow, some, times, Characterize(weights=weights))["apply"]
        for weights in profile.WEIGHTS
    }
    assert {weights: asked["value"] for weights, asked in found.items()} == {"cumulative": 4, "immediate": 8}
    assert found["cumulative"]["reason"] == "one number for all exchanges: the most of first, running"


def test_every_kind_of_operator_has_a_type() -> None:
    """A new kind of node would else end a characterization with a KeyError."""
    from typing import get_args

    from streamgauge.dataflow import nodes

    kinds = set(get_args(nodes.Node))
    assert kinds == set(profile._TYPES)


def test_ways_and_target_follow_what_was_asked() -> None:
    """The weights that were asked for are those that are multiplied."""
    advice = Characterize(target=20, weights="immediate", multipliers=(1, 3))
    found = profile_figures("made", FLOW, counted(FLOW, ROWS), timed(dear=1.0, key=1.0, running=1.0), advice)
    # numbers, dear, key, running, out: 20 of 2.1, 2 of 2.1 and 20 of 2.1, rounded up.
    assert found["ways"]["formula"][0] == {"times": 1, "instances": [1, 10, 1, 10, 1]}
    assert found["ways"]["source_only"][1] == {"times": 3, "instances": [3, 10, 1, 10, 1]}
    assert found["ways"]["one_each"][1] == {"times": 3, "instances": [3] * 5}


def test_a_stream_and_its_results_may_have_one_name() -> None:
    """As in the workload `filter`: the source is the source, and the sink the sink."""
    flow = NUMBERS.where("value > 1", name="dear").sink("numbers")
    rows = profile_figures("made", flow, counted(flow, ROWS), timed(dear=1.0), Characterize(multipliers=(2,)))
    assert [(row["name"], row["kind"]) for row in rows["operators"]] == [
        ("numbers", "source"), ("dear", "where"), ("numbers", "sink"),
    ]  # fmt: skip
    assert rows["ways"]["source_only"] == [{"times": 2, "instances": [2, 10, 1]}]


# --- the command ---


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Say:
    """streamgauge with these words: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    return lambda *words: call_and_read(monkeypatch, capsys, *words)


@pytest.fixture
def say(call: Say) -> Say:
    """The command with these words."""
    return lambda *words: call("characterize", *words)


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each operator's tuples take 2 us, whatever it is; the reference counts as ever."""

    def time(resolved: Any, operators: Any, asked: Any, *_: Any) -> Any:
        slices = {each.name: [Slice(100, 2e-4, 0.0)] * asked.slices for each in operators}
        methods = {each.name: "difference" for each in operators}
        return Timings(slices, methods), [2**30] * 5, {"master": "local[1]"}

    monkeypatch.setattr(command, "_time", time)
    monkeypatch.setattr(command, "require_machine", lambda resolved: None)


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[Experiment]:
    """What is run with the advice, in the place of running it; each trial finds that its rate is not sustained."""
    asked: list[Experiment] = []

    def run(experiment: Experiment, *_: object) -> Result:
        asked.append(experiment)
        folder = RunFolder.create(str(experiment.out), experiment.workload, experiment.engine, datetime.now(UTC))
        verdict = Verdict(value="not_sustained", sentence="made up")
        folder.write_result(folder.read_result().model_copy(update={"verdict": verdict}))
        return folder.read_result()

    monkeypatch.setattr(apply_advice, "run_single", run)
    return asked


SMALL = ("word_count", "--slice-events", 10, "--warmup-slices", 2)


@pytest.mark.usefixtures("without_spark")
def test_json_is_the_file_of_the_folder(say: Say, tmp_path: Path) -> None:
    """The object on stdout, nothing else there, and the same in the run's folder; its form is what readers rely on."""
    code, out, _ = say(*SMALL, "--json", "--set", "words=4")
    assert code == 0
    found = json.loads(out)
    (file,) = tmp_path.glob("runs/*-word_count-characterize/characterization.json")
    assert json.loads(file.read_text()) == found
    assert found["finished"] is True
    assert found["parameters"] == {"window": 0.0, "words": 4}
    rows = by_name(found)
    assert list(rows) == ["sentences", "splitter", "lower_case", "counter", "counts"]
    assert (rows["splitter"]["selectivity"], rows["splitter"]["rows_in"]) == (4.0, [1020])
    assert rows["counter"]["counted_as"] == "updates"
    assert rows["counter"]["thesis"] == [{"operator": "counter", "instances": 6}]
    assert rows["splitter"]["advised_instances_by_weights"]["cumulative"] == 2  # 2 us a line of 2 + 4 * 2 + 4 * 2
    assert rows["counter"]["advised_instances_by_weights"]["cumulative"] == 5
    assert found["apply"]["line"] == "--option spark.sql.shuffle.partitions=5"
    assert found["memory"]["behaviour"] == "fixed"


@pytest.mark.usefixtures("without_spark")
def test_its_folder_has_a_page_that_is_made_again(call: Say, tmp_path: Path) -> None:
    """`report` knows the folder; where a run is wanted, as in `compare`, the refusal says what it is."""
    assert call("characterize", *SMALL)[0] == 0
    (page,) = tmp_path.glob("runs/*-word_count-characterize/report.html")
    first = page.read_text()
    page.unlink()
    code, out, _ = call("report", page.parent)
    assert (code, out.strip()) == (0, str(page))
    assert page.read_text() == first
    code, _, err = call("compare", page.parent, page.parent)
    assert code == 2
    assert "this is a characterization" in err


@pytest.mark.usefixtures("without_spark")
def test_the_same_input_is_counted_again(say: Say) -> None:
    """Neither now nor this machine's processors have a part in what is counted; the seed has."""
    first, second, other = (json.loads(say(*SMALL, "--json", "--seed", seed)[1])["operators"] for seed in (1, 1, 2))
    assert first == second
    assert [row["rows_out"] for row in first] != [row["rows_out"] for row in other]


@pytest.mark.usefixtures("without_spark")
def test_the_table_tells_everything_once(say: Say, trials: list[Experiment]) -> None:
    """A line an operator, the thesis beside it, reasons below, the three ways; what applies only where asked for."""
    code, out, err = say(*SMALL, "--apply")
    assert (code, out) == (1, "")  # of the trial, which did not hold its rate
    lines = err.splitlines()
    (splitter,) = [line for line in lines if line.startswith("splitter ")]
    assert splitter.split()[1] == "10"
    assert splitter.split()[-1] == "5"
    (told,) = [line for line in lines if line.startswith("on spark ")]
    assert "--option spark.sql.shuffle.partitions=" in told
    assert "splitter: not applicable: fused with what it reads" in err
    for way in profile_document.PLAN_NAMES.values():
        assert any(line.startswith(way) and " x1 " in line for line in lines)
    assert profile.SOURCE_REASON in err
    assert "the processes of Spark that time one operator after the other, not of the application as it runs" in err
    assert "source 1 (sentences); splitter 5 (splitter); counter 6 (counter); sink 3 (counts)" in err
    assert "not applicable" not in say(*SMALL)[2]
    assert len(trials) == 1


@pytest.mark.usefixtures("without_spark")
def test_advice_is_applied_in_a_trial(say: Say, trials: list[Experiment], tmp_path: Path) -> None:
    """The same workload at the same rate with the setting advised, in the characterization's folder; told, and kept."""
    words = (*SMALL, "--apply", "--rate", "2k", "--set", "words=4", "--seed", "7", "--option", "buckets=4")
    code, out, _ = say(*words, "--json")
    assert code == 1
    (trial,) = trials
    (folder,) = (tmp_path / "runs").iterdir()
    assert (trial.command, trial.workload, trial.parameters) == ("run", "word_count", {"words": "4"})
    assert (trial.load.rate, trial.load.seed, trial.load.generators) == (2000.0, 7, None)
    assert trial.options == {"buckets": "4", SETTING: "5"}
    assert Path(str(trial.out)).resolve() == folder
    found = json.loads(out)
    applied = found["applied"]
    assert (applied["setting"], applied["before"], applied["after"]) == (SETTING, str(max(2, len(cpus()))), "5")
    assert (applied["verdict"], applied["sentence"]) == ("not_sustained", "made up")
    assert Path(applied["run"]).resolve().parent == folder
    assert json.loads((folder / "characterization.json").read_text()) == found
    assert f"{SETTING} {applied['before']} -&gt; 5" in (folder / "report.html").read_text()
    again = read(folder / "applied.toml")
    assert again == trial.model_copy(update={"out": None})


@pytest.mark.usefixtures("without_spark")
def test_an_option_of_the_users_own_is_what_was_before(say: Say, trials: list[Experiment]) -> None:
    """And the advice stands in its place; the terminal shows both, and the trial's verdict."""
    code, _, err = say(*SMALL, "--apply", "--option", f"{SETTING}=3")
    assert code == 1
    (line,) = [line for line in err.splitlines() if line.startswith("applied")]
    assert f"{SETTING} 3 -> " in line
    assert "applied.toml runs it again" in line
    assert "not sustained" in err
    assert trials[0].options[SETTING] != "3"


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("words", [("identity", "--slice-events", 10), ("word_count", "--slices", 3)])
def test_where_nothing_acts_nothing_is_run(
    say: Say, trials: list[Experiment], tmp_path: Path, words: tuple[object, ...]
) -> None:
    """No exchange, or no advice: it says so, and that is no failure."""
    code, _, err = say(*words, "--apply", "--warmup-slices", 2)
    assert code == 0
    (told,) = [line for line in err.splitlines() if line.startswith("on spark ")]
    assert "not applicable: no operator" in told
    assert trials == []
    assert list(tmp_path.glob("runs/*/applied.toml")) == []


def test_a_trial_that_could_not_be_run_is_refused_before(say: Say, tmp_path: Path) -> None:
    """What only a run refuses is not found out after minutes of timing."""
    words = ("word_count", "--set", "words=2000", "--rate", "20M")
    code, _, err = say(*words, "--apply")
    assert code == 2
    assert "error: --rate: " in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("workload", names())
def test_the_table_fits_a_narrow_terminal(workload: str) -> None:
    """80 columns: every heading and figure is whole, with the longest that stand there; a name may be folded."""
    from rich.console import Console

    longest = {"type": "", "selectivity": 0.00123, "counted_as": "updates", "tuple_bytes": 12.3}
    rows = tuple(
        profiled_operator(node.name, "", tuple_time(0.123, 0.123), "", 10, **longest)
        for node in graph.operators(get(workload).build(get(workload).parameters(), 1000.0).flow)
    )
    to = Console(width=80, record=True, file=io.StringIO())
    made = profile_document._operators(operator_profile(operators=rows, methods={"updates": "counted"}))
    console._show_table(to, made)
    text = to.export_text()
    assert "…" not in text
    for whole in ("time/tuple", "p50", "p99", "instances", "thesis", "0.00123*", "12.3", "10 (10-11)"):
        assert whole in text, text


def test_all_that_is_wrong_is_told_at_once(say: Say, tmp_path: Path) -> None:
    """Exit code 2, each with its way out; no folder is made."""
    code, out, err = say(
        "word_cont", "--slices", "none", "--slice-events", "1.5", "--warmup-slices", "-1", "--target", "0",
        "--multipliers", "1,x", "--weights", "heavy", "--rate", "1k", "--option", "tirgger=1s",
    )  # fmt: skip
    assert (code, out) == (2, "")
    named = ("--slices", "--slice-events", "--warmup-slices", "--target", "--multipliers", "--weights", "workload",
             "option tirgger")  # fmt: skip
    for name in named:
        assert f"error: {name}: " in err
    assert err.count("try:") == len(named)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("word_count", "--rate", "fast"), "error: --rate: "),
        (("word_count", "--slices", "100k", "--slice-events", "10k"), "at most 50,000,000 events"),
        (("word_count", "--option", "trigger=1 second"), "option trigger: has no effect"),
        (("word_count", "--set", "wrds=3"), "set wrds"),
        (("missing.py",), "must be an existing file"),
    ],
)
def test_each_bad_word_is_refused(say: Say, words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """Before anything is started or written."""
    code, out, err = say(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert "nothing was started" in err or "nothing was measured" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("without_spark")
def test_an_own_job_is_one_operator(say: Say, tmp_path: Path) -> None:
    """Counted by its reference, over all that its function may read; lineage is in no tuple's size."""
    job = tmp_path / "own_job.py"
    job.write_text(
        "from streamgauge.jobs import Integer, job, stream\n\n\n"
        '@job(stream("a", Integer("v", 1, 10)), reach="0s",\n'
        '     reference="SELECT v, event_time, ingest_time, event_id FROM a WHERE v <= 5")\n'
        'def own(spark, inputs):\n    return inputs["a"].where("v <= 5")\n'
    )
    code, out, err = say(job, "--slices", "100", "--slice-events", "100", "--json")
    assert code == 0, err
    rows = by_name(json.loads(out))
    assert list(rows) == ["a", "own", "results"]
    assert rows["own"]["rows_in"] == [12_000]
    assert rows["own"]["selectivity"] == pytest.approx(0.5, abs=0.03)
    assert (rows["a"]["tuple_bytes"], rows["own"]["tuple_bytes"]) == (4.0, pytest.approx(4.0, abs=0.2))
    assert rows["own"]["time_per_tuple_us"]["median"] == pytest.approx(2.0)
    assert list(tmp_path.glob("runs/*-own_job-characterize"))


def test_times_are_readable() -> None:
    """Far below a microsecond in nanoseconds."""
    told = [profile_document.tuple_time(us) for us in (0.0123, 0.5, 3.0, 2500.0)]
    assert told == ["12.3 ns", "500 ns", "3 us", "2.5 ms"]
    assert profile_document.tuple_time(None) == "-"


def test_the_source_stands_where_it_should() -> None:
    """Only sources are multiplied alone, and only they have no input."""
    rows = profile_figures("made", FLOW, counted(FLOW, ROWS), Timings(), Characterize())["operators"]
    assert [row["name"] for row in rows if row["kind"] == "source"] == ["numbers"]
    assert [node.name for node in graph.operators(FLOW) if isinstance(node, Source)] == ["numbers"]
