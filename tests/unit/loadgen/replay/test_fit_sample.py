"""Fitting to a sample: what is kept of a file's columns, in which words, and what is refused."""

import gzip
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.core.errors import InputError
from streamgauge.loadgen.fields import FieldSpec
from streamgauge.loadgen.random import PhiloxBits
from streamgauge.loadgen.replay.fit_sample import FREQUENT, fit
from tests.unit.helpers_refusals import assert_refused

ROWS = 20_000
RANDOM = np.random.default_rng(7)
ZIPF = RANDOM.zipf(1.5, ROWS)


def written(folder: Path, **columns: Any) -> Path:
    path = folder / "sample.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def made(field: FieldSpec, rows: int = ROWS) -> pa.Array:
    return pa.array(field.column(PhiloxBits(1, 0, 0, 0), 0, rows))


def test_types_are_those_of_the_file(tmp_path: Path) -> None:
    columns = {
        "small": pa.array([1, 2], pa.int16()), "number": pa.array([1, 2], pa.int64()), "real": pa.array([1.5, 2.0]),
        "exact": pa.array([1, 2]).cast(pa.decimal128(21, 2)), "yes": pa.array([True, False]),
        "text": pa.array(["a", "b"]), "raw": pa.array([b"a", b"b"]), "day": pa.array([1, 2], pa.date32()),
        "when": pa.array([1, 2], pa.timestamp("ms")), "kind": pa.array(["a", "b"]).dictionary_encode(),
    }  # fmt: skip
    types = {field.name: field.sql_type for field in fit(written(tmp_path, **columns), "timestamp").fields}
    assert types == {
        "small": "int", "number": "bigint", "real": "double", "exact": "double", "yes": "boolean", "text": "string",
        "raw": "binary", "day": "timestamp", "when": "timestamp", "kind": "string",
    }  # fmt: skip


def test_the_same_file_gives_the_same_fields(tmp_path: Path) -> None:
    path = written(tmp_path, key=ZIPF, text=[f"user {n % 97}" for n in range(ROWS)])
    assert fit(path, "timestamp") == fit(path, "timestamp")


def test_skew_is_kept(tmp_path: Path) -> None:
    """The share of each frequent key, and how many of the rows are rare ones."""
    keys = made(fit(written(tmp_path, key=ZIPF), "timestamp").fields[0]).to_numpy()
    for key in (1, 2, 3):
        assert np.mean(keys == key) == pytest.approx(np.mean(key == ZIPF), abs=0.015)
    assert np.mean(keys > 1000) == pytest.approx(np.mean(ZIPF > 1000), abs=0.01)


def test_the_number_of_keys_is_kept_where_the_sample_covers_them(tmp_path: Path) -> None:
    sample = fit(written(tmp_path, key=RANDOM.integers(0, 300, ROWS)), "timestamp")
    assert len(np.unique(made(sample.fields[0]).to_numpy())) == 300
    assert sample.notes[0].startswith("key bigint: 300 values, the most frequent in 0.00")


def test_more_keys_come_than_the_sample_has_where_it_does_not_cover_them(tmp_path: Path) -> None:
    """A million users of which 20,000 rows can show but few: chance repeats make no heavy keys."""
    users = RANDOM.integers(0, 1_000_000, ROWS)
    sample = fit(written(tmp_path, user=users), "timestamp")
    types = made(sample.fields[0], 10 * ROWS).to_numpy()
    assert len(np.unique(types)) > 8 * ROWS
    assert np.max(np.unique(types, return_counts=True)[1]) < FREQUENT * 3
    assert (types.min() >= users.min(), types.max() <= users.max()) == (True, True)
    assert np.mean(types < 250_000) == pytest.approx(0.25, abs=0.02)
    assert "by quantiles" in sample.notes[0]


def test_large_numbers_and_times_are_shown_in_full(tmp_path: Path) -> None:
    """No power of ten, and no microseconds since the epoch."""
    first_us = 1_772_352_000_000_000
    numbers = np.arange(ROWS) * 10**10
    path = written(tmp_path, day=pa.array(first_us + np.arange(ROWS), pa.timestamp("us")), n=numbers)
    day, n = fit(path, "ts").notes
    assert day.endswith("from 2026-03-01 08:00:00 to 2026-03-01 08:00:00 by quantiles")
    assert n.endswith(f"from 0 to {numbers[-1]:,} by quantiles")


def test_nulls_are_kept_and_the_event_time_is_left_to_the_plan(tmp_path: Path) -> None:
    path = written(
        tmp_path, ts=pa.array(range(1000), pa.timestamp("us")), city=["a", None, "b", None] * 250, empty=[None] * 1000
    )
    sample = fit(path, "ts")
    assert [field.name for field in sample.fields] == ["city", "empty"]
    assert made(sample.fields[0]).null_count / ROWS == pytest.approx(0.5, abs=0.02)
    assert made(sample.fields[1]).null_count == ROWS
    assert sample.notes == (
        "city string: 2 values, the most frequent in 0.25 of the rows, 0.5 null",
        "empty string: always null",
    )


@pytest.mark.parametrize("name", ["s.csv", "s.csv.gz", "s.json", "s.jsonl", "s.jsonl.gz"])
def test_text_files_may_be_compressed(tmp_path: Path, name: str) -> None:
    text = "city,price\nRio,1.5\nBonn,2.5\n" if "csv" in name else '{"city": "Rio", "price": 1.5}\n' * 3
    data = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    types = {field.name: field.sql_type for field in fit(tmp_path / name, "timestamp").fields}
    assert types == {"city": "string", "price": "double"}


@pytest.mark.parametrize(("values", "refused"), [
    (["north", "south"], True), ([True, False], True), (["01.03.2026 12:00", None], False), ([1.5e9, 1.6e9], False),
    ([None, None], False),
])  # fmt: skip
def test_a_named_time_column_must_hold_times(tmp_path: Path, values: list[object], refused: bool) -> None:
    path = written(tmp_path, zone=values, price=[1, 2])
    with pytest.raises(InputError, match=r"must have times.*zone") if refused else nullcontext():
        assert [field.name for field in fit(path, "Zone", named=True).fields] == ["price"]


@pytest.mark.parametrize(("name", "rule"), [
    ("no.csv", "existing"), ("a.xlsx", "must be one of"), ("a.parquet", "must be readable"),
])  # fmt: skip
def test_files_that_are_refused(tmp_path: Path, name: str, rule: str) -> None:
    """A file that is not there, not known, or not readable."""
    if name != "no.csv":
        (tmp_path / name).write_text("x")
    assert_refused(rule, fit, tmp_path / name, "timestamp")


@pytest.mark.parametrize(("columns", "rule"), [
    ({"a": pa.array([], pa.int32())}, "must hold some rows"),
    ({"a": [[1], [2]]}, "column a has a type that no field has"),
    ({"event_time": [1, 2]}, "whose name the instrument needs"),
    ({"Event_Time": [1, 2]}, "whose name the instrument needs"),
    ({"ts": [1, 2]}, "a column beside the event time"),
    ({"TS": [1, 2]}, "a column beside the event time"),  # to Spark it is the same
])  # fmt: skip
def test_columns_that_are_refused(tmp_path: Path, columns: dict[str, Any], rule: str) -> None:
    assert_refused(rule, fit, written(tmp_path, **columns), "ts")
