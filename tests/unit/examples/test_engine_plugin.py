"""The example of an engine in a distribution of its own: discovered, and measured as any other."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError
from typer.testing import CliRunner

from streamgauge.cli import app
from streamgauge.config.experiment import build
from streamgauge.core.errors import InputError
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines import registry
from streamgauge.engines.spi import Edges, StartRequest
from streamgauge.preflight.settings_checks import check
from streamgauge.transports.kafka.result_messages import MARK, mark_of, table_of
from streamgauge.transports.spi import Edge
from streamgauge.workloads.registry import get
from tests.helpers_broker_trials import require_jars
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


def test_messages_are_json_by_default_and_nothing_else() -> None:
    """Over Kafka, as its capabilities say."""
    requested = {"workload": "filter", "engine": ENGINE, "transport": "kafka", "load": {"rate": "1k"}}
    assert check(build(requested)).transport_options == {"encoding": "json"}
    with pytest.raises(InputError, match="encoding: must be one that python-consumer reads: json"):
        check(build({**requested, "transport_options": {"encoding": "compact"}}))


class Driver:
    """What the loop needs of the driver: two partitions, whose events it gives once, and the results that came."""

    def __init__(self) -> None:
        self.common_cut, self.act = Mock(side_effect=[1000, 1000, 2000]), Mock()
        self.ranges, self.sent = list[tuple[int, int]](), list[pa.RecordBatch]()
        self.send_results: Any = lambda location, token, address, batches: self.sent.extend(batches)

    def read_range(
        self, location: str, token: str, stream: str, from_us: int, to_us: int, columns: Sequence[str], *_: Any
    ) -> Iterator[pa.RecordBatch]:
        self.ranges.append((from_us, to_us))
        prices = pa.array([80, 91, 99] if location == "first" else [95], pa.int32())
        yield pa.record_batch([prices if name == "price" else prices.cast(KINDS[name]) for name in columns], columns)


COLUMNS = ("user_id", "gem_pack_id", "price", "event_time")
KINDS = dict.fromkeys(COLUMNS, pa.int32()) | {"event_time": pa.int64()}


def test_the_loop_reads_filters_sends_and_commits() -> None:
    """Each range once, of every partition; a batch without results is committed too, and no batch without events."""
    module = load(EXAMPLE / "streamgauge_python_consumer.py")
    edges = Edges((Edge("first", ""), Edge("second", "")), Edge("results", "secret"), {"purchases": COLUMNS})
    consumer, driver = module.Consumer(filtering("price > 90"), edges), Driver()
    consumer._client._client = driver
    consumer._step()
    consumer._step()
    consumer._row_wise = module.lowered(filtering("price > 99").sink.input)
    consumer._step()
    assert driver.ranges == [(0, 1000), (0, 1000), (1000, 2000), (1000, 2000)]
    assert pa.Table.from_batches(driver.sent).column("price").to_pylist() == [91, 99, 95]
    commits = [(call.kwargs["batch"], call.kwargs["accepted"]) for call in driver.act.call_args_list]
    assert commits == [(0, [[0, 0]]), (1, [])]


def message(partition: int, offset: int, price: int | None) -> Any:
    """One event on a partition."""
    value = json.dumps({"user_id": 7, "gem_pack_id": 1, "price": price, "event_time": 5}).encode()
    fields = {"error": None, "partition": partition, "offset": offset, "value": value}
    return Mock(**{f"{name}.return_value": field for name, field in fields.items()})


class Topics:
    """Both clients of Kafka: the events that are there, and the messages that were sent."""

    def __init__(self, *batches: list[Any], error: KafkaError | None = None) -> None:
        self.consume, self.flush, self.produce = Mock(side_effect=batches), Mock(return_value=0), Mock()
        self.produce.side_effect = lambda *_, on_delivery, **__: on_delivery(error, None)

    @property
    def sent(self) -> list[tuple[bytes | str, Any]]:
        """Key and value of each message."""
        return [(call.args[2], call.args[1]) for call in self.produce.call_args_list]


def over_kafka(topics: Topics) -> Any:
    """The loop between topics."""
    module = load(EXAMPLE / "streamgauge_python_consumer.py")
    edge = Edge("localhost:1", "run")
    columns, options = {"purchases": COLUMNS}, {"brokers": "localhost:1", "encoding": "json"}
    edges = Edges((edge,), edge, columns, transport="kafka", transport_options=options)
    consumer = module.Consumer(filtering("price > 90"), edges)
    consumer._client._consumer.close()
    consumer._client._consumer = consumer._client._producer = topics
    return consumer


def test_over_kafka_a_batch_lies_between_marks_with_its_ends() -> None:
    """The first mark says up to which offset of each partition; nulls are left out; no batch without events."""
    topics = Topics([message(0, 3, 95), message(1, 9, None)], [], [message(0, 4, 1)])
    consumer = over_kafka(topics)
    for _ in range(3):
        consumer._step()
    keys = [key for key, _ in topics.sent]
    assert keys == [MARK, "q/0", MARK, MARK, MARK]
    marks = [mark_of(value) for key, value in topics.sent if key == MARK]
    assert [(each.batch, each.first) for each in marks] == [(0, True), (0, False), (1, True), (1, False)]
    ends = [[(each.partition, each.offset) for each in mark.positions] for mark in marks]
    assert ends == [[(0, 4), (1, 10)], [], [(0, 5), (1, 10)], []]
    (rows,) = table_of([topics.sent[1][1].encode()], marks[0].sinks, [1]).values()
    assert rows.select(["user_id", "gem_pack_id", "price"]).to_pylist() == [
        {"user_id": 7, "gem_pack_id": 1, "price": 95}
    ]


def test_over_kafka_a_refused_result_is_a_failure() -> None:
    """With the client's reason."""
    topics = Topics([message(0, 3, 95)], error=KafkaError(KafkaError._MSG_TIMED_OUT))
    with pytest.raises(RuntimeError, match=r"the broker did not accept results: .* timed out"):
        over_kafka(topics)._step()


@pytest.mark.process
@pytest.mark.long
@pytest.mark.parametrize("transport", ["memory", pytest.param("kafka", marks=pytest.mark.broker)])
def test_its_answers_are_right(tmp_path: Path, transport: str) -> None:
    """The whole path of a command; whether it keeps up is the machine's affair."""
    if transport == "kafka":
        require_jars(ENGINE)
    words = ["run", "filter", "--engine", ENGINE, "--rate", "5k", "--warmup", "1s", "--duration", "4s", "--generators"]
    words += ["2", "--transport", transport, "--out", str(tmp_path / "runs"), "--json"]
    result = json.loads(CliRunner().invoke(app.app, words).stdout)
    verification = result["verification"]
    assert verification["matched"] == verification["expected"] > 1000
    assert [verification[fault] for fault in ("missing", "extra", "duplicate", "wrong", "late")] == [0] * 5
    assert {check["name"]: check["state"] for check in result["verdict"]["checks"]}["connected"] == "ok"
    assert result["engine"] == ENGINE
