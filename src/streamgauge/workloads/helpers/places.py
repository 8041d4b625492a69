"""Where an address is: country and city from a database in MaxMind's format, for a web server's log and for clicks.

The database that ships with the package is made data: its 1024 networks, countries and cities are invented, and stand
in `networks`, of which `tools/make_places.py` wrote it. A database of one's own (GeoLite2 City, DB-IP) is read as well;
an address that it does not know, or knows no country of, is in no place, and a city may be unknown.
"""

from __future__ import annotations

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
from streamgauge.workloads.helpers.counts import counted

DATA = "data"
MADE = Path(__file__).parent / DATA / "places.mmdb"
PREFIX_BITS = 10
"""Of the made networks: 1024 of them, of four million addresses each."""
COUNTRIES, CITIES = 24, 5
"""So many invented countries, and cities of each."""
REMEMBERED = 2**17
"""Addresses whose places a process of the engine keeps: most come again and again."""

Place = tuple[str | None, str | None]
"""Country and city."""


def networks() -> Iterator[tuple[int, int, str, str | None]]:
    """The made networks: first and last address as numbers, country, city. One in twenty networks is nowhere, and of
    one in six the city is not known; the first countries have most.
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
    # Executors on other machines have this package as an archive; what the reader has mapped may be removed.
    with as_file(files(__package__) / DATA / MADE.name) as path:
        return maxminddb.open_database(path)


@lru_cache(maxsize=REMEMBERED)
def place_of(database: str, address: str) -> Place:
    """Where an address is, by a database's file (empty: the made one); (None, None) where nobody knows."""
    try:
        # The reader itself takes 1.2.3 for an address.
        found = _reader(database).get(ipaddress.ip_address(address))
    except ValueError:  # no address, or of a kind that the database has none of
        return None, None
    names = [((found or {}).get(part) or {}).get("names", {}).get("en") for part in ("country", "city")]
    return (names[0], names[1]) if names[0] else (None, None)


class GeoFinder(Processor):
    """Country and city of each address that has a country."""

    def __init__(self, database: str) -> None:
        self._database = database

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        encoded = pc.dictionary_encode(batch.column("address"))
        known = [place_of(self._database, address) for address in encoded.dictionary.to_pylist()]
        columns = [pa.array([place[part] for place in known], pa.string()).take(encoded.indices) for part in range(2)]
        rows = pa.array(np.flatnonzero(pc.is_valid(columns[0]).to_numpy(zero_copy_only=False)))
        return pa.RecordBatch.from_arrays([*(one.take(rows) for one in columns), rows], ["country", "city", ROW])


def truth() -> str:
    """Where an address is by the made networks, as DuckDB SQL: ranges of numbers, without the database.

    Each address is looked up once, however often it comes.
    """
    rows = ", ".join(
        f"({first}, {last}, '{country}', " + (f"'{city}')" if city else "NULL)")
        for first, last, country, city in networks()
    )
    octets = ", ".join(f"split_part(address, '.', {place})::BIGINT" for place in range(1, 5))
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

    A database of one's own has no second statement of what is in it, so verification is not independent there.
    """
    check_database(database)
    return addresses.process(
        GeoFinder,
        gives=Schema.of(country="string", city="string"),
        parameters={"database": database},
        truth=None if database else truth(),
        name="geo_finder",
    )


def count_places(addresses: Stream, database: str, window_s: float = 0) -> Flow:
    """How often each country and each city came so far, or in each window: the sinks `countries` and `cities`."""
    places = find_places(addresses, database)
    countries = counted(places, window_s, keys="country", column="count", name="country_stats")
    cities = counted(places, window_s, keys=("country", "city"), column="count", name="city_stats")
    return flow(countries.sink("countries"), cities.sink("cities"))


def check_database(database: str) -> None:
    """Raises InputError where there is no such database, or it is none."""
    if not database:
        return
    way_out = "the path of a .mmdb file, or nothing for the made places"
    if not Path(database).is_file():
        raise InputError(Problem("set database", "must be a file in MaxMind's format", database, way_out))
    try:
        _reader(database)
    except maxminddb.InvalidDatabaseError as error:
        rule = f"must be a file in MaxMind's format ({error})"
        raise InputError(Problem("set database", rule, database, way_out)) from None
