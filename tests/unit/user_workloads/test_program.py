"""Programs of the user's own as workloads: what a file says, and the one message that each bad file gets."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import pytest

from streamgauge.config.options_and_settings import Experiment, build, read
from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, JobError
from streamgauge.jobs import RecordKey
from streamgauge.preflight.resolved_experiment import ResolvedExperiment
from streamgauge.preflight.validate import check
from streamgauge.studies.capacity.sustain import Sustain
from streamgauge.studies.latency_breakdown.anatomy import check_trials
from streamgauge.studies.operator_profile.characterize import check_input
from streamgauge.transports.topics import ProgramTopics, ProgressSource
from streamgauge.trial.events import unobserved
from streamgauge.user_workloads import program as program_module
from streamgauge.user_workloads.program import Program, program
from streamgauge.user_workloads.program_node import ProgramNode

GOOD = """
kind = "program"
command = ["{python}", "consumer.py", "--from={input}"]
reference = "SELECT user_id, price, ts FROM purchases WHERE price > 90"

[inputs.purchases]
key = "user_id"
time = "ts"

[inputs.purchases.fields]
user_id = { kind = "key", domain = 1000 }
price = { kind = "integer", low = 1, high = 100 }

[output]
keys = ["user_id", "ts"]
time = "ts"
reach = "0s"
"""
WINDOWS = "SELECT user_id, sum(price) AS revenue, (ts // 2000 + 1) * 2000 AS closed FROM purchases GROUP BY ALL"
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the good file with texts replaced, each of which it must have."""

    def written(*changes: tuple[str, str], name: str = "program.toml") -> Path:
        text = GOOD
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        path = tmp_path / "dear" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return written


def the_problem(path: Path) -> str:
    """The one problem of a bad file."""
    with pytest.raises(JobError) as refusal:
        program(path)
    (problem,) = refusal.value.problems
    assert problem.way_out
    return str(refusal.value)


def resolved(path: Path, **more: object) -> ResolvedExperiment:
    return check(build({"workload": str(path), "load": {"rate": "1k"}, "out": str(path.parent), **more}))


def test_a_file_is_a_workload(write: Write) -> None:
    """Named after its folder, or after its file if that is not program.toml."""
    workload = program(write())
    flow, streams, _ = workload.build(workload.read({}), 1000.0)
    (stream,) = streams
    assert (workload.name, program(write(name="cheap.toml")).name) == ("dear", "cheap")
    assert (stream.schema.types(), stream.key) == ({"user_id": "int", "price": "int", "ts": "bigint"}, "user_id")
    assert isinstance(flow.sink.input, ProgramNode)
    (output,) = workload.topics.outputs.values()
    assert output.types == {"user_id": "bigint", "price": "bigint", "ts": "bigint"}
    assert (output.required, output.time, output.unit_us) == (("user_id", "ts"), "ts", 1000)


def test_engine_transport_and_encoding_follow(write: Write) -> None:
    """Nothing but the file has to be named, and its messages hold the declared fields only."""
    experiment = resolved(write())
    assert (experiment.engine.name, experiment.experiment.transport) == ("external", "kafka")
    assert experiment.transport_options["encoding"] == "json"
    assert experiment.columns == {"purchases": ("user_id", "price", "ts")}


def test_the_recorder_gets_the_results(write: Write) -> None:
    """Their types, and how long the first of them may take. Records carry the planned time unless the file says
    otherwise.
    """
    assert program(write(('key = "user_id"', 'record_timestamp = "sent"'))).topics.planned == set()
    topics = program(write(('reach = "0s"', 'reach = "5s"'))).topics
    assert (list(topics.inputs), topics.timeout_s) == (["purchases"], 30.0)
    assert topics.planned == {"purchases"}
    assert (topics.outputs["results"].reach_s, topics.first_result_s) == (5.0, 35.0)
    assert topics.outputs["results"].types == {"user_id": "bigint", "price": "bigint", "ts": "bigint"}


def test_the_time_field_has_its_unit(write: Write) -> None:
    """Milliseconds, rounded down from the plan's microseconds."""
    plan = resolved(write()).plan(7 * US + 1500, 1000.0, 1.0)
    assert plan.batch(0, 0, 0, 1, ["ts"]).column("ts").to_pylist() == [7001]


