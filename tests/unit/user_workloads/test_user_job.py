"""Own jobs as workloads: what a file says, and the one message that each bad file gets before anything starts."""

import importlib
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.config.experiment import build
from streamgauge.core.clock import US
from streamgauge.core.errors import InputError, JobError
from streamgauge.core.value_types import INT, TIMESTAMP, ValueType
from streamgauge.dataflow.nodes import UserJobNode
from streamgauge.preflight.settings_checks import check
from streamgauge.studies.run.generate_input import generate
from streamgauge.user_workloads.lookup import get
from streamgauge.user_workloads.user_job import user_job

HEAD = """
from streamgauge.jobs import Choice, Decimal, Integer, Key, Payload, Text, job, stream
PURCHASES = stream("purchases", Key("user_id", 1000), Integer("price", 1, 100))
"""
GOOD = """
@job(PURCHASES)
def dear(spark, inputs):
    "Purchases above 90."
    return inputs["purchases"].where("price > 90")
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a job's file, under the usual head, and files beside it."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def written(body: str, name: str = "my_job.py", head: str = HEAD) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(head) + textwrap.dedent(body))
        return path

    return written


def the_problem(path: Path) -> str:
    """The one problem of a bad file, as it is shown; never a traceback of ours."""
    with pytest.raises(JobError) as refusal:
        user_job(path)
    (problem,) = refusal.value.problems
    assert problem.way_out
    assert "streamgauge/" not in str(refusal.value).replace(str(path.parent), "")
    return str(refusal.value)


def test_a_file_is_a_workload(write: Write) -> None:
    """Name, first line of the docstring, streams and the node that stands for the function."""
    path = write(GOOD)
    workload = user_job(path)
    flow, streams, _ = workload.build(workload.read({}), 1000.0)
    assert (workload.name, workload.title, workload.summary) == ("my_job", "my job", "Purchases above 90.")
    assert [(each.name, each.schema.types(), each.share) for each in streams] == [
        ("purchases", {"user_id": "int", "price": "int"}, 1.0)
    ]
    node: Any = flow.sink.input
    assert (type(node), node.name, node.path, node.times, node.reference) == (
        UserJobNode,
        "dear",
        str(path),
        ("timestamp",),
        None,
    )
    assert (flow.sink.mode, node.reach_us) == ("append", 20 * US)
    (note,) = workload.notes
    assert (note.startswith("reach not declared: taken as 20s of event time, "), 'reach="0s"' in note) == (True, True)


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("my_job", "my_job.py"),
        ("v1.PY", "v1.py, with one function marked @job"),
        ("jobs/study.ipynb", "jobs/study.py, with one function marked @job"),
        ("jobs/my_job", "jobs/my_job.py"),
        ("shop", "shop/program.toml"),
        ("shop/program.tml", "shop/program.toml"),
    ],
)
def test_what_is_like_a_file_must_end_in_py_or_toml(
    write: Write, monkeypatch: pytest.MonkeyPatch, name: str, way_out: str
) -> None:
    """It is not taken for a misspelt workload, nor a misspelt workload for a file."""
    folder = write(GOOD).parent
    monkeypatch.chdir(folder)
    (folder / "shop").mkdir()
    (folder / "shop" / "program.toml").touch()
    with pytest.raises(InputError) as refusal:
        get(name)
    (problem,) = refusal.value.problems
    assert problem.way_out == way_out
    assert problem.rule.startswith("a user job must be a file that ends in .py")
    with pytest.raises(InputError, match=r"must be a workload's name, .*\n  try: identity "):
        get("identety")


def test_an_own_job_is_checked_like_any_workload(write: Write) -> None:
    """It passes with everything filled in; the whole of each stream travels, because it is unknown what is read."""
    resolved = check(build({"workload": str(write(GOOD)), "load": {"rate": "10k"}}))
    assert resolved.columns == {"purchases": ("user_id", "price", "event_time", "ingest_time", "event_id")}
    assert (resolved.reach_us, resolved.tail_us) == (20 * US, 21 * US)
    with pytest.raises(InputError, match="does not support user jobs"):
        check(build({"workload": str(write(GOOD)), "engine": "known"}))
    with pytest.raises(InputError, match="my_job has no parameters"):
        check(build({"workload": str(write(GOOD)), "parameters": {"above": "3"}}))


def test_its_input_is_generated_from_fields_or_a_sample(write: Write, tmp_path: Path) -> None:
    """`generate` writes it as for any workload; what was fitted to a sample beside the file is noted."""
    pq.write_table(pa.table({"city": ["Rio", "Bonn", "Rio"] * 100, "ts": [1, 2, 3] * 100}), tmp_path / "sales.parquet")
    body = """
    @job(PURCHASES, stream("sales", sample="sales.parquet", time="ts"))
    def both(spark, inputs):
        return inputs["sales"]
    """
    path = write(body)
    load = {"rate": "1k", "duration": "2s", "generators": 1}
    experiment = build({"command": "generate", "workload": str(path), "load": load, "out": str(tmp_path / "input")})
    written = generate(experiment, tmp_path / "input")
    assert written["events"] == {"purchases": 1000, "sales": 1000}
    cities = pq.read_table(tmp_path / "input" / "sales" / "part-0.parquet").column("city").to_pylist()
    assert cities.count("Rio") / len(cities) == pytest.approx(2 / 3, abs=0.05)
    note = "sales is fitted to sales.parquet: city string: 2 values, the most frequent in 0.67 of the rows"
    assert user_job(path).notes[0] == written["notes"][0] == note


@pytest.mark.parametrize(
    ("more", "reach_us", "notes"),
    [('reach="12s"', 12 * US, 0), ('reach="unbounded"', None, None), ('mode="update", keys="user_id"', None, None),
     ("reach=0", 0, 0)],
)  # fmt: skip
def test_the_reach_is_declared_or_assumed(write: Write, more: str, reach_us: int | None, notes: int | None) -> None:
    """Stated either way; updates of a running state have no end. Nought is declared, and not taken for no reach."""
    workload = user_job(write(f"@job(PURCHASES, {more})\ndef f(spark, inputs): return inputs['purchases']\n"))
    assert workload.batch_job.reach_us == reach_us
    assert notes is None or len(workload.notes) == notes


def test_shares_are_equal_or_given(write: Write) -> None:
    two = '@job(stream("a", Key("x", 2){}), stream("b", Key("x", 2){}))\ndef f(spark, inputs): return inputs["a"]\n'
    for texts, shares in ((("", ""), [0.5, 0.5]), ((", share=0.9", ", share=0.1"), [0.9, 0.1])):
        streams = user_job(write(two.format(*texts))).build(None, 1.0).streams
        assert [each.share for each in streams] == shares
    assert "shares must sum to 1" in the_problem(write(two.format(", share=0.9", "")))


def test_what_lies_beside_the_file_can_be_imported(write: Write) -> None:
    """By its name, and relatively where the folder is a package."""
    write("LIMIT = 90", "limits_beside.py", head="")
    assert user_job(write("from limits_beside import LIMIT\nassert LIMIT == 90\n" + GOOD)).name == "my_job"
    write("", "shop/__init__.py", head="")
    write("LIMIT = 91", "shop/limits.py", head="")
    inside = write("from .limits import LIMIT\nassert LIMIT == 91\n" + GOOD, "shop/inner_job.py")
    assert user_job(inside).name == "inner_job"


def test_what_a_file_prints_leaves_standard_output_alone(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` writes the result there, and nothing else."""
    user_job(write("print('hello')\n" + GOOD))
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "hello\n")


