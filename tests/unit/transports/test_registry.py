"""What every transport says of itself by its name, and the books that its outlet keeps."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from streamgauge.core.clock import US
from streamgauge.core.schema import EVENT_ID, EVENT_TIME, INGEST_TIME
from streamgauge.transports.outlet import Outlet
from streamgauge.transports.registry import NAMES, problems, transport, with_absolute_paths
from streamgauge.transports.spi import EndpointConfig, OutletConfig

AT = EndpointConfig("127.0.0.1", 0, "a-token")
SCHEMA = pa.schema([(name, pa.int64()) for name in (EVENT_TIME, INGEST_TIME, EVENT_ID)])
EVENTS = pa.record_batch({EVENT_TIME: [1, 2, 3], EVENT_ID: [0, 1, 2]})


@pytest.mark.parametrize("name", NAMES)
def test_an_outlet_counts_what_is_offered(name: str) -> None:
    """The driver's side of every transport keeps the same books."""
    outlet: Outlet = transport(name).open_outlet(AT, OutletConfig({"ads": SCHEMA}, 10 * US, 2**20, lambda: 7))
    outlet.offer(0, 1000, {"ads": outlet.prepared("ads", EVENTS)}, 5)
    (chunk,), deliveries = outlet.drain_logs()
    assert (chunk.events, chunk.published_us, deliveries) == (3, 5, [])
    assert (outlet.frontier_us, outlet.waiting_us(), outlet.overflowed) == (1000, 1000, False)
    assert (list(outlet.aborted_us), outlet.delivering.news()) == ([], [])


def test_names_are_known_without_loading_a_transport() -> None:
    """What checks a name, or lists them, needs no Flight."""
    code = "import sys, streamgauge.transports.registry as c; assert c.NAMES; assert 'pyarrow' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_options_of_a_transport_without_any_are_refused() -> None:
    """By name, with the transport that has options as the way out."""
    (problem,) = problems("socket", {"acks": "all"})
    assert problem.setting == "transport option acks"
    assert "--transport kafka" in problem.way_out
    assert problems("kafka", {"acks": "all"}) == []


def test_files_among_options_are_found_from_anywhere() -> None:
    """What names no file stays as it is, and so does an empty one, which is refused as what it is."""
    options = with_absolute_paths("kafka", {"client": "login.txt", "acks": "all"})
    assert options == {"client": os.path.abspath("login.txt"), "acks": "all"}
    assert with_absolute_paths("kafka", {"client": ""}) == {"client": ""}
    assert with_absolute_paths("memory", {"client": "login.txt"}) == {"client": "login.txt"}


def test_only_a_broker_needs_something_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its jars, which a run that starts one fetches."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (check,) = (one for name in NAMES for one in transport(name).machine_checks({}))
    assert (check.name, check.status, check.needed_with) == (
        "broker_jars", "warning", "--transport kafka without --brokers",
    )  # fmt: skip
