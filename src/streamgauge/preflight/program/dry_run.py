"""A dry run of a program's references over some planned events, before anything starts.

It finds errors that need rows: a query that fails on them, times in another unit, keys that do not identify a result.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from streamgauge.core.clock import US
from streamgauge.core.errors import Problem
from streamgauge.core.schema import EVENT_TIME, WINDOW_END, WINDOW_START, quote, quoted
from streamgauge.core.value_types import INT, from_duckdb
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.loadgen.plan import Plan
from streamgauge.loadgen.rate_profile import parse_profile
from streamgauge.preflight.program.reference import table_types, time_name
from streamgauge.preflight.program.tables import OutputTable, ProgramTable
from streamgauge.system.user_code import duckdb_lines, first_line
from streamgauge.transports.kafka.topics import UNITS, in_year, units_of

RATE_PER_S, DURATION_S = 1000.0, 5.0
SAMPLED_US = (631_152_000 * US, 4_102_444_800 * US)
"""The times that a user's sample may have: 1990 to 2100."""


def problems(path: Path, table: ProgramTable, streams: Sequence[StreamSpec]) -> Iterator[Problem]:
    """The problems of each output's reference."""
    import duckdb

    now_us = time.time_ns() // 1000
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET threads = 1")
        _fill(connection, streams, now_us)
        for sink, output in table.by_sink.items():
            place = f"{path.name}: {table.setting_of(sink)}"
            try:
                connection.execute("DROP TABLE IF EXISTS _results")
                connection.sql(output.reference).create("_results")
            except duckdb.Error as error:
                way_out = "\n  ".join(["correct it", *duckdb_lines(error)])
                setting = f"{path.name}: {table.reference_setting_of(sink)}"
                yield Problem(setting, "must run over events of its inputs", first_line(error), way_out)
                continue
            yield from _unit_problems(connection, place, output, now_us)
            yield from _key_problems(connection, place, output)


def sample_unit_problem(place: str, unit: str, last_time: float) -> Problem | None:
    """A unit of an input in which the times of its sample are of no year that events have, while another unit fits."""
    low_us, high_us = SAMPLED_US
    fits = [name for name, unit_us in UNITS.items() if low_us <= last_time * unit_us <= high_us]
    if unit in fits or not fits:
        return None
    got = f"{unit}, in which its time {last_time:.0f} is {in_year(last_time * UNITS[unit])}"
    return Problem(f"{place}.time_unit", "must be the unit of the times in its sample", got, f'time_unit = "{fits[0]}"')


def _fill(connection: Any, streams: Sequence[StreamSpec], start_us: int) -> None:
    """Creates the table of each input."""
    profile = parse_profile("constant", RATE_PER_S, DURATION_S)
    plan = Plan(tuple(streams), profile, start_us, DURATION_S, partitions=1, seed=1)
    for number, stream in enumerate(streams):
        connection.register("_events", plan.batch(number, 0, 0, plan.count_before(number, 0, plan.end_us)))
        times = {EVENT_TIME: quote(EVENT_TIME), time_name(stream): f"make_timestamp({EVENT_TIME})"}
        values = [
            f"CAST({times.get(name, quote(name))} AS {kind}) AS {quote(name)}"
            for name, kind in table_types(stream).items()
        ]
        connection.execute(f"CREATE TABLE {quote(stream.name)} AS SELECT {', '.join(values)} FROM _events")


def _unit_problems(connection: Any, place: str, output: OutputTable, now_us: int) -> Iterator[Problem]:
    """Numbers that are times in another unit than the declared one."""
    relation = connection.table("_results")
    types = dict(zip(relation.columns, map(from_duckdb, relation.types), strict=True))
    for setting, name in (("time", output.time), ("window_end", output.window_end)):
        if name is None or types[name].name != INT:
            continue
        ((low, high),) = connection.execute(f"SELECT min({quote(name)}), max({quote(name)}) FROM _results").fetchall()
        if low is None:
            continue
        fits = units_of((low, high), now_us)
        if output.time_unit not in fits and fits:
            moment = in_year(high * UNITS[output.time_unit])
            got = f"{output.time_unit}, in which the {setting} {name} of a result is {moment}"
            way_out = f'time_unit = "{fits[0]}", or another unit of {name} in the reference'
            yield Problem(f"{place}.time_unit", "must be the unit of the times in results", got, way_out)
            return


def _key_problems(connection: Any, place: str, output: OutputTable) -> Iterator[Problem]:
    """Keys that several rows have, in update mode."""
    if output.mode != "update":
        return
    names = connection.table("_results").columns
    ids = list(dict.fromkeys([*output.keys, *filter(None, [output.window_end])]))
    ids += [name for name in (WINDOW_START, WINDOW_END) if name in names and name not in ids]
    query = f"SELECT {quoted(ids)}, count(*) FROM _results GROUP BY {quoted(ids)} HAVING count(*) > 1 LIMIT 1"
    if (several := connection.execute(query).fetchone()) is None:
        return
    *values, count = several
    got = f"{count} rows with " + ", ".join(f"{name} {value}" for name, value in zip(ids, values, strict=True))
    others = [name for name in names if name not in (*ids, output.time)]
    more = f'keys = ["{output.keys[0]}", "{others[0]}"], or ' if others else ""
    rule = "must identify one row of the reference, as in update mode each key has one last value"
    yield Problem(f"{place}.keys", rule, got, f"{more}GROUP BY {', '.join(ids)} in the reference")
