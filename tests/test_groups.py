"""Tests of one group run in one process: each process of `make test` would start a Spark and a broker of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = "from tests.conftest import pytest_collection_modifyitems, pytest_itemcollected"
GROUPED = """
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def spark():
    with Path("starts").open("a") as file:
        print(os.environ["PYTEST_XDIST_WORKER"], file=file)


@pytest.mark.parametrize("number", range(10))
def test_on_spark(spark, number):
    pass
"""


@pytest.mark.process
def test_what_tests_share_starts_once(tmp_path: Path) -> None:
    """Without groups, each of two processes gets some of ten tests, and starts what they share."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_grouped.py").write_text(GROUPED)
    options = ["-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options]
    env = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "10 passed" in done.stdout
    assert len((tmp_path / "starts").read_text().split()) == 1
