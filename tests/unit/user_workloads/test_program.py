"""Programs of the user's own as workloads: what a file says."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from streamgauge.config.experiment import Experiment, build
from streamgauge.config.experiment_file import read
from streamgauge.core.clock import US
from streamgauge.core.errors import InputError
from streamgauge.jobs import RecordKey
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.settings_checks import check
from streamgauge.studies.capacity.sustain import Sustain
from streamgauge.studies.latency_breakdown.anatomy import check_trials
from streamgauge.studies.operator_profile.characterize import check_input
from streamgauge.transports.topic_names import ProgressSource
from streamgauge.trial.events import ignore
from streamgauge.user_workloads import program as program_module
from streamgauge.user_workloads.program import Program, program
from streamgauge.user_workloads.program_node import ProgramNode
from tests.unit.user_workloads.helpers_programs import FIELDS, TIMELESS, problem_of, written

WINDOWS = "SELECT user_id, sum(price) AS revenue, (ts // 2000 + 1) * 2000 AS closed FROM purchases GROUP BY ALL"


def resolved(path: Path, **more: object) -> ResolvedExperiment:
    return check(build({"workload": str(path), "load": {"rate": "1k"}, "out": str(path.parent), **more}))


def test_a_file_is_a_workload(tmp_path: Path) -> None:
    """Named after its folder, or after its file if that is not program.toml."""
    workload = program(written(tmp_path))
    flow, streams, _ = workload.build(workload.read({}), 1000.0)
    (stream,) = streams
    assert (workload.name, program(written(tmp_path, name="cheap.toml")).name) == ("dear", "cheap")
    assert (stream.schema.types(), stream.key) == ({"user_id": "int", "price": "int", "ts": "bigint"}, "user_id")
    assert isinstance(flow.sink.input, ProgramNode)
    (output,) = workload.program_topics.outputs.values()
    assert output.types == {"user_id": "bigint", "price": "bigint", "ts": "bigint"}
    assert (output.required, output.time, output.unit_us) == (("user_id", "ts"), "ts", 1000)


def test_engine_transport_and_encoding_follow(tmp_path: Path) -> None:
    """Nothing but the file has to be named, and its messages hold the declared fields only."""
    experiment = resolved(written(tmp_path))
    assert (experiment.engine.name, experiment.experiment.transport) == ("external", "kafka")
    assert experiment.transport_options["encoding"] == "json"
    assert experiment.columns == {"purchases": ("user_id", "price", "ts")}


def test_the_recorder_gets_the_results(tmp_path: Path) -> None:
    """Their types, and how long the first of them may take. Records carry the planned time unless the file says
    otherwise.
    """
    assert program(written(tmp_path, ('key = "user_id"', 'record_timestamp = "sent"'))).program_topics.planned == set()
    topics = program(written(tmp_path, ('reach = "0s"', 'reach = "5s"'))).program_topics
    assert (list(topics.inputs), topics.timeout_s) == (["purchases"], 30.0)
    assert topics.planned == {"purchases"}
    assert (topics.outputs["results"].reach_s, topics.first_result_s) == (5.0, 35.0)
    assert topics.outputs["results"].types == {"user_id": "bigint", "price": "bigint", "ts": "bigint"}


def test_the_time_field_has_its_unit(tmp_path: Path) -> None:
    """Milliseconds, rounded down from the plan's microseconds."""
    plan = resolved(written(tmp_path)).plan(7 * US + 1500, 1000.0, 1.0)
    assert plan.batch(0, 0, 0, 1, ["ts"]).column("ts").to_pylist() == [7001]


def answer(workload: Program) -> list[tuple[object, ...]]:
    """To one purchase."""
    rows = "SELECT 1 AS user_id, 95 AS price, 7001::BIGINT AS ts, 7001500::BIGINT AS event_time"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return list(workload.answer(connection, "results", {"purchases": rows}).fetchall())


def test_a_window_has_the_event_time_of_its_end(tmp_path: Path) -> None:
    """One microsecond before it, and its end as a timestamp, if results carry no time of their own."""
    changes = (
        ("SELECT user_id, price, ts FROM purchases WHERE price > 90", WINDOWS),
        ('keys = ["user_id", "ts"]\ntime = "ts"', 'keys = ["user_id", "closed"]\nwindow_end = "closed"'),
    )
    ((*row, window_end),) = answer(program(written(tmp_path, *changes)))
    assert (row, str(window_end)) == ([1, 95, 8000, 7_999_999], "1970-01-01 00:00:08")


@pytest.mark.parametrize("word", ["export A=1; " * 30, ":".join(["/opt/jars/one.jar"] * 400)])
def test_a_word_of_the_command_may_be_longer_than_a_path(tmp_path: Path, word: str) -> None:
    """A script of a shell, or a class path."""
    assert program(written(tmp_path, ("--from={input}", word))).files.keys() == {"program.toml", "consumer.py"}


@pytest.mark.parametrize("end", ["", "-- of the dear ones", ";;", "/* it's all */", "ORDER BY ts;"])
def test_a_reference_may_end_with_a_comment(tmp_path: Path, end: str) -> None:
    """What the check before the run lets through also runs after it. The event time follows from the output's time
    field in its unit.
    """
    assert answer(program(written(tmp_path, ("price > 90", f"price > 90 {end}")))) == [(1, 95, 7001, 7_001_000)]


def test_an_empty_name_is_none(tmp_path: Path) -> None:
    """As an empty topic or group is."""
    (stream,) = (
        program(
            written(
                tmp_path,
                ('time = "ts"\n\n', 'time = ""\nsample = ""\n\n'),
                ("price, ts FROM", "price FROM"),
                ('keys = ["user_id", "ts"]\ntime = "ts"', 'time = ""\nwindow_end = ""'),
                ('key = "user_id"', 'key = ""'),
            )
        )
        .build(None, 1.0)
        .streams
    )
    assert (stream.schema.names, stream.key) == (("user_id", "price"), None)


def test_it_is_not_an_experiment(tmp_path: Path) -> None:
    """One message with the right command, not one for each of its settings."""
    path = written(tmp_path)
    with pytest.raises(InputError) as refusal:
        read(path)
    assert [problem.way_out for problem in refusal.value.problems] == [f"streamgauge run {path}"]


def test_a_missing_file_and_other_text(tmp_path: Path) -> None:
    """As for every file of a user's."""
    assert "must be a file that can be read" in problem_of(tmp_path / "none.toml")
    (tmp_path / "text.toml").write_text("command =")
    assert "must be TOML" in problem_of(tmp_path / "text.toml")
    nested = ("price = {", 'user_id.x = { kind = "key", domain = 5 }\nprice = {')
    assert "must be TOML" in problem_of(written(tmp_path, nested))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"engine": "spark"}, "does not support programs over Kafka"),
        ({"transport": "memory"}, "must be one that external can read: kafka"),
        ({"master": "local[2]"}, "does not apply to the engine external"),
        ({"parallelism": 2}, "must reach the program, and neither its command nor its environment has {parallelism}"),
        ({"parallelism": 2}, "(scale: --resource partitions)"),
        ({"transport_options": {"encoding": "avro"}}, "a program's file names the format of each topic"),
        ({"options": {"trigger": "1s"}}, "is not an option of external"),
        ({"parameters": {"data": "x.csv"}}, "is for built-in workloads"),
    ],
)
def test_what_a_program_cannot_be_run_with(tmp_path: Path, more: dict[str, object], words: str) -> None:
    """Refused before anything starts."""
    with pytest.raises(InputError, match=re.escape(words)):
        resolved(written(tmp_path), **more)


@pytest.mark.parametrize(("command", "refuse"), [("anatomy", check_trials), ("characterize", check_input)])
def test_a_program_has_no_known_operators(tmp_path: Path, command: str, refuse: Callable[[Experiment], object]) -> None:
    """That is the one reason, with a command that does apply; not that of an engine, which it cannot choose."""
    path = written(tmp_path)
    with pytest.raises(InputError) as refusal:
        refuse(build({"workload": str(path), "command": command}))
    (problem,) = refusal.value.problems
    rule = "does not apply to a program over Kafka, whose operators are not known"
    assert (problem.setting, problem.rule) == (command, rule)
    assert problem.way_out.startswith(f"streamgauge run {path}")


def test_other_workloads_do_not_run_on_external() -> None:
    """It starts a program, and has no operators."""
    with pytest.raises(InputError, match="does not support"):
        check(build({"workload": "windowed_aggregation", "engine": "external", "transport": "kafka"}))


NESTED = (
    '[inputs.purchases.fields]\nuser_id = { kind = "key", domain = 1000 }\n',
    '[inputs.purchases.fields]\nuser.id = { kind = "key", domain = 1000 }\nuser.name = { kind = "text", words = 2 }\n',
)
TWO_OUTPUTS = """
[outputs.dear]
keys = ["user_id", "ts"]
time = "ts"
reach = "0s"
reference = "SELECT user_id, price, ts FROM purchases WHERE price > 90"
[outputs.totals]
mode = "update"
keys = ["user_id"]
format = "csv"
topic = "totals"
reference = "SELECT user_id, count(*) AS n, max(ts) AS ts FROM purchases GROUP BY user_id"
"""


