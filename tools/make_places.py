"""Writes the made database of places that ships with the package: `python tools/make_places.py`.

Needs mmdb_writer and netaddr, which nothing else needs: `pip install mmdb_writer`.
"""

from __future__ import annotations

from mmdb_writer import MMDBWriter
from netaddr import IPAddress, IPSet, iprange_to_cidrs

from streamgauge.workloads.helpers.places import MADE, networks


def main() -> None:
    writer = MMDBWriter(ip_version=4, database_type="made-places", description="invented places, made data")
    for first, last, country, city in networks():
        record = {"country": {"names": {"en": country}}} | ({"city": {"names": {"en": city}}} if city else {})
        writer.insert_network(IPSet(iprange_to_cidrs(IPAddress(first), IPAddress(last))), record)
    writer.to_db_file(str(MADE))


if __name__ == "__main__":
    main()
