"""Looks up country and city of an address in a database of MaxMind's format.

The packaged database is synthetic: 1024 invented networks (`networks`), written by `tools/make_places.py`. A user's
database (GeoLite2 City, DB-IP) works too. An address without a country has no place; its city may be unknown.
"""

import ipaddress
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import maxminddb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.core.errors import InputError, Problem
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream, flow
from streamgauge.dataflow.nodes import Flow
from streamgauge.dataflow.operators.api import ROW, Processor
from streamgauge.dataflow.operators.grouped_arrays import valid_mask
from streamgauge.workloads.registry import count_by_key

DATA = "data"
MADE = Path(__file__).parent / DATA / "places.mmdb"
PREFIX_BITS = 10
"""The prefix of synthetic networks: 1024 networks of four million addresses."""
COUNTRIES, CITIES = 24, 5
"""The number of invented countries, and of cities per country."""
REMEMBERED = 2**17
"""The number of cached addresses per process; most addresses repeat."""

Place = tuple[str | None, str | None]
"""Country and city."""


def networks() -> Iterator[tuple[int, int, str, str | None]]:
    """The synthetic networks: (first address, last address, country, city or None).

    One in twenty networks has no place, one in six has no city, and the first countries have most networks.
    """
    size = 2 ** (32 - PREFIX_BITS)
    for number in range(2**PREFIX_BITS):
        mixed = number * 2_654_435_761 % 2**32 >> 7
        if mixed % 20 == 0:
            continue
        country = int(COUNTRIES * (mixed % 1009 / 1009) ** 2)
        city = mixed // 1009 % (CITIES + 1)
        name = f"Town {country + 1}-{city}" if city else None
        yield number * size, (number + 1) * size - 1, f"Country {country + 1}", name


@lru_cache(maxsize=4)
def _reader(database: str) -> Any:
    if database:
        return maxminddb.open_database(database)
    # Executors on other machines have this package as an archive, so it is extracted; the file may be removed later.
    with as_file(files(__package__) / DATA / MADE.name) as path:
        return maxminddb.open_database(path)


@lru_cache(maxsize=REMEMBERED)
def place_of(database: str, address: str) -> Place:
    """The place of an address in a database file (empty: the synthetic one); (None, None) if unknown."""
    try:
        # Parsed first, because the reader accepts 1.2.3.
        record = _reader(database).get(ipaddress.ip_address(address))
    except ValueError:  # not an address, or of a kind that the database does not cover
        return None, None
    names = [((record or {}).get(part) or {}).get("names", {}).get("en") for part in ("country", "city")]
    return (names[0], names[1]) if names[0] else (None, None)


class GeoFinder(Processor):
    """Gives country and city of each address that has a country."""

    def __init__(self, database: str) -> None:
        self._database = database

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        encoded = pc.dictionary_encode(batch.column("address"))
        places = [place_of(self._database, address) for address in encoded.dictionary.to_pylist()]
        columns = [pa.array([place[part] for place in places], pa.string()).take(encoded.indices) for part in range(2)]
        rows = pa.array(np.flatnonzero(valid_mask(columns[0])))
        return pa.RecordBatch.from_arrays([*(one.take(rows) for one in columns), rows], ["country", "city", ROW])


def truth() -> str:
    """The lookup in the synthetic networks as DuckDB SQL: ranges of numbers, without the database file.

    Each distinct address is looked up once.
    """
    rows = ", ".join(
        f"({first}, {last}, '{country}', " + (f"'{city}')" if city else "NULL)")
        for first, last, country, city in networks()
    )
    octets = ", ".join(f"split_part(address, '.', {number})::BIGINT" for number in range(1, 5))
    octet = "(0|[1-9][0-9]{0,2})"
    return (
        f"WITH networks(first, last, country, city) AS (VALUES {rows}),"
        f" parts AS (SELECT address, CASE WHEN regexp_full_match(address, '{octet}([.]{octet}){{3}}')"
        f" THEN [{octets}] END AS octets FROM (SELECT DISTINCT address FROM input)),"
        " numbers AS (SELECT address, octets[1] * 16777216 + octets[2] * 65536 + octets[3] * 256 + octets[4] AS number"
        " FROM parts WHERE octets IS NOT NULL AND list_max(octets) < 256),"
        " known AS (SELECT * FROM numbers ASOF JOIN networks ON number >= first WHERE number <= last)"
        " SELECT country, city, _row FROM input JOIN known USING (address)"
    )


def find_places(addresses: Stream, database: str) -> Stream:
    """The place of each row of a stream with the column `address`.

    With a user's database verification is not independent, because only that database defines the places.
    """
    check_database(database)
    return addresses.process(
        GeoFinder,
        gives=Schema.from_types(country="string", city="string"),
        parameters={"database": database},
        truth=None if database else truth(),
        name="geo_finder",
    )


def count_places(addresses: Stream, database: str, window_s: float = 0) -> Flow:
    """Counts of each country and city so far, or per window: the sinks `countries` and `cities`."""
    places = find_places(addresses, database)
    countries = count_by_key(places, window_s, keys="country", column="count", name="country_stats")
    cities = count_by_key(places, window_s, keys=("country", "city"), column="count", name="city_stats")
    return flow(countries.sink("countries"), cities.sink("cities"))


def check_database(database: str) -> None:
    """Raises InputError if the database does not exist or has another format."""
    way_out = "give the path of a .mmdb file, or nothing for the synthetic places"
    try:
        _reader(database)
    except (maxminddb.InvalidDatabaseError, OSError) as error:
        raise InputError(
            Problem("set database", f"must be a file in MaxMind's format ({error})", database, way_out)
        ) from None
