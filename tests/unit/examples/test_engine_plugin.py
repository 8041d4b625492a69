"""The example of an engine in a distribution of its own: discovered, and measured as any other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from streamgauge.cli import app
from streamgauge.core.errors import InputError
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines import registry
from streamgauge.engines.spi import Edges, StartRequest
from streamgauge.transports.spi import Edge
from streamgauge.workloads.registry import get
from tests.helpers_engine_plugin import ENGINE, EXAMPLE, install_example
from tests.helpers_modules import load


@pytest.fixture(autouse=True)
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Installed for one test."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    install_example(monkeypatch, folder)
    yield
    registry.declared.cache_clear()


def filtering(predicate: str) -> Flow:
    """The flow of the workload `filter`, with another condition."""
    workload = get("filter")
    flow = workload.build(workload.read({}), 1000.0).flow
    return Flow((replace(flow.sink, input=replace(flow.sink.input, predicate=predicate)),))


@pytest.mark.parametrize(
    ("predicate", "prices"), [("price > 90", [91]), (" price<=-3 ", [-4, -3]), ("price = 7", [7]), ("price < -4", [])]
)
def test_it_takes_comparisons_with_whole_numbers(predicate: str, prices: list[int]) -> None:
    """Rows whose value is null are left out, as by SQL."""
    module = load(EXAMPLE / "streamgauge_python_consumer.py")
    rows = [{"price": value} for value in (None, -4, -3, 7, 90, 91)]
    assert [row["price"] for row in module.lowered(filtering(predicate).sink.input)(rows)] == prices


def test_it_refuses_other_conditions_before_a_start() -> None:
    """With the text of the condition."""
    request = StartRequest(filtering("price > 90 or price < 3"), {}, None, "common")
    with pytest.raises(InputError, match="must compare a column with a whole number"):
        registry.entry(ENGINE).check(request)


class Driver:
    """What the loop asks of the driver: two partitions, whose events it gives once, and the results that came."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self.sent: list[pa.RecordBatch] = []
        self.commits: list[dict[str, Any]] = []

    def common_cut(self, locations: list[str], token: str, position_us: int) -> int:
        return position_us

    def read_range(
        self, location: str, token: str, stream: str, from_us: int, to_us: int, columns: Sequence[str], *_: Any
    ) -> Iterator[pa.RecordBatch]:
        self.asked.append((from_us, to_us))
        prices = pa.array([80, 91, 99] if location == "first" else [95], pa.int32())
        yield pa.record_batch([prices if name == "price" else prices.cast(KINDS[name]) for name in columns], columns)

    def send_results(self, location: str, token: str, address: dict[str, Any], batches: Any) -> None:
        self.sent += batches

    def act(self, location: str, token: str, action: str, **arguments: Any) -> None:
        self.commits.append({"action": action, **arguments})


COLUMNS = ("user_id", "gem_pack_id", "price", "event_time")
KINDS = dict.fromkeys(COLUMNS, pa.int32()) | {"event_time": pa.int64()}


def test_the_loop_reads_filters_sends_and_commits() -> None:
    """Each range once, of every partition; a batch without results is committed too."""
    module = load(EXAMPLE / "streamgauge_python_consumer.py")
    edges = Edges((Edge("first", ""), Edge("second", "")), Edge("results", "secret"), {"purchases": COLUMNS})
    consumer, driver = module.Consumer(filtering("price > 90"), edges), Driver()
    consumer._client = driver
    consumer._work(1000)
    consumer._row_wise = module.lowered(filtering("price > 99").sink.input)
    consumer._work(2000)
    assert driver.asked == [(0, 1000), (0, 1000), (1000, 2000), (1000, 2000)]
    assert pa.Table.from_batches(driver.sent).column("price").to_pylist() == [91, 99, 95]
    assert [(one["batch"], one["accepted"]) for one in driver.commits] == [(0, [[0, 0]]), (1, [])]


@pytest.mark.process
@pytest.mark.long
@pytest.mark.parametrize("workload", ["filter"])
def test_its_answers_are_right(tmp_path: Path, workload: str) -> None:
    """The whole path of a command; whether it keeps up is the machine's affair."""
    words = ["run", workload, "--engine", ENGINE, "--rate", "5k", "--warmup", "1s", "--duration", "4s", "--generators"]
    done = CliRunner().invoke(app.app, [*words, "2", "--out", str(tmp_path / "runs"), "--json"])
    found = json.loads(done.stdout)
    verification = found["verification"]
    assert verification["matched"] == verification["expected"] > 1000
    assert [verification[fault] for fault in ("missing", "extra", "duplicate", "wrong", "late")] == [0] * 5
    assert {check["name"]: check["state"] for check in found["verdict"]["checks"]}["connected"] == "ok"
    assert found["engine"] == ENGINE
