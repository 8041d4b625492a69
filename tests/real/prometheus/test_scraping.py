"""A real Prometheus scrapes a run of the synthetic engine, and answers queries about it.

Debian's package has it (`apt-get install prometheus`); where it is missing, the test is skipped.
"""

import json
import shutil
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import psutil
import pytest

from streamgauge.system.child_processes import wait_until

PROGRAM = shutil.which("prometheus")
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(PROGRAM is None, reason="no Prometheus on this machine (apt-get install prometheus)"),
]

HOST, STARTED_S, RATE, GENERATORS = "127.0.0.1", 60.0, 4000, 2
Query = Callable[[str], dict[tuple[str, ...], float]]


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def exported() -> int:
    """The port of the run's metrics."""
    return free_port()


@pytest.fixture
def query(tmp_path: Path, exported: int) -> Iterator[Query]:
    """Prometheus scrapes the run's port every second. A query returns the values by those of their labels."""
    config = tmp_path / "prometheus.yml"
    config.write_text(
        textwrap.dedent(f"""\
            global: {{scrape_interval: 1s, scrape_timeout: 1s}}
            scrape_configs:
              - job_name: streamgauge
                static_configs: [{{targets: ["{HOST}:{exported}"]}}]
            """)
    )
    at = f"{HOST}:{free_port()}"
    words = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address={at}"]
    log = tmp_path / "prometheus.log"
    with log.open("wb") as output:
        process = subprocess.Popen([str(PROGRAM), *words], stdout=output, stderr=output)
    try:
        assert wait_until(lambda: answers(f"http://{at}/-/ready") or process.poll() is not None, STARTED_S)
        assert process.poll() is None, log.read_text()
        yield lambda text: values(f"http://{at}/api/v1/query?{urlencode({'query': text})}")
    finally:
        process.terminate()
        process.wait(20)


def answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def values(url: str) -> dict[tuple[str, ...], float]:
    with urlopen(url, timeout=5) as answer:
        found: dict[str, Any] = json.load(answer)
    assert found["status"] == "success", found
    left_out = {"__name__", "instance", "job"}
    return {
        tuple(value for name, value in sorted(one["metric"].items()) if name not in left_out): float(one["value"][1])
        for one in found["data"]["result"]
    }


def run(tmp_path: Path, exported: int) -> subprocess.Popen[str]:
    words = (
        "run", "windowed_aggregation", "--engine", "known", "--rate", str(RATE), "--duration", "8s", "--warmup", "4s",
        "--set", "range=1s", "--set", "slide=1s", "--generators", str(GENERATORS), "--prometheus", str(exported),
        "--out", str(tmp_path / "runs"), "--json",
    )  # fmt: skip
    command, pipe = [sys.executable, "-m", "streamgauge", *words], subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)


def test_prometheus_has_the_figures_of_a_run(query: Query, exported: int, tmp_path: Path) -> None:
    """Its queries agree with the result, and the verdict is among them although the run ends with it."""
    with run(tmp_path, exported) as process:
        assert wait_until(lambda: query('streamgauge_phase{phase="measured"} == 1') != {}, STARTED_S, 0.2)
        listening = [one for one in psutil.Process(process.pid).net_connections("tcp") if one.status == "LISTEN"]
        assert [(at.laddr.ip, at.laddr.port) for at in listening] == [(HOST, exported)]
        assert wait_until(lambda: query('streamgauge_phase{phase="measured"} offset 3s == 1') != {}, STARTED_S, 0.2)
        # A scrape may be late on a busy machine, and three seconds hold three of them.
        offered_per_s, planned = "rate(streamgauge_offered_events_total[3s])", pytest.approx(RATE, rel=0.3)
        assert wait_until(lambda: query(offered_per_s)[()] == planned, STARTED_S, 0.2), query(offered_per_s)
        lag = query("streamgauge_lag_events")
        assert set(lag) == {(str(partition), "purchases") for partition in range(GENERATORS)}
        assert query('streamgauge_cpu_cores{role="sut"}')["sut",] > 0
        assert query('streamgauge_memory_bytes{role="sut"}')["sut",] > 1e6
        (p99_s,) = query('streamgauge_batch_latency_seconds{quantile="0.99"}').values()
        assert 0 < p99_s < 60
        assert query("streamgauge_run") == {("known", "shared", "memory", "windowed_aggregation"): 1}
        output, _ = process.communicate(timeout=STARTED_S)
    result = json.loads(output)
    # The target is gone by now, so its last samples are looked for in the past.
    last = "last_over_time({}[1m])".format
    assert query(f"{last('streamgauge_verdict')} == 1") == {(result["verdict"]["value"],): 1}
    p50 = query(last('streamgauge_latency_seconds{kind="event_time",quantile="0.5"}'))
    assert p50["event_time", "0.5"] == pytest.approx(result["latency"]["event_time_us"]["p50"] / 1e6)
    offered = query(last("streamgauge_offered_events_total"))[()]
    assert offered == query(last("streamgauge_ingested_events_total"))[()] >= 12 * RATE
