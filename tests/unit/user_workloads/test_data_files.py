"""Workloads on a user's own data: which stream a file is of, what stands in the result, what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from streamgauge.config import reproduce
from streamgauge.config.experiment import build
from streamgauge.config.experiment_file import read
from streamgauge.core.errors import DriverError, InputError, Problem
from streamgauge.dataflow.graph import sources
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.replay.columns import ReplayedColumn
from streamgauge.loadgen.replay.files import content, digest
from streamgauge.preflight.settings_checks import check
from streamgauge.studies.run import run as run_module
from streamgauge.user_workloads import data_files as user_data
from streamgauge.user_workloads.lookup import changed_files, with_absolute_paths
from streamgauge.workloads.registry import get


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "bought.csv"
    path.write_text("user_id,gem_pack_id,price\n1,2,30\n4,5,60\n")
    return path


def refused(workload: str, **parameters: Any) -> Problem:
    """The first problem."""
    with pytest.raises(InputError) as refusal:
        check(build(values_of(workload, **parameters)))
    return refusal.value.problems[0]


def prices_in(plan: Plan) -> list[list[int]]:
    """Those of the first two events of each partition."""
    return [plan.batch(0, partition, 0, 2, ["price"]).column("price").to_pylist() for partition in range(2)]


def values_of(workload: str, **parameters: Any) -> dict[str, Any]:
    return {"workload": workload, "parameters": parameters, "load": {"rate": 1000}}


def test_a_workload_runs_on_the_rows_of_a_file(data: Path) -> None:
    """With its own parameters beside; the file's digest is of what the run was."""
    resolved = check(build(values_of("filter", data=str(data), above="50")))
    assert prices_in(resolved.plan(0, 1000.0, 1.0)) == [[30, 30], [60, 60]]
    before = dict(resolved.workload.files)
    assert (list(before), list(changed_files(resolved.workload, before, "-"))) == ([str(data)], [])
    data.write_text(data.read_text() + "7,8,90\n")
    again = check(build(values_of("filter", data=str(data))))
    assert [problem.setting for problem in changed_files(again.workload, before, "-")] == [str(data)]


def test_one_stream_of_several_is_named(data: Path) -> None:
    """The others are made as ever."""
    plan = check(build(values_of("windowed_join", **{"data.purchases": str(data)}))).plan(0, 1000.0, 1.0)
    numbers = {stream.name: number for number, stream in enumerate(plan.streams)}
    assert plan.batch(numbers["purchases"], 0, 0, 1, ["price"]).column("price").to_pylist() == [30]
    assert len(set(plan.batch(numbers["ads"], 0, 0, 50, ["user_id"]).column("user_id").to_pylist())) > 2


def test_a_file_of_a_stream_stands_beside_the_workloads_own(data: Path) -> None:
    """What decides what the workload is: neither takes the other's place."""
    workload, _ = user_data.with_user_data(replace(get("filter"), files={"map.bin": "a" * 64}), {"data": str(data)})
    assert dict(workload.files) == {"map.bin": "a" * 64, str(data): digest(data)}


def test_the_only_stream_gets_one_file(data: Path) -> None:
    """By either name."""
    for name in ("data", "data.purchases"):
        streams = check(build(values_of("filter", **{name: str(data)}))).streams(1000.0)
        assert {type(field) for field in streams[0].fields} == {ReplayedColumn}


def test_a_file_is_the_one_that_was_checked(data: Path) -> None:
    """At every rate of a search: one that has changed since is our failure, and not another workload."""
    resolved = check(build(values_of("filter", data=str(data))))
    data.write_text("user_id,gem_pack_id,price\n7,8,90\n")
    content.cache_clear()
    with pytest.raises(DriverError, match="was changed after it was checked"):
        resolved.streams(2000.0)


def test_engines_know_which_columns_hold_nulls(data: Path) -> None:
    """The flow's sources have the schemas of the streams: an engine that is promised values may do anything else."""
    data.write_text("user_id,gem_pack_id,price\n1,2,\n4,5,60\n")
    resolved = check(build(values_of("filter", data=str(data))))
    (source,), (stream,) = sources(resolved.flow), resolved.streams(1000.0)
    assert source.schema == stream.schema
    assert [field.name for field in source.schema.fields if field.nullable] == ["price"]


