"""Every allowed function and operator gives the same type and the same values on Spark and on DuckDB.

Those that stop no engine are the columns of one flow, which runs as a stream. Of the others, edge rows are tried one by
one, and both must stop on the same ones. The same flow runs in a trial of each engine (`test_engines.py`).
"""

import math
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from streamgauge.conformance.edge_rows import AGGREGATES, COLUMNS, LONG, ROWS, STOPPING, VALUES
from streamgauge.core.clock import US
from streamgauge.core.schema import Schema, arrow_type
from streamgauge.dataflow.builder import source
from streamgauge.dataflow.expressions import check as expressions
from streamgauge.dataflow.expressions.functions import FUNCTIONS
from streamgauge.dataflow.lineage import with_lineage
from streamgauge.dataflow.nodes import Flow, Sink
from streamgauge.workloads.dspbench.text import sentiment_analysis, spam_filter, trending_topics, word_count
from streamgauge.workloads.dspbench.web import log_processing
from tests.engine_conformance.spark_session.helpers_spark_session import cut, events, streamed

pytestmark = pytest.mark.spark

FOREIGN = [
    None, "", "İstanbul'da İYİ bir gün #İyi", "ΟΔΟΣ #ΣΟΦΟΣ ΣΑΣ", "273 \u212aelvin, 5 \u212bngström", "STRASSE Straße ﬀ",
    "I ı İ i", "Ǆ ǅ ǆ", "ẞ 𐐀 𐐨 #𐐀", "日本 #語 ne 'quote’s end’",
]  # fmt: skip
"""Text whose lower case has another length, depends on what follows, or has letters of ASCII."""
CUT = {
    "word_count": word_count.WORDS, "trending_topics": trending_topics.TOPICS,
    "sentiment_analysis": sentiment_analysis.CLEAN, "spam_filter": spam_filter.TOKENS,
}  # fmt: skip
"""How workloads cut the texts that they are given, which may be recorded ones of any language."""


@pytest.fixture(scope="module")
def frames(spark: Any) -> list[Any]:
    """The whole table first, then one a row."""
    schema = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
    return [spark.createDataFrame(rows, schema) for rows in [ROWS, *([row] for row in ROWS)]]


@pytest.fixture(scope="module")
def tables() -> list[pa.Table]:
    return [_table(rows) for rows in [ROWS, *([row] for row in ROWS)]]


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.table({n: pa.array(c, arrow_type(t)) for (n, t), c in zip(COLUMNS.items(), columns, strict=True)})


def _duckdb(table: pa.Table, query: str) -> list[Any] | str:
    try:
        with duckdb.connect() as con:
            con.register("edge", table)
            return con.execute(query).fetchall()
    except duckdb.Error:
        return "stopped"


def _spark(frame: Any, query: str) -> list[Any] | str:
    from pyspark.errors import PySparkException

    try:
        return [tuple(row) for row in frame.sparkSession.sql(query, edge=frame).collect()]
    except PySparkException:
        return "stopped"


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=1e-12)
    return type(left) is type(right) and left == right


def _equal(left: list[Any] | str, right: list[Any] | str) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return left == right
    pairs = [(a, b) for x, y in zip(left, right, strict=True) for a, b in zip(x, y, strict=True)]
    return all(_same(a, b) for a, b in pairs)


@pytest.fixture(scope="module")
def together(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, list[Any]]]:
    """Expression to its type and values on Spark, as the columns of one flow: row n happens at second n."""
    calm = {f"x{number}": each for number, each in enumerate(VALUES) if each not in STOPPING}
    columns = source("edges", Schema.from_types(**COLUMNS)).select(calm)
    flow = with_lineage(Flow((Sink(columns.node, "out", "append"),)))  # a result may hold no array, and here it may
    given = events(Schema.from_types(**COLUMNS), 0, [(*row, second * US) for second, row in enumerate(ROWS)])
    found = streamed(spark, flow, tmp_path_factory.mktemp("edges"), {"edges": cut(given, (4, 5, len(ROWS)))})
    rows = sorted((row for batch in found.batches for row in batch), key=lambda row: row[-1])
    assert len(rows) == len(ROWS)
    return {each: (found.types[name], [(row[n],) for row in rows]) for n, (name, each) in enumerate(calm.items())}


def _braced(expression: str) -> str:
    """Braces doubled: the query is a format for Spark."""
    return expression.replace("{", "{{").replace("}", "}}")


def _on_duckdb(expression: str) -> str:
    return expressions.to_duckdb(expression, COLUMNS)


def _every_combination(expression: str) -> pa.Table:
    """Of the edge values of each column that the expression reads."""
    read, columns = expressions.columns_of(expression), zip(COLUMNS, zip(*ROWS, strict=True), strict=True)
    values = [tuple(dict.fromkeys(column)) if name in read else (None,) for name, column in columns]
    return _table(list(product(*values)))