REFERRING = "@job(PURCHASES, reference={})\ndef f(s, i): pass\n"

# What is wrong, the file's body, and what its one message must say.
BAD = [
    ("no function", "x = 1\n", ["must have one function marked @job", "no function"]),
    ("no mark", "def dear(spark, inputs): pass\n", ["functions without it: dear", "above dear"]),
    ("two functions", GOOD + GOOD.replace("dear", "cheap"), ["must have one function marked @job", "cheap", "dear"]),
    ("signature", "@job(PURCHASES)\ndef dear(spark): pass\n", ["must take (spark, inputs)", "dear(spark)"]),
    ("three", "@job(PURCHASES)\ndef dear(a, b, c): pass\n", ["must take (spark, inputs)", "dear(a, b, c)"]),
    ("no schema", "@job()\ndef dear(spark, inputs): pass\n", ["needs the schema of its inputs"]),
    ("bare mark", "@job\ndef dear(spark, inputs): pass\n", ["needs the schema of its inputs", "above dear"]),
    ("no fields", 'S = stream("purchases")\n', ["needs its schema: either fields or a sample", "neither"]),
    ("not a field", 'S = stream("purchases", "price int")\n', ["must be given fields", "price int"]),
    ("time taken", 'S = stream("p", Key("ts", 9), time="ts")\n', ["its time column must differ", "ts"]),
    ("time but for case", 'S = stream("p", Key("Timestamp", 9))\n', ["its time column must differ", "Timestamp"]),
    ("reserved but for case", '@job(stream("p", Key("Event_Id", 9)))\ndef f(s, i): pass\n', ["Event_Id", "rename"]),
    ("alike but for case", '@job(stream("p", Key("a", 9), Key("A", 9)))\ndef f(s, i): pass\n', ["not by case alone"]),
    ("reserved", '@job(stream("p", Key("event_id", 9)))\ndef f(s, i): pass\n', ["event_id", "rename"]),
    ("choice", 'S = stream("p", Choice("c", (1, "a")))\n', ["must choose from values of one type"]),
    ("mode", '@job(PURCHASES, mode="complete")\ndef f(s, i): pass\n', ["must be one of append, update"]),
    ("no keys", '@job(PURCHASES, mode="update")\ndef f(s, i): pass\n', ["must name the columns whose values are"]),
    ("reach", '@job(PURCHASES, reach="soon")\ndef f(s, i): pass\n', ["must be a time such as", 'try: reach="12s"']),
    ("no reach", '@job(PURCHASES, reach="")\ndef f(s, i): pass\n', ["@job reach: must be a time such as"]),
    ("stream's name", 'S = stream(7, Key("a", 9))\n', ["stream: must have a name of letters", "got 7"]),
    ("field's name", 'S = stream("p", Key(7, 9))\n', ["must have fields with names", "got 7"]),
    ("domain", 'S = stream("p", Key("a", "9"))\n', ["a.domain: must be a whole number, not of type str", "got '9'"]),
    ("distribution", 'S = stream("p", Key("a", 9, ["zipf"]))\n', ["a.distribution: must be one of", "got ['zipf']"]),
    ("exponent", 'S = stream("p", Key("a", 9, "zipf", "1"))\n', ["a.exponent: must be a number, not of type str"]),
    ("limits", 'S = stream("p", Integer("a", 1, 9.5))\n', ["a: must be a whole number, not of type float", "got 9.5"]),
    ("decimals", 'S = stream("p", Decimal("a", "0", 1))\n', ["a: must be a number, not of type str", "got '0'"]),
    ("words", 'S = stream("p", Text("a", 2.5))\n', ["a.words: must be a whole number", "got 2.5"]),
    ("bytes", 'S = stream("p", Payload("a", True))\n', ["a.size_bytes: must be a whole number", "got True"]),
    ("choices", 'S = stream("p", Choice("a", "xy"))\n', ["a: must have its values", "got 'xy'"]),
    ("weights", 'S = stream("p", Choice("a", (1, 2), ("1", "2")))\n', ["a: weights must be numbers", "got ('1', '2')"]),
    ("sample's name", 'S = stream("p", sample=7)\n', ["stream 'p' sample: must be a file's name", "got 7"]),
    ("share", 'S = stream("p", Key("a", 9), share="1")\n', ["must be a number above 0 and at most 1, not of type str"]),
    ("no time", 'S = stream("p", Key("a", 9), time=3)\n', ["stream 'p' time: must be a column's name", "got 3"]),
    ("not a stream", '@job(Key("a", 9))\ndef f(s, i): pass\n', ["@job: must be given streams", "Key(name='a'"]),
    ("keys", '@job(PURCHASES, keys=[1, 2])\ndef f(s, i): pass\n', ["@job keys: must be a column's name", "got [1, 2]"]),
    ("key", '@job(PURCHASES, keys=7)\ndef f(s, i): pass\n', ["@job keys: must be a column's name", "got 7"]),
    ("mode's type", '@job(PURCHASES, mode=7)\ndef f(s, i): pass\n', ["must be one of append, update", "got 7"]),
    ("reference", '@job(PURCHASES, reference=7)\ndef f(s, i): pass\n', ["must be DuckDB SQL or a function", "got 7"]),
    ("no job", 'x = job(PURCHASES)("dear")\n', ["@job: must stand above a function", "got 'dear'"]),
    ("no sample", '@job(stream("p", sample="no.csv"))\ndef f(s, i): pass\n', ["no.csv", "must be an existing file"]),
    ("sql", '@job(PURCHASES, reference="SELECT * FROM sales")\ndef f(s, i): pass\n', ["must be DuckDB SQL", "sales"]),
    (
        "reference with another event time",
        '@job(PURCHASES, reference="SELECT timestamp AS event_time FROM purchases")\ndef f(s, i): pass\n',
        [
            "must also give event_time, in microseconds as BIGINT",
            "'event_time': 'timestamp'",
            "epoch_us(timestamp) converts a timestamp",
        ],
    ),
    (
        "reference without a key",
        '@job(PURCHASES, keys=["user_id", "pack"], reference="SELECT event_time, user_id FROM purchases")\n'
        "def f(s, i): pass\n",
        ["must give the columns that @job names in keys: pack", "got ['event_time', 'user_id']", "add pack to the"],
    ),
    ("misspelt", '@job(PURCHASES, refrence="")\ndef f(s, i): pass\n', ["argument 'refrence'", "line 4"]),
    ("streams in a list", "@job([PURCHASES])\ndef f(s, i): pass\n", ["@job: must be given its streams one after the"]),
    ("fields in a list", 'S = stream("p", [Key("a", 9)])\n', ["must be given its fields one after the other"]),
    ("unbound", '@job(PURCHASES, reach="unbound")\ndef f(s, i): pass\n', ["line 4: @job reach", 'reach="unbounded"']),
    ("empty reference", REFERRING.format('""'), ["reference: must be DuckDB SQL that gives rows", "SELECT ... FROM"]),
    ("commented out", REFERRING.format('"-- todo"'), ["must be DuckDB SQL that gives rows", "got '-- todo'"]),
    ("file", REFERRING.format('"truth.sql"'), ["not the name of a file", 'with_name("truth.sql").read_text()']),
    ("path", REFERRING.format('__import__("pathlib").Path("my truth.sql")'), ['with_name("my truth.sql").read_text()']),
    ("nothing", REFERRING.format("lambda con: None"), ["must return a DuckDB relation", "got None", "con.sql("]),
    ("cursor", REFERRING.format('lambda con: con.execute("SELECT 1")'), ["must return a", "DuckDBPyConnection"]),
    (
        "no such table",
        REFERRING.format('"SELECT event_time FROM purchase"'),
        ["over its streams (purchases); got 'CatalogException", "name purchase does not exist", "try: purchases"],
    ),
    (
        "no such column",
        REFERRING.format('"SELECT pric, event_time FROM purchases"'),
        ['column "pric" not found', 'try: Candidate bindings: "price"'],
    ),
    (
        "no SQL",
        REFERRING.format('"SELECT event_time FRM purchases p"'),
        ["ParserException", "needs double quotes", "\n  LINE 1: SELECT event_time FRM purchases p\n" + " " * 32 + "^"],
    ),
    (
        "reference without event time",
        '@job(PURCHASES, reference="SELECT price FROM purchases")\ndef f(s, i): pass\n',
        ["must also give event_time", "max(event_time) AS event_time"],
    ),
]  # fmt: skip


