"""Output that cannot be written: progress goes silent, and an answer says where it is instead."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")

TOLD = """
import sys
from streamgauge.core.output import print_answer, print_progress
print_progress("progress")
try:
    print_answer("{}", folder="runs/7")
except Exception as error:
    print_progress(f"error: {error}")
    sys.exit(error.exit_code)
"""


def of_code(code: str, **streams: object) -> tuple[int, str, str]:
    both: dict[str, object] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    with subprocess.Popen([sys.executable, "-c", code], text=True, **both) as child:  # type: ignore[call-overload]
        message, reported = child.communicate()
    return child.returncode, message, reported


def test_a_full_standard_error_ends_nothing() -> None:
    """Not even at the interpreter's end, which flushes it once more."""
    with open("/dev/full", "w") as full:
        assert of_code(TOLD, stderr=full) == (0, "{}\n", None)


def test_an_answer_that_cannot_be_written_says_where_the_run_is() -> None:
    """It is no defect: exit code 5, and no second complaint of the interpreter."""
    with open("/dev/full", "w") as full:
        code, _, reported = of_code(TOLD, stdout=full)
    assert (code, reported.splitlines()) == (5, [
        "progress", "error: standard output cannot be written (No space left on device); the run is in runs/7",
    ])  # fmt: skip


def test_a_reader_that_has_enough_changes_nothing() -> None:
    """Neither the exit code of an answer nor that of a list that Rich prints (`| head -1`)."""
    for code, text in ((4, TOLD + "sys.exit(4)"), (0, "import sys; sys.argv[1:] = ['workloads']\n"
                       "from streamgauge.cli.app import main; main()")):  # fmt: skip
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "w") as closed:
            found, _, reported = of_code(text, stdout=closed)
        assert (found, "rror" in reported) == (code, False), reported