def answer(workload: Program) -> list[tuple[object, ...]]:
    """To one purchase."""
    rows = "SELECT 1 AS user_id, 95 AS price, 7001::BIGINT AS ts, 7001500::BIGINT AS event_time"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return list(workload.answer(connection, "results", {"purchases": rows}).fetchall())


def test_a_window_has_the_event_time_of_its_end(write: Write) -> None:
    """One microsecond before it, and its end as a timestamp, if results carry no time of their own."""
    changes = (
        ("SELECT user_id, price, ts FROM purchases WHERE price > 90", WINDOWS),
        ('keys = ["user_id", "ts"]\ntime = "ts"', 'keys = ["user_id", "closed"]\nwindow_end = "closed"'),
    )
    ((*row, window_end),) = answer(program(write(*changes)))
    assert (row, str(window_end)) == ([1, 95, 8000, 7_999_999], "1970-01-01 00:00:08")


@pytest.mark.parametrize("word", ["export A=1; " * 30, ":".join(["/opt/jars/one.jar"] * 400)])
def test_a_word_of_the_command_may_be_longer_than_a_path(write: Write, word: str) -> None:
    """A script of a shell, or a class path."""
    assert program(write(("--from={input}", word))).files.keys() == {"program.toml"}


@pytest.mark.parametrize("end", ["", "-- of the dear ones", ";;", "/* it's all */", "ORDER BY ts;"])
def test_a_reference_may_end_with_a_comment(write: Write, end: str) -> None:
    """What the check before the run lets through also runs after it. The event time follows from the output's time
    field in its unit.
    """
    assert answer(program(write(("price > 90", f"price > 90 {end}")))) == [(1, 95, 7001, 7_001_000)]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('kind = "program"', 'kind = "job"', 'must have kind = "program"'),
        ('kind = "program"\n', "", "an experiment file: streamgauge experiment"),
        ('kind = "program"', 'kind = "program"\ncomands = 1', "is not a setting; these are: kind, title, command"),
        ("[inputs.purchases.fields]", "[inputs.purchases.feilds]", "is not a setting; these are: topic, format"),
        ('reference = "SELECT user_id', 'reference = "SELECT userid', "must be DuckDB SQL over its inputs (purchases)"),
        ('reference = "SELECT', 'reference = "-- SELECT', "must be DuckDB SQL over its inputs (purchases)"),
        ("price > 90", "price > 90; -- of the dear ones", 'syntax error at or near ";"'),
        ("user_id, price, ts FROM", "map() AS m, user_id, ts FROM", "must have columns that JSON can hold"),
        ("price, ts FROM", "price FROM", "must be a column of the reference: user_id, price"),
        ("price, ts FROM", "price, ts::VARCHAR AS ts FROM", "must be a whole number of ms, or a timestamp"),
        ("price, ts FROM", "price, ts::VARCHAR AS ts FROM", "CAST(ts AS TIMESTAMP) AS ts in the reference"),
        ("price, ts FROM", "price, ts::DOUBLE AS ts FROM", "CAST(ts AS BIGINT) AS ts in the reference"),
        ('"user_id", "ts"]', '"user", "ts"]', '"user_id", or add user to the reference'),
        ('reach = "0s"', 'reach = "soon"', "reach"),
        ('key = "user_id"', 'key = "user"', 'key = "user_id"'),
        ('time = "ts"', 'time = "price"', "must differ from"),
        ('kind = "key", domain', 'kind = "keys", domain', 'kind = "key"'),
        ("domain = 1000", "domains = 1000", "is not a setting of a key"),
        ("domain = 1000", 'distribution = "zipf"', "must be given for a key"),
        ("low = 1", "low = 1000", "low..high must rise"),
        ("{python}", "no-such-program-anywhere", "must begin with a program that exists"),
        ("{input}", "{input.orders}", "{input.purchases}"),
        ("[output]", 'ready_line = "up"\n[output]', "must be a table of settings"),
        ('kind = "program"', 'kind = "program"\nready_line = "up"', 'must be given with ready = "line"'),
        ('kind = "program"', 'kind = "program"\nready = "line"\nready_line = "(["', "must be a regular expression"),
        ('kind = "program"', 'kind = "program"\ntimeout = "long"', "timeout"),
        ('kind = "program"', 'kind = "program"\ntimeout = "0s"', "must be above 0s"),
        ('kind = "program"', 'kind = "program"\nready = "soon"', "must be one of consumer, committed, line, started"),
        ('reach = "0s"', 'mode = "upsert"', "must be one of append, update"),
        (
            'time = "ts"\nreach',
            'latency_key = ["user"]\nreach',
            "must be a column of the reference: user_id, price, ts",
        ),
        ('time = "ts"\nreach', 'time = "ts"\nlatency_key = ["ts"]\nreach', "without time and window_end only"),
        ('reach = "0s"', 'delivery = "once"', "must be one of exactly_once, at_least_once, at_most_once"),
        ('reach = "0s"', 'delivery = "at_most_once"', "loss_max: must be given with at_most_once"),
        ('reach = "0s"', "loss_max = 0.1", "loss_max: must be given with at_most_once, and only with it"),
        ('reach = "0s"', 'delivery = "at_most_once"\nloss_max = 1.5', "loss_max: must be below 1"),
        ('reach = "0s"', 'mode = "update"\ndelivery = "at_least_once"', 'applies to mode = "append" only'),
        ('keys = ["user_id", "ts"]', 'mode = "update"', "must name the fields whose values are updated"),
        ('reach = "0s"', 'time_unit = "ns"', "must be one of s, ms, us"),
        ('key = "user_id"', 'record_timestamp = "plan"', 'try: record_timestamp = "planned"'),
        ('key = "user_id"', 'key = "user_id"\nsample = "purchases.json"', "got 'both'"),
    ],
)
def test_a_bad_file_gets_one_message(write: Write, old: str, new: str, words: str) -> None:
    """It names the file, the setting, the rule, the value and the way out."""
    message = the_problem(write((old, new)))
    assert (message.startswith("program.toml: "), words in message) == (True, True), message


def test_an_empty_name_is_none(write: Write) -> None:
    """As an empty topic or group is."""
    (stream,) = (
        program(
            write(
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


def test_it_is_not_an_experiment(write: Write) -> None:
    """One message with the right command, not one for each of its settings."""
    path = write()
    with pytest.raises(InputError) as refusal:
        read(path)
    assert [problem.way_out for problem in refusal.value.problems] == [f"streamgauge run {path}"]


def test_a_missing_file_and_other_text(tmp_path: Path) -> None:
    """As for every file of a user's."""
    assert "must be a file that can be read" in the_problem(tmp_path / "none.toml")
    (tmp_path / "text.toml").write_text("command =")
    assert "must be TOML" in the_problem(tmp_path / "text.toml")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"engine": "spark"}, "does not support programs over Kafka"),
        ({"transport": "flight"}, "must be one that external can read: kafka"),
        ({"master": "local[2]"}, "does not apply to the engine external"),
        ({"parallelism": 2}, "must reach the program, and neither its command nor its environment has {parallelism}"),
        ({"parallelism": 2}, "(scale: --resource partitions)"),
        ({"transport_options": {"encoding": "avro"}}, "a program's file names the format of each topic"),
        ({"options": {"trigger": "1s"}}, "is not an option of external"),
        ({"parameters": {"data": "x.csv"}}, "is for built-in workloads"),
    ],
)
def test_what_a_program_cannot_be_run_with(write: Write, more: dict[str, object], words: str) -> None:
    """Refused before anything starts."""
    with pytest.raises(InputError, match=re.escape(words)):
        resolved(write(), **more)


@pytest.mark.parametrize(("command", "refuse"), [("anatomy", check_trials), ("characterize", check_input)])
def test_a_program_has_no_known_operators(write: Write, command: str, refuse: Callable[[Experiment], object]) -> None:
    """That is the one reason, with a command that does apply; not that of an engine, which it cannot choose."""
    path = write()
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
SCHEMA = """{"type": "record", "name": "purchase", "fields": [
  {"name": "user_id", "type": "long"}, {"name": "price", "type": ["null", "int"]}, {"name": "ts", "type": "long"}]}"""
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