def test_nested_fields_have_dotted_names(tmp_path: Path) -> None:
    """In messages, keys and references."""
    workload = program(
        written(tmp_path, NESTED, ('key = "user_id"', 'key = "user.id"'), ("SELECT user_id", "SELECT 1 AS user_id"))
    )
    _, (stream,), _ = workload.build(workload.read({}), 1000.0)
    assert (stream.schema.names, stream.key) == (("user.id", "user.name", "price", "ts"), "user.id")


def with_outputs(folder: Path, outputs: str) -> Path:
    path = written(folder)
    text, _, _ = path.read_text().partition("[output]")
    path.write_text("\n".join(line for line in text.splitlines() if not line.startswith("reference")) + outputs)
    return path


def test_what_was_read_shows_after_the_longest_reach(tmp_path: Path) -> None:
    """Of all outputs, or when the group commits, every 5 s by default."""
    workload = program(with_outputs(tmp_path, TWO_OUTPUTS.replace('"0s"', '"7s"')))
    assert sorted(one.reach_s for one in workload.program_topics.outputs.values()) == [0.0, 7.0]
    assert workload.unseen_s == 12.0


def test_several_outputs(tmp_path: Path) -> None:
    """Each is a sink with its own mode, reach, reference, topic and format."""
    path = with_outputs(tmp_path, TWO_OUTPUTS)
    workload = program(path)
    experiment = resolved(path)
    assert [(sink.name, sink.mode) for sink in experiment.flow.sinks] == [("dear", "append"), ("totals", "update")]
    assert [one.reach_us for one in experiment.by_sink()] == [0, None]
    assert experiment.columns == {"purchases": ("user_id", "price", "ts")}
    assert workload.program_topics.output_topics("r") == {"dear": "streamgauge-r.results-dear", "totals": "totals"}
    assert workload.described["totals"].keys == ("user_id",)


def test_a_program_that_runs_already(tmp_path: Path) -> None:
    """Its brokers follow from its file, and the notes say what is not known."""
    named = 'attach = true\nbrokers = "localhost:9092"\ngroup = "mine"\n'
    path = written(
        tmp_path,
        ('command = ["{python}", "consumer.py", "--from={input}"]\n', named),
        ("[inputs.purchases]", '[inputs.purchases]\ntopic = "orders"'), ("[output]", '[output]\ntopic = "dear"'),
    )  # fmt: skip
    assert resolved(path).transport_options["brokers"] == "localhost:9092"
    assert any("its CPU and memory are not known" in note for note in program(path).notes)
    with pytest.raises(InputError, match="starts the program anew for each trial"):
        resolved(path, command="sustain")
    with pytest.raises(InputError, match="cannot be set for a program that runs already"):
        resolved(path, parallelism=2)


CHECKPOINTS = 'ready = "started"\nprogress = { spark_checkpoint = ["{scratch}/a", "b/{run}", "file:///c", "/d"] }\n'


def test_progress_by_checkpoints(tmp_path: Path) -> None:
    """Relative folders are beside the file; several partitions are fine."""
    path = written(tmp_path, ("reference =", f"{CHECKPOINTS}reference ="))
    places = ("{scratch}/a", str(path.parent / "b/{run}"), "/c", "/d")
    found = resolved(path, partitions=2).workload
    assert isinstance(found, Program)
    assert found.program_topics.progress == ProgressSource("spark_checkpoint", places)
    assert found.launch.checkpoints == places


def test_progress_by_results_needs_one_partition(tmp_path: Path) -> None:
    """Refused before the start, with the ways out."""
    path = written(tmp_path, ("reference =", 'progress = "results"\nreference ='))
    assert resolved(path).experiment.partitions is None
    with pytest.raises(InputError) as caught:
        resolved(path, partitions=2)
    (problem,) = caught.value.problems
    assert (problem.setting, problem.got) == ("partitions", 2)
    assert problem.way_out.startswith("--partitions 1, or in its file progress = { spark_checkpoint")