# A file whose code fails: what the message shows of it. PATH is that of the file.
FAILING = [
    (
        "import",
        "import no_such_module_anywhere\n",
        ["PATH", "ModuleNotFoundError", "line 4", "import no_such_module_anywhere"],
    ),
    ("syntax", "def dear(spark inputs): pass\n", ["PATH", "SyntaxError", "line 4", "def dear(spark inputs): pass"]),
    (
        "raises",
        "def f():\n    raise ValueError('mine')\nf()\n",
        ["PATH", "ValueError: mine", "line 5, in f", "line 6, in"],
    ),
    ("exits", "import sys\nsys.exit('bye')\n", ["PATH", "SystemExit: bye", "line 5"]),
    (
        "reference",
        "def truth(con):\n    raise KeyError('mine')\n@job(PURCHASES, reference=truth)\ndef f(s, i): pass\n",
        ["PATH", "KeyError: 'mine'", "line 5, in truth"],
    ),
    (
        "query of a reference",
        "def truth(con):\n    return con.sql('SELECT pric FROM purchases')\n" + REFERRING.format("truth"),
        ['column "pric" not found', "PATH", "line 5, in truth", 'Candidate bindings: "price"'],
    ),
]


@pytest.mark.parametrize(
    ("body", "words"), [bad[1:] for bad in (*BAD, *FAILING)], ids=[bad[0] for bad in (*BAD, *FAILING)]
)
def test_a_bad_file_gets_one_message(write: Write, body: str, words: list[str]) -> None:
    """Where its code fails, with the user's own traceback and none of ours."""
    path = write(body)
    message = the_problem(path)
    assert [each for each in words if each.replace("PATH", str(path)) not in message] == []
    assert "importlib" not in message