def test_nested_fields_have_dotted_names(write: Write) -> None:
    """In messages, keys and references."""
    workload = program(write(NESTED, ('key = "user_id"', 'key = "user.id"'), ("SELECT user_id", "SELECT 1 AS user_id")))
    _, (stream,), _ = workload.build(workload.read({}), 1000.0)
    assert (stream.schema.names, stream.key) == (("user.id", "user.name", "price", "ts"), "user.id")


def test_names_that_differ_by_case_alone_are_refused(write: Write) -> None:
    """They would be one view of the reference and one variable of the program."""
    again = '[inputs.Purchases.fields]\nuser_id = { kind = "key", domain = 10 }\n[inputs.purchases.fields]'
    message = the_problem(write(("[inputs.purchases.fields]", again), ("{input}", "{input.purchases}")))
    assert "must differ from purchases by more than upper and lower case" in message


def test_names_are_those_of_topics(write: Write) -> None:
    """Kafka takes no other letters, and would say so at the start."""
    new = '"käufe"'
    message = the_problem(write(
        ("[inputs.purchases]", f"[inputs.{new}]"), ("[inputs.purchases.fields]", f"[inputs.{new}.fields]"),
        ("FROM purchases", "FROM käufe"),
    ))  # fmt: skip
    assert "inputs.käufe: must have a name of letters (a to z), digits and _" in message


def test_several_outputs(write: Write) -> None:
    """Each is a sink with its own mode, reach, reference, topic and format."""
    path = write()
    text, _, _ = path.read_text().partition("[output]")
    path.write_text("\n".join(line for line in text.splitlines() if not line.startswith("reference")) + TWO_OUTPUTS)
    workload = program(path)
    experiment = resolved(path)
    assert [(sink.name, sink.mode) for sink in experiment.flow.sinks] == [("dear", "append"), ("totals", "update")]
    assert [one.reach_us for one in experiment.by_sink()] == [0, None]
    assert experiment.columns == {"purchases": ("user_id", "price", "ts")}
    assert workload.topics.output_topics("r") == {"dear": "streamgauge-r.results-dear", "totals": "totals"}
    assert workload.described("totals").keys == ("user_id",)


