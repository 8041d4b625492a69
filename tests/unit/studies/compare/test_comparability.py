"""What differs in the question decides no gate and is reported; what differs in the answer is compared."""

from typing import Any

import pytest

from streamgauge.core.exit_codes import ExitCode
from streamgauge.report.documents import comparison
from streamgauge.results import labels
from streamgauge.results.latency import Latencies
from streamgauge.results.run import SinkResult, Verification
from streamgauge.results.search import SearchResult
from streamgauge.studies.compare.compare import compare
from tests.unit.studies.compare.helpers_compare import RULES, Make, Three, asked


def experiment_values(**changes: Any) -> dict[str, Any]:
    """What a run keeps of its question, with some of it as given."""
    return asked(**{**changes, "load": {"rate": "100k", "duration": "40s", **changes.get("load", {})}})


DIFFERENT_QUESTIONS: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    (
        {"experiment": experiment_values(parameters={"range": "80s", "slide": "80s"})},
        ("parameters.range", "parameters.slide"),
    ),
    ({"experiment": experiment_values(parameters={"data": "/other.csv"})}, ("parameters.data",)),
    ({"experiment": experiment_values(load={"duration": "80s"})}, ("load.duration",)),
    ({"experiment": experiment_values(load={"warmup": "5s"})}, ("load.warmup",)),
    ({"experiment": experiment_values(load={"chunk": "5ms"})}, ("load.chunk",)),
    ({"experiment": experiment_values(load={"generators": 3})}, ("load.generators",)),
    ({"experiment": experiment_values(load={"frontier": "free"})}, ("load.frontier",)),
    ({"isolation": "pinned"}, ("isolation",)),
    ({"environment": {"cpu_model": "made up", "cpus": 4}}, ("environment.cpus",)),
    ({"environment": {"cpu_model": "another", "cpus": 2}}, ("environment.cpu_model",)),
]


@pytest.mark.parametrize(("of_b", "names"), DIFFERENT_QUESTIONS, ids=str)
def test_a_different_question_decides_no_gate_except_that_on_wrong_answers(
    three: Three, of_b: dict[str, Any], names: tuple[str, ...]
) -> None:
    """Each alone, on figures that would pass by far: unknown, and named in the headline, the reason and a warning."""
    a, b = three("a", 10, experiment=experiment_values()), three("b", 20, **{"experiment": experiment_values(), **of_b})
    answer = compare(a, b, RULES)
    message = labels.different_settings(names)
    assert answer.asked_otherwise == names
    assert [gate.state for gate in answer.gates] == ["unknown", "unknown", "unknown", "passed"]
    assert all(message in gate.sentence for gate in answer.gates[:3])
    assert comparison.headline(answer).startswith(message)
    assert any(warning.startswith(message) for warning in answer.warnings)


DIFFERENT_ANSWERS: list[dict[str, Any]] = [
    {},
    {"engine": "spark-rtm", "experiment": experiment_values(engine="spark-rtm", transport="kafka")},
    {"experiment": experiment_values(options={"trigger": "1s"}), "settings": {"trigger": "1s"}},
    {"experiment": experiment_values(load={"seed": 7})},
    {"experiment": experiment_values(load={"bound": "60s", "memory": "1g"})},
    {"experiment": experiment_values(limits=["p99 <= 9s"])},
    {"environment": {"cpu_model": "made up", "cpus": 2, "pyspark": "5.0", "java": "21", "memory_bytes": 1}},
]


@pytest.mark.parametrize("of_b", DIFFERENT_ANSWERS)
def test_a_different_answer_is_what_a_gate_is_for(three: Three, of_b: dict[str, Any]) -> None:
    """Engines, options, versions; seeds, which differ from run to run, and what says only when a run is given up."""
    a, b = three("a", 10, experiment=experiment_values()), three("b", 20, **{"experiment": experiment_values(), **of_b})
    answer = compare(a, b, RULES)
    assert (answer.asked_otherwise, answer.exit_code) == ((), ExitCode.HOLDS)
    assert comparison.headline(answer).startswith("B is ") or comparison.headline(answer).endswith(
        "no difference shown"
    )


def test_data_are_what_is_in_the_file(three: Three) -> None:
    """The same rows from another folder are the same question, other rows by the same name are not."""

    def of(path: str, digest: str) -> dict[str, Any]:
        return {"experiment": experiment_values(parameters={"data": path}), "job_files": {path: digest}}

    a = three("a", 10, **of("/here/rows.csv", "1" * 64))
    assert compare(a, three("b", 20, **of("/there/rows.csv", "1" * 64)), RULES).exit_code == ExitCode.HOLDS
    other = compare(a, three("c", 30, **of("/here/rows.csv", "2" * 64)), RULES)
    assert other.asked_otherwise == ("parameters.data",)
    assert [gate.state for gate in other.gates] == ["unknown", "unknown", "unknown", "passed"]