@pytest.mark.parametrize("expression", VALUES)
def test_what_stops_an_engine_is_known(expression: str) -> None:
    """The others may be columns of one flow, over any edge rows."""
    found = _duckdb(_every_combination(expression), f"SELECT {_on_duckdb(expression)} FROM edge")
    assert (found == "stopped") == (expression in STOPPING)


@pytest.mark.parametrize("expression", VALUES)
def test_values_agree(
    expression: str, frames: list[Any], tables: list[pa.Table], together: dict[str, tuple[str, list[Any]]]
) -> None:
    """A row-wise expression has the same type and values on both engines, and stops both on the same rows."""
    type_ = expressions.check(expression, COLUMNS, "test")
    on_duckdb = f"SELECT {_on_duckdb(expression)} AS x FROM edge"
    if expression in together:
        assert together[expression][0] == type_
        assert _equal(_duckdb(tables[0], on_duckdb), together[expression][1])
        return
    on_spark = f"SELECT {_braced(expression)} AS x FROM {{edge}}"
    assert frames[0].sparkSession.sql(on_spark, edge=frames[0]).dtypes == [("x", type_)]
    for row, (table, frame) in enumerate(zip(tables[1:], frames[1:], strict=True)):
        pair = _duckdb(table, on_duckdb), _spark(frame, on_spark)
        assert _equal(*pair), (ROWS[row], pair)


@pytest.mark.parametrize("workload", CUT)
def test_texts_of_any_language_are_cut_alike(workload: str, spark: Any) -> None:
    """A right engine is not called wrong on a replayed text in Turkish or Greek."""
    columns = {"text": "string", "message": "string"}
    rows = [(text, text) for text in FOREIGN]
    table = pa.table({name: pa.array(FOREIGN, pa.string()) for name in columns})
    on_duckdb = expressions.to_duckdb(CUT[workload], columns)
    frame = spark.createDataFrame(rows, "text string, message string")
    found = _spark(frame, f"SELECT {_braced(CUT[workload])} AS x FROM {{edge}}")
    assert found != "stopped"
    assert _equal(_duckdb(table, f"SELECT {on_duckdb} AS x FROM edge"), found)


@pytest.mark.parametrize("expression", [log_processing.TIME, log_processing.STATUS], ids=["time", "status"])
def test_lines_with_escaped_quotes_are_read_alike(expression: str, spark: Any) -> None:
    """Backslashes go through two dialects of SQL; a line that is long is as good as a short one."""
    requests = ["GET /", r"a \"q\" b", "a\\", r"a\\", r"a\\\"", r'a\\" 200 1 "', r"\x16\x03", r"\"" * 20_000]
    lines = [None, "", *(f'h - - [07/Mar/2004:16:05:49 -0800] "{each}" 401 1' for each in requests)]
    seen = expression if expression == log_processing.STATUS else f"unix_micros({expression})"
    on_duckdb = expressions.to_duckdb(seen, {"line": "string"})
    expected = _duckdb(pa.table({"line": pa.array(lines, pa.string())}), f"SELECT {on_duckdb} AS x FROM edge")
    assert isinstance(expected, list)
    assert sum(value is not None for (value,) in expected) == 7
    frame = spark.createDataFrame([(line,) for line in lines], "line string")
    assert _equal(expected, _spark(frame, f"SELECT {_braced(seen)} AS x FROM {{edge}}"))


@pytest.mark.parametrize("expression", AGGREGATES)
def test_aggregates_agree(expression: str, frames: list[Any], tables: list[pa.Table]) -> None:
    """An aggregate has the same type and values on both engines, over groups with nulls, one row, and extremes."""
    on_spark = f"SELECT {expression} AS x FROM {{edge}} GROUP BY g ORDER BY g"
    on_duckdb = f"SELECT {_on_duckdb(expression)} AS x FROM edge GROUP BY g ORDER BY g"
    type_ = expressions.check(expression, COLUMNS, "test")
    assert frames[0].sparkSession.sql(on_spark, edge=frames[0]).dtypes == [("x", type_)]
    pair = _duckdb(tables[0], on_duckdb), _spark(frames[0], on_spark)
    assert _equal(*pair), pair


def test_sum_overflow_stops_both(frames: list[Any], tables: list[pa.Table]) -> None:
    """A sum beyond the largest bigint stops both engines; it never wraps around."""
    checked = expressions.checked("sum(b)", {"b": "bigint"}, "test")
    table = pa.table({"b": pa.array([LONG, 1], pa.int64())})
    frame = frames[0].sparkSession.createDataFrame([(LONG,), (1,)], "b bigint")
    assert _duckdb(table, f"SELECT {checked.duckdb} FROM edge") == "stopped"
    assert _spark(frame, "SELECT sum(b) FROM {edge}") == "stopped"


def test_every_allowed_function_is_compared() -> None:
    """No function is allowed that is not compared above."""
    words = " ".join(VALUES + AGGREGATES)
    assert [name for name in sorted(FUNCTIONS) if f"{name}(" not in words] == []
