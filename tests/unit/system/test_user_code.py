"""The user's own lines, out of an error and out of an engine's text."""

import sys
from pathlib import Path

import pytest

from streamgauge.core.errors import JobError
from streamgauge.system.user_code import import_file, own_trace_in, user_errors

WORKER = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 1247, in main
    process()
  File "{file}", line 8, in risky
    return helper(x)
           ^^^^^^^^^
  File "{beside}", line 3, in helper
    return 1 // x
           ~~^^~~
  File "{library}", line 99, in deeper
    raise
ZeroDivisionError: integer division or modulo by zero

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:599)
"""


def test_only_the_users_lines_of_a_workers_traceback_are_kept(tmp_path: Path) -> None:
    file, beside = tmp_path / "my_job.py", tmp_path / "beside.py"
    text = WORKER.format(file=file, beside=beside, library=tmp_path / ".venv" / "site-packages" / "lib.py")
    assert own_trace_in(text, file) == "\n".join([
        f'  File "{file}", line 8, in risky',
        "    return helper(x)",
        "           ^^^^^^^^^",
        f'  File "{beside}", line 3, in helper',
        "    return 1 // x",
        "           ~~^^~~",
        "ZeroDivisionError: integer division or modulo by zero",
    ])  # fmt: skip


OWN_SESSION = """
from types import SimpleNamespace

import pyspark

STOPPED = []
pyspark.SparkContext._active_spark_context = SimpleNamespace(stop=lambda: STOPPED.append("stopped"))
"""


def test_a_file_that_starts_spark_itself_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As most scripts do in their first line. That Spark is stopped; one that ran before stays as it is."""
    from pyspark import SparkContext

    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)
    path = tmp_path / "sessions_job.py"
    path.write_text(OWN_SESSION)
    with pytest.raises(JobError, match="must not start Spark as it is imported"):
        import_file(path)
    assert sys.modules["sessions_job"].STOPPED == ["stopped"]
    path.write_text("import pyspark\n")
    import_file(path)


def test_a_text_without_the_users_lines_gives_none(tmp_path: Path) -> None:
    text = WORKER.format(file="/elsewhere/a.py", beside="/elsewhere/b.py", library="/c.py")
    assert own_trace_in(text, tmp_path / "my_job.py") is None
    assert own_trace_in("java.lang.OutOfMemoryError", tmp_path / "my_job.py") is None


def test_a_users_error_shows_their_frames_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames of libraries below and of ours above are left out, and what a library wrote after its first line."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "failing_job.py"
    path.write_text("import json\n\ndef f():\n    json.loads('{')\n")
    module = import_file(path)
    with (
        pytest.raises(JobError, match="must run without an error") as caught,
        user_errors(path, "f() must run without an error"),
    ):
        module.f()
    problem = caught.value.problems[0]
    assert str(problem.got).startswith("JSONDecodeError: Expecting property name")
    lines = problem.way_out.splitlines()
    assert lines[:3] == ["correct it:", f'  File "{path}", line 4, in f', "    json.loads('{')"]
    assert len(lines) == (4 if "^" in problem.way_out else 3)
    assert "Expecting property name" not in problem.way_out  # it is in `got`, and told once


def test_an_error_of_ours_goes_through(tmp_path: Path) -> None:
    """And so does Ctrl-C."""
    from streamgauge.core.errors import EngineError

    for ours in (EngineError("no"), KeyboardInterrupt()):
        with pytest.raises(type(ours)), user_errors(tmp_path / "a.py", "rule"):
            raise ours


def test_a_file_is_run_anew_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another file of the same name too: it takes the first one's place."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    for folder, value in (("a", 1), ("b", 2)):
        path = tmp_path / folder / "same_job.py"
        path.parent.mkdir()
        path.write_text(f"x = {value}")
        assert import_file(path).x == value
    path.write_text("x = 3")
    assert import_file(path).x == 3


def test_a_file_that_parses_arguments_gets_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of the process that imports it, which has them again; one that needs some says so."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["streamgauge", "run", "x.py", "--rate", "5k"])
    path = tmp_path / "parses.py"
    parse = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--rate'{})\nRATE = p.parse_args().rate\n"
    path.write_text(parse.format(""))
    assert import_file(path).RATE is None
    assert sys.argv[1] == "run"
    path.write_text(parse.format(", required=True"))
    with pytest.raises(JobError) as caught:
        import_file(path)
    assert caught.value.problems[0].way_out.startswith("arguments are not passed on: give each a default")
    assert sys.argv[1] == "run"


def test_what_needs_spark_too_early_is_refused_with_a_way_out(tmp_path: Path) -> None:
    """A row function with its type as text asks for a session while the file is only being read."""
    file = tmp_path / "early_job.py"
    file.write_text('from pyspark.sql.functions import udf\n\n@udf("int")\ndef risky(price):\n    return price\n')
    with pytest.raises(JobError, match=r"IntegerType\(\)"):
        import_file(file)