def test_another_sample_of_an_own_job_is_another_question(three: Three) -> None:
    """Its code may differ, which is what a comparison of two versions is for."""
    files = {"job.py": "0" * 64, "rows.csv": "1" * 64}
    a = three("a", 10, job_files=files)
    assert compare(a, three("b", 20, job_files=files | {"job.py": "9" * 64}), RULES).exit_code == ExitCode.HOLDS
    other = compare(a, three("c", 30, job_files=files | {"rows.csv": "9" * 64}), RULES)
    assert (other.asked_otherwise, other.exit_code) == (("samples",), ExitCode.UNDECIDED)


def test_built_in_workloads_on_own_data_are_no_own_jobs(three: Three) -> None:
    """Both have files whose digests stand in the result; two of the first kind are two questions all the same."""
    files = {"/rows.csv": "1" * 64}
    answer = compare(three("a", 10, job_files=files), three("b", 20, workload="filter", job_files=files), RULES)
    assert {gate.state for gate in answer.gates} == {"unknown"}
    assert answer.asked_otherwise == ("workload",)


def test_a_program_that_answers_a_workload_compares_with_it(three: Three) -> None:
    """Its file's digest stands in the result; that of another workload is another question."""
    program = {"workload": "consumer", "job_files": {"consumer.toml": "1" * 64}}
    b = three("b", 20, **program, question="identity")
    assert compare(three("a", 10, workload="identity"), b, RULES).asked_otherwise == ()
    other = compare(three("c", 30, workload="identity"), three("d", 40, **program, question="filter"), RULES)
    assert other.asked_otherwise == ("workload",)


def test_runs_of_one_side_may_differ_where_those_of_the_other_do_too(make_run: Make) -> None:
    """As often: two short ones and a long one are not one short one and two long ones."""

    def side(name: str, durations: list[str]) -> str:
        runs = (
            make_run(f"{name}{n}", 10 * ord(name) + n, experiment=experiment_values(load={"duration": each}))
            for n, each in enumerate(durations)
        )
        return ",".join(map(str, runs))

    a = side("a", ["40s", "40s", "80s"])
    assert compare(a, side("b", ["80s", "40s", "40s"]), RULES).exit_code == ExitCode.HOLDS
    assert compare(a, side("c", ["40s", "80s", "80s"]), RULES).asked_otherwise == ("load.duration",)


def test_another_load_and_another_span_are_both_reported(three: Three) -> None:
    """A rate that no run kept up with stands between different loads, and not between different spans."""
    b = three("b", 20, experiment=experiment_values(load={"rate": "200k", "duration": "80s"}))
    answer = compare(three("a", 10, experiment=experiment_values()), b, RULES)
    assert answer.asked_otherwise == ("load.rate", "load.duration")
    assert [gate.state for gate in answer.gates] == ["unknown", "unknown", "unknown", "passed"]
    assert "more" in answer.gates[1].sentence
    assert "load.duration" in answer.gates[1].sentence


def test_a_search_up_to_a_limit_is_another_question(make_run: Make) -> None:
    """The rate is what a search is requested, and a limit lowers it; of a run it changes the verdict alone."""
    answer = SearchResult(sustained_per_s=1e6, low=1e6, high=1.05e6, relative_width=0.05, confirmed=True)
    a, b = (
        make_run("a", 1, search=answer, experiment=experiment_values(command="sustain")),
        make_run("b", 2, search=answer, experiment=experiment_values(command="sustain", limits=["p99 <= 9s"])),
    )
    assert compare(str(a), str(b)).asked_otherwise == ("limits",)


def test_runs_that_gave_and_owed_nothing_are_none_better(make_run: Make) -> None:
    """Whatever they took of the machine; runs with results are distinguished."""
    nothing = Verification(judged=True, independent=True, reference="duckdb", expected=0, matched=0)
    silent = {"verification": nothing, "sinks": (SinkResult(name="results", rows=0, latency=Latencies()),)}
    answer = compare(str(make_run("a", 1, **silent)), str(make_run("b", 2, slower=1.5, **silent)))
    assert {one.says for one in answer.figures} <= {"unknown", "no_difference"}
    assert any("gave no result and owed none" in one.reason for one in answer.figures)
    with_results = compare(str(make_run("c", 1)), str(make_run("d", 2, slower=1.5)))
    assert "worse" in {one.says for one in with_results.figures}