@pytest.mark.parametrize(
    ("more", "refused"),
    [
        ('progress = "results"\nready = "started"', ""),
        ('progress = { spark_checkpoint = ["/x"] }\nready = "started"', ""),
        ('progress = { spark_checkpoint = ["/x"] }', 'ready: must be "line" or "started" with spark_checkpoint'),
        ('progress = { spark_checkpoint = ["{scratch}/x"] }\nready = "started"', "must not be in {scratch}"),
    ],
)
def test_a_program_that_runs_already_may_have_no_group(tmp_path: Path, more: str, refused: str) -> None:
    """If something else shows that it is ready, and how far it has read. It has no folder of ours."""
    path = written(
        tmp_path,
        ('command = ["{python}", "consumer.py", "--from={input}"]', f'attach = true\nbrokers = "b:1"\n{more}'),
        ("[inputs.purchases]", '[inputs.purchases]\ntopic = "orders"'), ("[output]", '[output]\ntopic = "dear"'),
    )  # fmt: skip
    if refused:
        assert refused in problem_of(path)
    else:
        assert program(path).launch.group == ""


def test_sparks_kafka_jars_are_got_before_a_start_if_they_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And only then."""
    calls: list[str] = []
    monkeypatch.setattr(program_module, "spark_kafka_jars", lambda: calls.append("jars"))
    program(written(tmp_path)).require()
    assert calls == []
    program(written(tmp_path, ("--from={input}", "--jars={spark_kafka_jars}"))).require()
    assert calls == ["jars"]


def test_a_silent_program_ends_by_its_own_timeout(tmp_path: Path) -> None:
    """The queue holds more than its patience. A scale study can set the parallelism that its command takes."""
    assert (
        resolved(
            written(tmp_path, ('"--from={input}"', '"--cores={parallelism}"')), parallelism=2
        ).experiment.parallelism
        == 2
    )
    experiment = resolved(written(tmp_path, ('kind = "program"', 'kind = "program"\ntimeout = "90s"')))
    assert min(experiment.queue_s, experiment.bound_s(1000.0)[0]) > 90


def test_results_without_a_time_are_noted_as_without_latency(tmp_path: Path) -> None:
    """Before the run."""
    workload = program(written(tmp_path, ('time = "ts"\nreach', "reach"), ('"user_id", "ts"]', '"user_id"]')))
    words = "they have no latency, and those of windows still open at the end count as missing; name the field"
    assert any(words in note for note in workload.notes)


def test_each_trial_of_a_search_starts_it_anew(tmp_path: Path) -> None:
    """With new topics and a new group, although its reach is finite."""
    nothing: Any = None
    experiment = resolved(written(tmp_path), command="sustain", load={})
    assert experiment.reach_us == 0
    assert Sustain(experiment, nothing, nothing, 1000.0, observe=ignore).settings().fresh_always


def test_results_without_a_time_may_name_their_record(tmp_path: Path) -> None:
    """By fields of one input, which every result then has."""
    workload = program(written(tmp_path, TIMELESS))
    assert workload.described["results"].latency_key == RecordKey("purchases", ("user_id", "ts"))
    assert workload.program_topics.outputs["results"].required == ("user_id", "ts")
    assert not any("they have no latency" in note for note in workload.notes)


def test_files_in_the_command_belong_to_the_program(tmp_path: Path) -> None:
    """So that a changed program is not compared with itself. Words, folders and files that do not exist are none."""
    path = written(
        tmp_path, ('"consumer.py", "--from={input}"', '"src/consumer.py", "--level", "missing.txt", "src"'),
        ("[inputs.purchases.fields]" + FIELDS, ""), ('time = "ts"', 'time = "ts"\nsample = "bought.json"'),
    )  # fmt: skip
    sample = "".join(f'{{"user_id": {n}, "price": {n % 7}, "ts": {1_700_000_000_000 + n}}}\n' for n in range(20))
    texts = {"program.toml": path.read_text(), "src/consumer.py": "print(1)", "bought.json": sample}
    (path.parent / "src").mkdir()
    for name, text in texts.items():
        (path.parent / name).write_text(text)
    sha256 = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    assert program(path).files == sha256
    (path.parent / "src" / "consumer.py").write_text("print(2)")
    assert program(path).files["src/consumer.py"] != sha256["src/consumer.py"]


def test_what_holds_for_every_program_is_checked_where_its_file_is_refused(tmp_path: Path) -> None:
    """A question about the kind of workload needs no file: the encoding is no program's, and none has memory."""
    path = written(tmp_path, ("domain = 1000", "domian = 1000"))
    with pytest.raises(InputError) as refusal:
        resolved(path, transport_options={"encoding": "json"}, engine="spark")
    field, encoding = (problem.setting for problem in refusal.value.problems)
    assert (field, encoding) == ("program.toml: inputs.purchases.fields.user_id.domian", "transport option encoding")
    assert refusal.value.incomplete
    with pytest.raises(InputError) as refusal:
        check_trials(build({"workload": str(path), "command": "anatomy", "anatomy": {}}))
    assert [problem.setting for problem in refusal.value.problems] == ["anatomy"]