def test_only_what_is_read_must_be_in_the_file(data: Path) -> None:
    """Of Spike Detection the quantity that is looked at; of Traffic Monitoring everything but the taxi."""
    for workload, names, parameters in (
        ("spike_detection", "device,volt", {"parser_value_field": "volt"}),
        ("traffic_monitoring", "speed,lon,lat", {}),
        ("windowed_aggregation", "price,gem_pack_id", {}),
    ):
        data.write_text(f"{names}\n" + "1,2,3\n"[: 2 * names.count(",") + 1] + "\n")
        check(build(values_of(workload, data=str(data), **parameters)))


@pytest.mark.parametrize(("workload", "column", "rest", "keys"), [
    ("bargain_index", "stock", "quote,price,size\n{},0,20.5,100", ("AAPL", "IBM")),
    ("fraud_detection", "customer", "state\n{},LNL", ("7X3Q0ZP4KD", "0000000001A")),
    ("machine_outlier", "machine", "cluster,cpu,memory\n{},0,0.5,0.5", ("m_1932", "m_1933")),
    ("voipstream", "calling", "called,duration,established\n{},15551234567,60,1", ("15551234568", "4915551234567")),
    ("smart_grid", "house_id", "value,property,plug_id,household_id\n{},5,1,1,1", ("north", "south")),
    ("yahoo_streaming", "ad_id", "event_type\n{},view", ("9b1c-01", "9b1c-02")),
    ("spike_detection", "device", "temp\n{},20.5", ("mote-1", "mote-2")),
])  # fmt: skip
def test_keys_may_be_names(data: Path, workload: str, column: str, rest: str, keys: tuple[str, str]) -> None:
    """As public data sets have them; a note says so."""
    names, _, row = rest.partition("\n")
    data.write_text("\n".join([f"{column},{names}", *(row.format(key) for key in (*keys, keys[0]))]))
    plan = check(build(values_of(workload, data=str(data)))).plan(0, 1000.0, 1.0)
    events = plan.batch(0, 0, 0, 2, [column]).to_pylist() + plan.batch(0, 1, 0, 2, [column]).to_pylist()
    first, second = (event[column] for event in (events[0], events[2]))
    assert [event[column] for event in events] == [first, first, second, first]
    assert first != second
    assert any(f"{column}: " in note and "numbered by first app" in note for note in notes(plan))


def test_ids_of_mails_may_be_texts_in_both_streams(tmp_path: Path) -> None:
    """Each a file's of its own, and the ids of both are numbered together."""
    training, analysis = tmp_path / "training.jsonl", tmp_path / "analysis.jsonl"
    training.write_text('{"id": "inmail.1", "message": "buy now", "spam": true}\n')
    analysis.write_text('{"id": "inmail.9", "message": "hello"}\n{"id": "inmail.1", "message": "buy"}\n')
    files = {"data.training": str(training), "data.analysis": str(analysis)}
    plan = check(build(values_of("spam_filter", **files))).plan(0, 1000.0, 1.0)
    assert [plan.batch(stream, 0, 0, 1, ["id"]).column("id").to_pylist() for stream in range(2)] == [[0], [1]]


def notes(plan: Plan) -> tuple[str, ...]:
    return tuple(note for one in user_data.replayed_data(plan, plan.end_us) for note in user_data.notes_of(one))


def test_a_result_says_what_of_a_file_could_be_taken(data: Path) -> None:
    """Beside the file's digest: rows and lines, and of each column what is null and why; the same in words."""
    data.write_text("user_id,gem_pack_id,price\n1,2,30\n4,5,much\n7,8\n4,,60\n")
    plan = check(build(values_of("filter", data=str(data)))).plan(0, 1000.0, 1.0)
    (stored,) = user_data.replayed_data(plan, plan.end_us)
    assert stored.model_dump() == {
        "stream": "purchases", "file": str(data), "sha256": digest(data), "rows": 3, "left_out": 1,
        "left_out_no_utf8": 0, "rounds": pytest.approx(1000 / 3), "time": None,
        "columns": (
            {"name": "user_id", "unreadable": 0, "empty": 0, "numbered": None},
            {"name": "gem_pack_id", "unreadable": 0, "empty": 1, "numbered": None},
            {"name": "price", "unreadable": 1, "empty": 0, "numbered": None},
        ),
    }  # fmt: skip
    assert tuple(user_data.notes_of(stored)) == (
        "data of purchases: 1 line is no row, and is left out",
        "data of purchases: gem_pack_id is null in 1 of 3 rows (no value: 1)",
        "data of purchases: price is null in 1 of 3 rows (unreadable value: 1)",
        "data of purchases: its 3 rows come 333 times; times in the rows repeat in each round "
        "(data.time=COLUMN makes a time column continue)",
    )


