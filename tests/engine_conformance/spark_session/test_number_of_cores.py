"""Every node and expression in sessions of another size, in a process of their own: one has one Spark."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers_modules import ROOT

FILES = ("test_nodes.py", "test_expressions.py")


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("cores", ["1", "4"])
def test_answers_do_not_depend_on_the_number_of_cores(cores: str) -> None:
    """Rows of a key meet whether all are in one task, or in one of several."""
    paths = [str(Path(__file__).with_name(name)) for name in FILES]
    command = [sys.executable, "-m", "pytest", "-q", "-m", "spark and not long", *paths]
    environment = {**os.environ, "STREAMGAUGE_TEST_CORES": cores}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout
