"""cli: what the commands print, for people and as JSON."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamgauge.config.experiment_file import read
from streamgauge.results.verdict import Check
from streamgauge.studies.capacity import sustain as sustain_module
from streamgauge.studies.selftest import checks
from tests.unit.cli.helpers_commands import Invoke, assert_one_refusal, command, result_of


def test_lists_as_json_hold_nothing_else(invoke: Invoke) -> None:
    """Standard output of a process is one JSON list of objects with a name."""
    done = command("workloads", "--json")
    assert "windowed_aggregation" in [row["name"] for row in json.loads(done.stdout)]
    assert "spark" in [row["name"] for row in json.loads(invoke("engines", "--json").stdout)]


def test_engines_as_json_have_the_options_of_their_transports(invoke: Invoke) -> None:
    """Of those that they know; one that takes none has an empty list."""
    rows = {row["name"]: row["transport_options"] for row in json.loads(invoke("engines", "--json").stdout)}
    assert rows["known"] == {"memory": []}
    assert {"brokers", "encoding", "acks"} <= {option["name"] for option in rows["spark"]["kafka"]}


@pytest.mark.parametrize("what", ["workloads", "engines"])
def test_lists_for_people(what: str, invoke: Invoke) -> None:
    """A table, with every name in it."""
    done, rows = invoke(what), json.loads(invoke(what, "--json").stdout)
    assert (done.returncode, [row["name"] for row in rows if row["name"] not in done.stdout]) == (0, [])


def test_all_of_one_workload_where_it_is_named(invoke: Invoke) -> None:
    """For people and as JSON: its own row alone, as it stands in the whole list."""
    whole = json.loads(invoke("workloads", "--json").stdout)
    (row,) = json.loads(invoke("workloads", "windowed_join", "--json").stdout)
    assert [one for one in whole if one["name"] == "windowed_join"] == [row]
    shown = invoke("workloads", "windowed_join").stdout
    assert all(f"  {one['name']}={one['default']}\n" in shown for one in row["parameters"])
    assert "voipstream" not in shown
    assert len(invoke("workloads").stdout.splitlines()) < 5 * len(whole)


def test_the_dataflow_of_a_workload_as_json(invoke: Invoke) -> None:
    """One document on standard output, at the given parameters."""
    document = json.loads(invoke("workloads", "windowed_aggregation", "--flow-json", "--set", "range=12s").stdout)
    assert (document["workload"]["parameters"]["range"], document["format_version"]) == (12.0, 1)
    assert document["nodes"][0]["window"] == {"range_us": 12_000_000, "slide_us": 4_000_000}


@pytest.mark.parametrize("kind", ["experiment", "program"])
def test_the_schema_of_a_kind_of_file(kind: str, invoke: Invoke) -> None:
    """One JSON Schema on standard output, which takes files of this kind."""
    done = invoke("schema", kind)
    of_kind = json.loads(done.stdout)["properties"]["kind"]
    assert (done.returncode, of_kind["const"]) == (0, kind)


def test_a_schema_of_another_kind_is_refused() -> None:
    assert_one_refusal(command("schema", "programm"), "KIND")


def test_print_toml_comes_back_as_it_went(stand: Path, invoke: Invoke) -> None:
    """The file that a command shows asks the same when it is read; nothing is started for it."""
    words = ["run", "windowed_aggregation", "--rate", "1.5M", "--duration", "2m", "--set", "range=10s", "--seed", "7",
             "--option", "spark.sql.shuffle.partitions=4", "--limit", "p50<=2s", "--generators", "3"]  # fmt: skip
    shown = invoke(*words, "--print-toml")
    assert shown.returncode == 0
    path = stand / "experiment.toml"
    path.write_text(shown.stdout)
    experiment, load = read(path), read(path).load
    assert (load.rate, load.duration, load.seed, load.generators) == (1.5e6, 120.0, 7, 3)
    assert (experiment.parameters, experiment.limits) == ({"range": "10s"}, ("p50<=2s",))
    again = invoke("experiment", str(path), "--print-toml")
    assert (again.returncode, again.stdout) == (0, shown.stdout)
    assert list(stand.iterdir()) == [path]


def test_generate_notes_what_a_run_notes_of_own_data(stand: Path, invoke: Invoke) -> None:
    """With the counts, for people or as JSON: what is null in the files, and how often the rows come."""
    (stand / "bought.csv").write_text("user_id,gem_pack_id,price\n1,2,30\n1,2,dear\n")
    args = ("generate", "identity", "--set", "data=bought.csv", "--rate", "10", "--duration", "1s", "--out")
    text, document = invoke(*args, "one"), invoke(*args, "other", "--json")
    notes = json.loads(document.stdout)["notes"]
    assert notes[0] == "data of purchases: price is null in 1 of 2 rows (unreadable value: 1)"
    assert notes[1].startswith("data of purchases: its 2 rows come 5 times; ")
    assert [line for note in notes if (line := f"note  {note}") not in text.stdout.replace("\n", " ")] == []


@pytest.mark.parametrize("as_json", [True, False])
def test_generate_shows_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, stand: Path, invoke: Invoke, as_json: bool
) -> None:
    """On stderr, with --json too: what is written for an hour may take minutes."""

    def written(experiment: Any, out: Path, progress: Callable[[int, int], None]) -> dict[str, Any]:
        progress(2_000_000, 4_000_000)
        return {"out": str(out), "events": {"purchases": 4_000_000}, "replaced": 2, "notes": []}

    monkeypatch.setattr("streamgauge.studies.run.generate_input.generate", written)
    monkeypatch.setattr("streamgauge.report.terminal.console.PLAIN_EVERY_S", 0.0)
    done = invoke("generate", "identity", "--out", "there", *(["--json"] if as_json else []))
    assert (done.returncode, "written 2 M events of 4 M events" in done.stderr) == (0, True)
    if as_json:
        assert json.loads(done.stdout)["events"] == {"purchases": 4_000_000}
    else:
        assert done.stdout.endswith("replaced  the previous input\n")


@pytest.mark.parametrize(("holds", "code"), [(True, 0), (False, 1)])
def test_the_self_test_answers_as_json(monkeypatch: pytest.MonkeyPatch, invoke: Invoke, holds: bool, code: int) -> None:
    """One object on stdout with all its items; exit code 1 where one does not hold. Progress goes to stderr."""
    if not holds:
        monkeypatch.setattr(checks, "_input_digest", lambda seed: "the same for each")
    done = invoke("selftest", "--only", "f", "--json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["ok"], result["quick"]) == (code, holds, False)
    assert [(item["item"], item["ok"]) for item in result["items"]] == [("f", holds)]
    assert set(result) == {"ok", "quick", "seconds", "environment", "items"}
    assert result["environment"]["cpus"] >= 1
    assert f"{'holds' if holds else 'FAILS'}  f  the same seed" in done.stderr


@pytest.mark.parametrize("words", [["sustain", "identity", "-v"], ["experiment", "experiment.toml", "-v"]])
def test_a_search_shows_its_answer_once(
    monkeypatch: pytest.MonkeyPatch, invoke: Invoke, stand: Path, words: list[str]
) -> None:
    """On stdout, with every check where they are requested."""
    (stand / "experiment.toml").write_text('command = "sustain"\nworkload = "identity"\n')
    check = Check(name="driver", value=0, limit=0, unit="", ok=True, state="ok", sentence="")
    answer = result_of("sustained")
    answer = answer.model_copy(update={"verdict": answer.verdict.model_copy(update={"checks": (check,)})})
    monkeypatch.setattr(sustain_module, "sustain", lambda *_: answer)
    done = invoke(*words)
    assert (done.returncode, done.stdout.count("said so"), done.stdout.count("driver ")) == (0, 1, 1)
    assert "said so" not in done.stderr


@pytest.mark.parametrize("words", [(), ("--quiet",)])
def test_finished_checks_of_the_self_test_are_its_answer(invoke: Invoke, words: tuple[str, ...]) -> None:
    done = invoke("selftest", "--only", "f", *words)
    assert (done.returncode, done.stdout.split()[:2], done.stderr) == (0, ["holds", "f"], "")


def test_a_report_of_a_damaged_folder_says_what_is_damaged(stand: Path, invoke: Invoke) -> None:
    """On stderr and as JSON; the page is written."""
    (stand / "result.json").write_text(result_of("sustained").to_json())
    (stand / "verification.json").write_text('{"expected": 1')
    done = invoke("report", str(stand), "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, len(answer["damage"]), Path(answer["report"]).is_file()) == (0, 1, True)
    assert "verification.json" in answer["damage"][0]
    assert answer["damage"][0] in done.stderr


@pytest.mark.parametrize(
    ("words", "shown"), [((), "checking the request\n"), (("--json",), "checking the request\n"), (("-q",), "")]
)
def test_a_command_shows_at_once_that_it_has_begun(
    monkeypatch: pytest.MonkeyPatch, invoke: Invoke, words: tuple[str, ...], shown: str
) -> None:
    """On stderr, unless it is to be quiet."""
    monkeypatch.setattr("streamgauge.studies.run.run.run_single", lambda *_: result_of("sustained"))
    assert invoke("run", "identity", *words).stderr == shown