def test_a_program_that_runs_already(write: Write) -> None:
    """Its brokers follow from its file, and the notes say what is not known."""
    named = 'attach = true\nbrokers = "localhost:9092"\ngroup = "mine"\n'
    path = write(
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


def test_progress_by_checkpoints(write: Write) -> None:
    """Relative folders are beside the file; several partitions are fine."""
    path = write(("reference =", f"{CHECKPOINTS}reference ="))
    places = ("{scratch}/a", str(path.parent / "b/{run}"), "/c", "/d")
    found = resolved(path, partitions=2).workload
    assert isinstance(found, Program)
    assert found.topics.progress == ProgressSource("spark_checkpoint", places)
    assert found.launch.checkpoints == places
    assert ProgramTopics.from_plain(json.loads(json.dumps(asdict(found.topics)))) == found.topics


def test_progress_by_results_needs_one_partition(write: Write) -> None:
    """Refused before the start, with the ways out."""
    path = write(("reference =", 'progress = "results"\nreference ='))
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
def test_a_program_that_runs_already_may_have_no_group(write: Write, more: str, refused: str) -> None:
    """If something else shows that it is ready, and how far it has read. It has no folder of ours."""
    path = write(
        ('command = ["{python}", "consumer.py", "--from={input}"]', f'attach = true\nbrokers = "b:1"\n{more}'),
        ("[inputs.purchases]", '[inputs.purchases]\ntopic = "orders"'), ("[output]", '[output]\ntopic = "dear"'),
    )  # fmt: skip
    if refused:
        assert refused in the_problem(path)
    else:
        assert program(path).launch.group == ""


def test_sparks_kafka_jars_are_got_before_a_start_if_they_are_used(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And only then."""
    calls: list[str] = []
    monkeypatch.setattr(program_module, "spark_kafka_jars", lambda: calls.append("jars"))
    program(write()).require()
    assert calls == []
    program(write(("--from={input}", "--jars={spark_kafka_jars}"))).require()
    assert calls == ["jars"]


def test_a_silent_program_ends_by_its_own_timeout(write: Write) -> None:
    """The queue holds more than its patience. A scale study can set the parallelism that its command takes."""
    assert resolved(write(('"--from={input}"', '"--cores={parallelism}"')), parallelism=2).experiment.parallelism == 2
    experiment = resolved(write(('kind = "program"', 'kind = "program"\ntimeout = "90s"')))
    assert min(experiment.queue_s, experiment.bound_s(1000.0)[0]) > 90


def test_results_without_a_time_are_noted_as_without_latency(write: Write) -> None:
    """Before the run."""
    workload = program(write(('time = "ts"\nreach', "reach"), ('"user_id", "ts"]', '"user_id"]')))
    words = "they have no latency, and those of windows still open at the end count as missing; name the field"
    assert any(words in note for note in workload.notes)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('kind = "program"', 'kind = "program"\nattach = true', "or attach = true for a program that runs already"),
        ("[output]", '[outputs.more]\ntime = "ts"\nreference = "SELECT 1"\n[output]', "must be one table [output]"),
        ("[output]", '[output]\ntopic = "a b"', "must have letters, digits, . _ and - only"),
        ("[output]", '[output]\nformat = "xml"', "must be one of json, csv, text, avro"),
        ("[output]", '[output]\nformat = "text"', "text needs a reference of one column of text"),
        ("[output]", '[output]\nformat = "avro"', "must be given for the format avro"),
        ("[output]", '[output]\nformat = "avro"\nschema_file = "none.avsc"', "No such file"),
        ("[output]", '[output]\nformat = "protobuf"\nschema_file = "other.avsc"', "it is no descriptor set"),
        ("[output]", '[output]\nmessage = "shop.Total"', "applies to the format protobuf or protobuf-confluent only"),
        ("[output]", '[output]\nformat = "avro"\nschema_file = "other.avsc"', "must have user_id in its schema"),
        ("[output]", '[output]\ndelimiter = ";"', "applies to the format csv only"),
        ("[output]", '[output]\nformat = "csv"\ndelimiter = ";;"', "must be one character"),
        ("[inputs.purchases]", '[inputs.purchases]\nformat = "text"', "text needs one field"),
        ("[inputs.purchases]", '[inputs.purchases]\nformat = "avro"\nschema_file = "more.avsc"', "for each one of the"),
        ("{input}", "{output.dear}", "{output.results}"),
        ("price = {", 'user_id.x = { kind = "key", domain = 5 }\nprice = {', "TOML"),
    ],
)
def test_a_bad_topic_or_format_gets_one_message(write: Write, old: str, new: str, words: str) -> None:
    """As every other setting."""
    path = write((old, new))
    (path.parent / "other.avsc").write_text(SCHEMA.replace("user_id", "user"))
    (path.parent / "more.avsc").write_text(SCHEMA.replace('"price"', '"cost"'))
    with pytest.raises(JobError, match=re.escape(words)):
        program(path)


def test_each_trial_of_a_search_starts_it_anew(write: Write) -> None:
    """With new topics and a new group, although its reach is finite."""
    nothing: Any = None
    experiment = resolved(write(), command="sustain", load={})
    assert experiment.reach_us == 0
    assert Sustain(experiment, nothing, nothing, 1000.0, observe=unobserved).settings().fresh_always


TIMELESS = ('time = "ts"\nreach', 'latency_key = ["user_id", "ts"]\nreach')


def test_results_without_a_time_may_name_their_record(write: Write) -> None:
    """By fields of one input, which every result then has."""
    workload = program(write(TIMELESS))
    assert workload.described("results").latency_key == RecordKey("purchases", ("user_id", "ts"))
    assert workload.topics.outputs["results"].required == ("user_id", "ts")
    assert not any("they have no latency" in note for note in workload.notes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("SELECT user_id, price", "SELECT user_id::DOUBLE AS user_id, price"), "user_id is int; got 'user_id float'"),
        (("[inputs.purchases]\nkey", '[inputs.sales]\ntime = "ts"\nfields.user_id = { kind = "key", domain = 9 }\n'
          '[inputs.purchases]\nkey'), "must be fields of exactly one input; these have them: sales, purchases"),
    ],
)  # fmt: skip
def test_a_latency_key_that_names_no_record_is_refused(write: Write, change: tuple[str, str], words: str) -> None:
    """With the input that has the fields, and their types."""
    assert words in the_problem(write(TIMELESS, change, ("{input}", "{input.purchases}")))
