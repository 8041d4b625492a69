"""A master of its own: executors on which neither our package nor the user's files can be found get both from the run.

The cluster is one master and one worker on loopback, of the Spark that PySpark brings. They start with an environment
of their own and in a folder of their own; a package `streamgauge` that nobody can import stands before any other that
their Python may have, so what executors run can only have come with the job.
"""

import os
import re
import subprocess
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pyspark
import pytest

from streamgauge.artifacts.run_folder import RunFolder
from streamgauge.config.experiment import build
from streamgauge.preflight.settings_checks import check
from streamgauge.results.run import Result
from streamgauge.system.child_processes import wait_until
from streamgauge.trial.conductor import TrialConductor
from streamgauge.trial.policies import JudgedTrial
from tests.helpers_broker_trials import check_right, running

pytestmark = [pytest.mark.spark, pytest.mark.long]

HOST, STARTED_S = "127.0.0.1", 120.0
RATE, DURATION_S = 3000.0, 6.0
WARMUP = "40s"
"""Workers compile what is shipped as archives, the package and PySpark itself, in each process anew."""
JOB = """
from beside_the_job import tax
from pyspark.sql import functions as F
from streamgauge.jobs import Integer, job, stream

@job(stream("purchases", Integer("price", 1, 100)), reach="0s")
def taxed(spark, inputs):
    rows = inputs["purchases"].select("price", "event_time", "event_id")
    return rows.withColumn("tax", F.udf(tax, "double")("price"))
"""


@dataclass(frozen=True)
class Cluster:
    """`worker` is the process whose children are the executors."""

    master: str
    worker: psutil.Process


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A standalone master and one worker, ended by their process ids."""
    at = tmp_path_factory.mktemp("cluster")
    unusable = at / "python" / "streamgauge"
    unusable.mkdir(parents=True)
    (unusable / "__init__.py").write_text("raise ImportError('this is not what the run has shipped')\n")
    with ExitStack() as started:
        master_daemon = started.enter_context(daemon(at, "master.Master", ("--port", "0")))
        master = master_daemon.wait_for(r"Starting Spark master at (spark://\S+)")
        resources = ("--cores", "2", "--memory", "2g", "--work-dir", str(at / "work"))
        worker = started.enter_context(daemon(at, "worker.Worker", ("--port", "0", *resources, master)))
        worker.wait_for(r"Successfully registered with master (\S+)")
        yield Cluster(master, psutil.Process(worker.process.pid))


@dataclass(frozen=True)
class Daemon:
    process: subprocess.Popen[bytes]
    log: Path

    def wait_for(self, pattern: str) -> str:
        """Wait until a line of the log matches; the pattern's first group."""

        def search() -> re.Match[str] | None:
            return re.search(pattern, self.log.read_text())

        assert wait_until(lambda: search() is not None or self.process.poll() is not None, STARTED_S)
        match = search()
        assert match is not None, self.log.read_text()
        return match.group(1)


@contextmanager
def daemon(at: Path, name: str, words: Sequence[str]) -> Iterator[Daemon]:
    """A daemon of Spark. It inherits only the variables that locate Java and the temporary folder."""
    home = Path(pyspark.__file__).parent
    inherited = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "TMPDIR") if name in os.environ}
    options = "-Dspark.master.rest.enabled=false"
    spark_environment = {"SPARK_HOME": str(home), "PYTHONPATH": str(at / "python"), "SPARK_DAEMON_JAVA_OPTS": options}
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
    log = at / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--host", HOST, "--webui-port", "0", *words],
            cwd=at,
            env=inherited | spark_environment,
            stdout=output,
            stderr=output,
        )
    try:
        yield Daemon(process, log)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def result_on(cluster: Cluster, root: Path, workload: str, parameters: dict[str, Any]) -> Result:
    """A short trial there, conducted and verified."""
    load = {"rate": RATE, "warmup": WARMUP, "generators": 2, "bound": "5m"}
    values = {"workload": workload, "parameters": parameters, "load": load, "out": str(root), "master": cluster.master}
    resolved = check(build(values))
    folder = RunFolder.create(root, workload, "spark", datetime.now(UTC))
    with running(resolved, folder.path) as testbed:
        settings = JudgedTrial(resolved, RATE, fresh=True, duration_s=DURATION_S, may_extend=False)
        judged = TrialConductor(resolved, testbed).run(folder, settings)
    assert judged.record.engine_failed == ""
    assert judged.record.drained
    return judged.result


# A process with state; a sink of updates, with a function of texts.
@pytest.mark.parametrize(
    ("workload", "parameters", "rows_least"),
    [
        ("spike_detection", {"sd.moving_average.window": "100"}, 20),
        ("word_count", {}, 1000),
    ],
)
def test_a_workload_is_verified_on_executors_that_have_none_of_our_code(
    cluster: Cluster, tmp_path: Path, workload: str, parameters: dict[str, Any], rows_least: int
) -> None:
    """Every answer right, from executors of the worker's; none of them is left when the run has ended."""
    result = result_on(cluster, tmp_path, workload, parameters)
    check_right(result.verification, rows_least)
    assert result.settings["master"] == cluster.master
    assert wait_until(lambda: cluster.worker.children(recursive=True) == [], STARTED_S)


def test_an_own_job_brings_what_lies_beside_its_file(cluster: Cluster, tmp_path: Path) -> None:
    """A row function of another file, which executors cannot find by any path of theirs."""
    (tmp_path / "beside_the_job.py").write_text("def tax(price):\n    return price * 0.19\n")
    file = tmp_path / "taxed_job.py"
    file.write_text(textwrap.dedent(JOB))
    check_right(result_on(cluster, tmp_path, str(file), {}).verification, 50_000, independent=False)