@pytest.mark.parametrize(("texts", "events", "message"), [
    ("1,2,30\n", 1000, "its one row comes 1,000 times"), ("1,2,30\n" * 3, 123_456, "its 3 rows come 41,152 times"),
    ("1,2,30\n" * 3, 5, "its 3 rows come 1.67 times"),
])  # fmt: skip
def test_how_often_a_file_comes_is_written_in_plain_numbers(data: Path, texts: str, events: int, message: str) -> None:
    """No powers of ten."""
    data.write_text("user_id,gem_pack_id,price\n" + texts)
    assert message in notes(check(build(values_of("filter", data=str(data)))).plan(0, float(events), 1.0))[0]


def test_a_file_that_comes_once_needs_no_word(data: Path) -> None:
    """Nothing in it comes again; with one event more, something does."""
    resolved = check(build(values_of("filter", data=str(data))))
    once, more = (resolved.plan(0, 1000.0, events / 1000) for events in (2, 3))
    assert [plan.planned_events(plan.start_us, plan.end_us) for plan in (once, more)] == [2, 3]
    assert notes(once) == ()
    assert [note.partition(";")[0] for note in notes(more)] == ["data of purchases: its 2 rows come 1.5 times"]


@pytest.mark.parametrize("name", ["data.time", "data.purchases.time"])
def test_the_datas_time_is_a_column_and_no_file(data: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on; no folder is put before it; another time is another input."""
    monkeypatch.chdir(data.parent)
    experiment = with_absolute_paths(build(values_of("filter", data="bought.csv", **{name: "price"})))
    assert experiment.parameters[name] == "price"
    plan = check(experiment).plan(0, 1000.0, 1.0)
    assert prices_in(plan) == [[30, 90], [60, 120]]
    assert "price continues from round to round" in notes(plan)[-1]


IDLE = "affects only generated rows"
JOB = str(Path(__file__).parents[3] / "examples" / "enrich.py")


@pytest.mark.parametrize(("workload", "parameters", "setting", "words"), [
    # Data that fit no stream. A user job's sample is in its file.
    ("windowed_join", {"data": "SHOP"}, "set data", "must name the stream: purchases, ads"),
    ("filter", {"data.purchase": "SHOP"}, "set data.purchase", "must name a stream of the workload: purchases"),
    ("filter", {"data": "SHOP", "data.purchases": "SHOP"}, "set data", "must be given once"),
    ("word_count", {"data": "SHOP"}, "set data", "must have a column text"),
    ("spike_detection", {"data": "TEMP", "parser_value_field": "volt"}, "set data", "must have a column volt double"),
    ("machine_outlier", {"data": "MACHINES"}, "set data", "or add cluster with one value, such as 0, in every row"),
    (JOB, {"data": "SHOP"}, "set data", "is for built-in workloads"),
    # A time of no file.
    ("filter", {"data": "SHOP", "data.time": "when"}, "set data.time", "must be a field of stream purchases"),
    ("filter", {"data": "SHOP", "data.time": "user_id"}, "set data.time", "that says a time"),
    ("filter", {"data.time": "price"}, "set data.time", "a file: no stream does"),
    ("filter", {"data": "SHOP", "data.ads.time": "price"}, "set data.ads.time", "a file: purchases"),
    ("windowed_join", {"data.purchases": "SHOP", "data.ads": "SHOP", "data.time": "price"}, "set data.time",
     "a file: purchases, ads"),
    ("word_count", {"data": "WORDS", "data.time": "text"}, "set data.time", "inside of a text"),
    # Parameters of rows that are not made, in one problem; those that shape the question are taken.
    ("filter", {"data": "SHOP", "packs": "2", "users": "3", "above": "50"}, "set packs, users", IDLE),
    ("windowed_aggregation", {"data": "SHOP", "distribution": "zipf", "range": "4s"}, "set distribution", IDLE),
    ("windowed_join", {"data.purchases": "SHOP", "data.ads": "SHOP", "selectivity": "0.1"}, "set selectivity", IDLE),
    ("log_processing", {"data": "LINES", "malformed": "0.5"}, "set malformed", IDLE),
])  # fmt: skip
def test_data_that_do_not_fit_are_refused(
    data: Path, workload: str, parameters: dict[str, str], setting: str, words: str
) -> None:
    """Before anything is started, with the streams and columns that there are."""
    files = {"SHOP": data, "LINES": data.with_suffix(".log")}
    files |= {name: data.with_name(f"{name}.csv") for name in ("WORDS", "TEMP", "MACHINES")}
    texts = ("one\n", "text\nthe cow\n", "device,temp\n1,20.5\n", "machine,cpu,memory\n1,0.5,0.5\n")
    for name, text in zip(("LINES", "WORDS", "TEMP", "MACHINES"), texts, strict=True):
        files[name].write_text(text)
    problem = refused(workload, **{name: str(files.get(value, value)) for name, value in parameters.items()})
    assert (problem.setting, words in str(problem)) == (setting, True), problem


def test_a_time_that_the_whole_run_cannot_say_is_refused(data: Path) -> None:
    """Before it starts, by its longest plan: an int ends in 2038, if it is of seconds."""
    data.write_text("user_id,gem_pack_id,price\n1,2,1700000000\n4,5,1700086400\n")
    values = values_of("filter", data=str(data), **{"data.time": "price"})
    with pytest.raises(InputError, match="can say in all"):
        check(build(values))
    resolved = check(build({**values, "command": "generate", "load": {"rate": 1, "duration": "4s"}}))
    with pytest.raises(InputError, match="can say in all"):  # as a search at higher rates would find
        resolved.plan(0, 100_000.0, 60.0)


@pytest.mark.parametrize(("workload", "parameters"), [
    ("filter", {"data": "FILE", "packs": "1000"}),
    ("windowed_join", {"data.purchases": "FILE", "packs": "50"}),
    ("filter", {"packs": "2", "users": "3"}),
])  # fmt: skip
def test_parameters_that_are_as_ever_or_shape_another_stream_are_taken(
    data: Path, workload: str, parameters: dict[str, str]
) -> None:
    """A default may be given; and where nothing is replayed, every one counts."""
    given = {name: str(data) if value == "FILE" else value for name, value in parameters.items()}
    check(build(values_of(workload, **given)))


def test_data_are_found_from_any_working_folder(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment says their whole path, whichever stream they are of, and leaves other parameters alone."""
    monkeypatch.chdir(data.parent)
    given = {"data": "bought.csv", "data.ads": "x/../ads.csv", "database": "places.mmdb", "above": 3}
    stored = with_absolute_paths(build(values_of("filter", **given)))
    whole = {"data": str(data), "data.ads": str(data.parent / "ads.csv"), "database": "places.mmdb", "above": 3}
    assert stored.parameters == whole
    assert with_absolute_paths(stored) == stored
    assert f"--set data={data}" in str(reproduce.command(stored.model_dump(mode="json")))
    assert with_absolute_paths(build(values_of("filter", data=""))).parameters == {"data": ""}


def test_a_parameters_file_is_one_of_the_users(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its whole path is stored however the parameter is spelled, and its digest decides what the workload is."""
    monkeypatch.chdir(data.parent)
    name = "tm.map.matcher.shapefile"
    stored = with_absolute_paths(build(values_of("traffic_monitoring", **{name: "bought.csv"})))
    assert stored.parameters == {name: str(data)}
    workload, values = user_data.with_user_data(get("traffic_monitoring"), stored.parameters)
    assert (dict(workload.files), values) == ({str(data): digest(data)}, {name: str(data)})
    workload, _ = user_data.with_user_data(
        get("log_processing"), {"data": str(data), "database": str(data.with_name("no.mmdb"))}
    )
    assert dict(workload.files) == {str(data): digest(data)}


def test_a_run_has_the_whole_path_of_its_data(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is checked at its start is what its folder says."""
    monkeypatch.chdir(data.parent)
    monkeypatch.setattr(run_module, "check", check := Mock(side_effect=ZeroDivisionError))
    with pytest.raises(ZeroDivisionError):
        run_module.run_single(build(values_of("filter", data="bought.csv")))
    assert check.call_args.args[0].parameters["data"] == str(data)


def test_data_may_lie_beside_the_experiments_file(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked for from the working folder first."""
    (data.parent / "mine.toml").write_text('workload = "filter"\n[parameters]\ndata = "bought.csv"\nabove = "50"\n')
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert read(data.parent / "mine.toml").parameters == {"data": str(data), "above": "50"}
    (elsewhere / "bought.csv").write_text(data.read_text())
    assert read(data.parent / "mine.toml").parameters["data"] == "bought.csv"


def test_a_file_that_may_not_be_read_is_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is no defect of ours."""
    monkeypatch.setattr(user_data, "digest", Mock(side_effect=PermissionError(13, "Permission denied", str(data))))
    assert "must be readable" in refused("filter", data=str(data)).rule