def test_the_users_traceback_is_shown_for_a_relative_path_too(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for what runs after the import, and inside a package."""
    path = write(
        """
        def truth(con):
            raise KeyError("mine")

        @job(PURCHASES, reference=truth)
        def f(spark, inputs): pass
        """
    )
    monkeypatch.chdir(path.parent)
    assert "line 6, in truth" in the_problem(Path(path.name))
    write("", "__init__.py", head="")
    assert "line 6, in truth" in the_problem(Path(path.name))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert the_problem(tmp_path / "no_job.py").startswith("workload: must be an existing file")


def test_a_file_may_not_have_the_name_of_a_module_in_use(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take that module's place, here and in Spark's workers; Spark's own are not loaded yet."""
    assert "rename it: json_job.py" in the_problem(write(GOOD, "json.py"))
    assert "rename it: duckdb_job.py" in the_problem(write(GOOD, "duckdb.py"))
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    assert "rename it: pyspark_job.py" in the_problem(write(GOOD, "pyspark.py"))
    assert importlib.import_module("json").loads("1") == 1


def test_a_reference_may_be_a_function(write: Write) -> None:
    """It takes a DuckDB connection with the streams as tables; its columns are known before anything starts."""
    body = """
    def truth(con):
        return con.sql("SELECT user_id, timestamp, event_time FROM purchases WHERE price > 90")

    @job(PURCHASES, reference=truth)
    def dear(spark, inputs):
        return inputs["purchases"].where("price > 90")
    """
    assert user_job(write(body)).batch_job.reference == (
        ("user_id", ValueType(INT)), ("timestamp", ValueType(TIMESTAMP)), ("event_time", ValueType(INT)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("time", "way_out"),
    [
        ("pick_up", 'try: time="pickup"'),
        ("when", "one of its columns: pickup, fare"),
        ("pickup", ""),
        ("timestamp", ""),
    ],
)
def test_a_time_that_the_sample_does_not_have_is_refused(write: Write, time: str, way_out: str) -> None:
    """Else the column that was meant is made up like any other field. Where none was named, there may be none."""
    path = write(f"""
    @job(stream("rides", sample="rides.csv", time="{time}"), reach="0s")
    def rides(spark, inputs):
        return inputs["rides"]
    """)
    (path.parent / "rides.csv").write_text("pickup,fare\n" + "2026-01-01 00:00:00,1\n" * 20)
    words = [way_out, "sample rides.csv: must have the column that time= names"] if way_out else []
    message = the_problem(path) if way_out else user_job(path).name
    assert [each for each in words if each not in message] == []


MISTAKES = {
    "no return": ("frame = inputs['purchases']", "it has no return", "end late() with return"),
    "return in a nested function only": ("def row(x):\n    return x", "it has no return", "end late() with return"),
    "returns nothing": ("inputs['purchases']\nreturn None", "it has no return", "end late() with return"),
    "two results": ("return {'a': inputs['purchases'], 'b': inputs['purchases']}", "a dictionary", "a file for each"),
    "a pair": ("both = inputs['purchases']\nreturn both, both", "a tuple", "unionByName"),
    "own query": ("inputs['purchases'].writeStream.format('console').start()", "start no query", "leave writeStream"),
}  # fmt: skip

FINE = {
    "names are left to Python": "return inputs['purchase'].where(F.windw(limt))",
    "a query in a branch": "if spark:\n    inputs['purchases'].writeStream.start()\nreturn inputs['purchases']",
    "a query after an early return": "if spark:\n    return 1\ninputs['purchases'].writeStream.start()",
    "a query in a nested function": "def later(x):\n    x.writeStream.start()\nreturn inputs['purchases']",
    "a pair in a branch": "if spark:\n    return spark, 1\nreturn inputs['purchases']",
    "a return in a branch": "if inputs:\n    return inputs['purchases']",
    "only raises": "raise NotImplementedError",
}


def late(write: Write, body: str) -> Path:
    """A job whose function has this body."""
    return write(f"@job(PURCHASES)\ndef late(spark, inputs):\n{textwrap.indent(body, '    ')}\n")


@pytest.mark.parametrize(("body", "got", "way_out"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_certain_mistake_is_refused_before_spark_starts(write: Write, body: str, got: str, way_out: str) -> None:
    """With the user's line and a way out."""
    path = late(write, body)
    message = the_problem(path)
    assert [each for each in (got, way_out, f'File "{path}", line ') if each not in message] == []


@pytest.mark.parametrize("body", FINE.values(), ids=FINE.keys())
def test_code_that_may_run_is_not_refused(write: Write, body: str) -> None:
    assert user_job(late(write, body)).name == "my_job"
