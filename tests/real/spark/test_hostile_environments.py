"""A real Spark in environments that people have: variables of other programs, names that do not resolve, noexec."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).parents[3] / "examples"
NO_NAMES = "mount --bind {hosts} /etc/hosts && hostname no-such-host"
"""The machine's name does not resolve, and `localhost` is an IPv6 address, as in some containers."""
NOEXEC = "mount -t tmpfs -o noexec none {folder}"


def in_namespace(setup: str, arguments: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The command line where `setup` was done in a namespace of its own; skipped where there can be none."""
    enter = ["unshare", "--mount", "--uts", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if shutil.which("unshare") is None or subprocess.run([*enter, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no namespace of its own can be made here")
    whole = [*enter, "sh", "-c", f'{setup} && exec "$@"', "sh", sys.executable, "-m", "streamgauge", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(whole, env=environment, capture_output=True, text=True, timeout=300, check=False)


def foreign_spark(folder: Path) -> dict[str, str]:
    """What another Spark leaves behind: its PySpark, without `pyspark.sql`, and configuration for a cluster."""
    package, conf = folder / "python" / "pyspark", folder / "conf"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text("spark.master yarn\nspark.driver.host nowhere.invalid\n")
    inherited = os.environ.get("PYTHONPATH")
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(package.parent), inherited])),
        "SPARK_HOME": str(folder),
        "SPARK_CONF_DIR": str(conf),
        "PYSPARK_SUBMIT_ARGS": "--master yarn --driver-memory 300m pyspark-shell",
        "_JAVA_OPTIONS": "-Xmx300m",
        "JAVA_TOOL_OPTIONS": "-javaagent:/nowhere.jar -Duser.language=tr",
        "JDK_JAVA_OPTIONS": "-javaagent:/nowhere.jar",
        "LC_ALL": "tr_TR.UTF-8",
        "TZ": "Asia/Kathmandu",
    }


@pytest.mark.long
@pytest.mark.parametrize("workload", ["filter", str(EXAMPLES / "enrich.py")])
def test_a_job_runs_whatever_other_programs_have_left(tmp_path: Path, workload: str) -> None:
    """The result names what was set aside. Of a user job, stream and batch run both start a Spark."""
    hosts = tmp_path / "hosts"
    hosts.write_text("::1 localhost\n")
    variables = foreign_spark(tmp_path / "spark")
    run = ["run", workload, "--rate", "2k", "--duration", "5s", "--warmup", "3s", "--json"]
    done = in_namespace(NO_NAMES.format(hosts=hosts), [*run, "--out", str(tmp_path / "runs")], variables)
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)  # invalid beside other load, which is no matter here
    assert result["verdict"]["cause"] != "start_failed", done.stderr
    assert result["verification"]["judged"], result["verification"]
    assert not any(result["verification"][fault] for fault in ("missing", "extra", "wrong"))
    aside = {name.removesuffix(" (set aside)") for name in result["settings"] if name.endswith(" (set aside)")}
    java = {"_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"}
    assert aside == {"PYTHONPATH", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", *java}


@pytest.mark.long
def test_state_in_rocksdb_on_a_noexec_folder_is_refused_at_the_start(tmp_path: Path) -> None:
    """The job is not to blame; the folder of the run says so, and so does the program's output."""
    folder, runs = tmp_path / "noexec", tmp_path / "runs"
    folder.mkdir()
    run = ["run", str(EXAMPLES / "rewards.py"), "--rate", "1k", "--duration", "5s", "--json", "--out", str(runs)]
    done = in_namespace(NOEXEC.format(folder=folder), run, {"TMPDIR": str(folder)})
    assert done.returncode == 5, done.stderr
    assert "mounted noexec\n  set TMPDIR" in done.stderr
    assert f"its folder: {runs}" in done.stderr
    assert "noexec" in json.loads(done.stdout)["verdict"]["sentence"]
