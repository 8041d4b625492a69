"""Traffic Monitoring (TM): the average speed on each road, from the GPS traces of taxis.

Map matcher: a trace belongs to the nearest road if that is closer than `map_matcher_radius` metres. Of equally near
roads, the one with the smallest number wins. Roads come from a generated map or from a file
(`map_matcher_shapefile`), whose bounding box is then that of the traces. These traces are removed first:

- those of standing taxis, and those outside the box
- malformed ones: speeds that are null, NaN, below 0 or above 500 km/h, and positions that are null, NaN or not on Earth

Not repeated from the thesis's code: degrees of latitude as distances in every direction (here a degree of longitude has
its real length), the first road within 5 m instead of the nearest, map cells searched without their neighbours, and
roads parsed again for every trace.

Speed calculator: the thesis's rule uses the last `speed_calculator_window` accepted speeds x of a road, their number n
and average a. A speed v has the new average c = (sum of x + v) / (n + 1). It is accepted if |v - c| <= 2 sigma with
sigma**2 = (sum of (x - a)**2 + (v - a)**2) / n. Then v joins x, the oldest speed leaves if there are too many, and
a = c. The first two speeds are always accepted. This rule freezes on a road whose last six or more speeds are equal:
it rejects any greater change forever.

Decisions: an accepted speed gives (road, average, n), a rejected one nothing (the thesis gives 0, 0). Averages keep
their fractions. Speeds are in 64ths of a km/h, so that the rule is in whole numbers and every engine accepts the same
speeds.

Exercises: filters, a lookup by proximity (which no native node offers), a window by count, and a keyed process on the
results of another process. Both processes have a truth in SQL that shares no code with the class or the map.

Source: Bordin 2017, section 3.3.3.
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from pydantic import Field

from streamgauge.core.arrays import Bools, Floats, Int64s
from streamgauge.core.errors import require
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import Stream, source
from streamgauge.dataflow.operators.api import ROW, Processor, StateInAttributes
from streamgauge.dataflow.operators.grouped_arrays import KeyDictionary, group_by_key, group_starts, groups
from streamgauge.loadgen.datasets.gps_traces import (
    BEND_X,
    BEND_Y,
    BOX,
    CROSSING_X,
    CROSSING_Y,
    FACTORS,
    METRES_NORTH,
    PRIME,
    SIDE,
    SPEED_GRID,
    STREETS_MAX,
    STREETS_MIN,
    VERTICES,
    Box,
    Coordinate,
    Parts,
    Speed,
    Taxis,
    bend_most,
    crossing_most,
    read_roads,
    roads,
)
from streamgauge.loadgen.fields import Key, StreamSpec, with_malformed
from streamgauge.workloads.registry import Feature, File, Job, Parameters, Workload, double, unless

SPEED_MAX, WINDOW_MAX = 500, 60
"""Bounds in km/h and in accepted speeds: up to them, all products of the rule stay below 2**63."""
MARGIN_METRES = 0.001
"""The road index searches this much further than the radius, because it computes distances differently."""
CELL_METRES = 128
"""Cell size of the truth's grid: a trace is compared with the roads near its cell."""
BLOCK_SPEEDS = 256
"""Number of a road's speeds that the truth reduces at once."""


class TrafficMonitoringParameters(Parameters):
    """Parameters of the thesis's rules, the map and the taxis."""

    map_matcher_radius: float = Field(
        11.18,
        gt=0,
        le=500,
        allow_inf_nan=False,
        description="a trace belongs to the nearest road within this many metres",
    )
    map_matcher_shapefile: File = Field(
        "", description="a GeoJSON file of roads, which also bounds the traces; empty: the generated map"
    )
    speed_calculator_window: int = Field(
        30, ge=2, le=WINDOW_MAX, description="number of a road's last accepted speeds that judge the next one"
    )
    streets: int = Field(
        50, ge=STREETS_MIN, le=STREETS_MAX, description="number of streets in each direction; 50 make 4900 roads"
    )
    taxis: int = Field(1000, ge=1, le=1_000_000, description="number of taxis")
    slow_downs: float = Field(0.1, ge=0, le=1, description="share of the roads that are slow at any time")
    outliers: float = Field(0.01, ge=0, le=0.5, description="share of the traces with a far higher speed (planted)")
    stopped: float = Field(0.05, ge=0, le=0.5, description="share of the traces of standing taxis")
    outside: float = Field(0.02, ge=0, le=1, description="share of the traces outside the map's box")
    malformed: float = Field(0.001, ge=0, le=1, description="share of the traces with an impossible speed")


class RoadIndex:
    """The road segments of a map in an R-tree; `nearest` finds the roads of many positions at once."""

    def __init__(self, parts: Parts) -> None:
        # Imported here, so that commands that only list workloads do not wait for it.
        import shapely  # type: ignore[import-untyped]

        self._start, self._way, self._road = parts.start, parts.way, parts.road
        ends = np.stack([self._start, self._start + self._way], axis=1)
        self._points, self._tree = shapely.points, shapely.STRtree(shapely.linestrings(ends))

    def nearest(self, east: Floats, north: Floats, radius: float) -> tuple[Int64s, Int64s]:
        """(index, road) of each position with a road closer than `radius`, in order."""
        reach = radius + MARGIN_METRES
        point, part = self._tree.query(self._points(east, north), predicate="dwithin", distance=reach)
        # The truth uses the same order of operations, and a crossing is equally far by all its roads.
        (x, y), (way_x, way_y) = self._start[part].T, self._way[part].T
        along = ((east[point] - x) * way_x + (north[point] - y) * way_y) / (way_x * way_x + way_y * way_y)
        along = np.clip(along, 0.0, 1.0)
        off_x, off_y = east[point] - (x + along * way_x), north[point] - (y + along * way_y)
        squared = off_x * off_x + off_y * off_y
        within = np.flatnonzero(squared < radius * radius)
        point, road, squared = point[within], self._road[part[within]], squared[within]
        order = np.lexsort((road, squared, point))
        first = order[group_starts(point[order])]
        return point[first], road[first]


@lru_cache(maxsize=4)
def road_index(streets: int, file: str) -> RoadIndex:
    """Cached, because an engine opens an instance for every task of every batch."""
    return RoadIndex(read_roads(file).parts if file else made_parts(streets))


def made_parts(streets: int) -> Parts:
    """The straight segments of the generated map's roads."""
    vertices = roads(streets)
    start = vertices[:, :-1].reshape(-1, 2)
    road = np.repeat(np.arange(len(vertices)), VERTICES - 1)
    return Parts(start, vertices[:, 1:].reshape(-1, 2) - start, road)


def box_of(file: str) -> Box:
    """The bounding box of a file's roads, or of the generated map."""
    return read_roads(file).box if file else BOX


class MapMatcher(Processor):
    """The road and speed of each trace that has a road."""

    def __init__(self, streets: int, radius: float, file: str) -> None:
        self._streets, self._radius, self._file = streets, radius, file

    def open(self, schema: pa.Schema) -> None:
        self._index, self._box = road_index(self._streets, self._file), box_of(self._file)

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        lat, lon = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("lat", "lon"))
        rows, roads = self._index.nearest(*self._box.to_plane(lat, lon), self._radius)
        speed = batch.column("speed").take(pa.array(rows))
        return pa.RecordBatch.from_pydict({"road_id": roads.astype(np.int32), "speed": speed, ROW: rows})


class SpeedCalculator(StateInAttributes):
    """The average of a road's last accepted speeds, at every accepted one.

    The average at an accepted speed is over it and the `window` speeds before it. So the last `window` + 1 accepted
    speeds of a road are the whole state: all of them make the average, and the last `window` judge the next speed.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._recent_speeds = np.zeros((0, window + 1), np.int32)
        self._accepted, self._sums, self._squares = (np.zeros(0, np.int64) for _ in range(3))

    def open(self, schema: pa.Schema) -> None:
        self._roads = KeyDictionary(schema.field("road_id").type)

    def process(self, batch: pa.RecordBatch, watermark_us: int) -> pa.RecordBatch:
        codes = self._roads.encode(batch.column("road_id"))
        self._grow(len(self._roads) - len(self._recent_speeds))
        speeds = np.floor(batch.column("speed").to_numpy(zero_copy_only=False) * SPEED_GRID + 0.5).astype(np.int64)
        sums, counts = np.zeros(len(codes), np.int64), np.zeros(len(codes), np.int64)
        for turn in turns(codes):
            sums[turn], counts[turn] = self._judge(codes[turn], speeds[turn])
        rows = np.flatnonzero(counts)
        return pa.RecordBatch.from_pydict(
            {
                "road_id": batch.column("road_id").take(pa.array(rows)),
                "average_speed": sums[rows] / counts[rows] / SPEED_GRID,
                "count": pa.array(np.minimum(counts[rows], self._window), pa.int32()),
                ROW: rows,
            }
        )

    def _judge(self, codes: Int64s, speeds: Int64s) -> tuple[Int64s, Int64s]:
        """(sum, number) of the speeds in the average at each of these, one per road; 0, 0 for rejected ones."""
        before = self._accepted[codes]
        place = before % (self._window + 1)
        leaving = self._recent_speeds[codes, place].astype(np.int64)  # 0 before the window is full
        sums, recent = self._sums[codes], np.minimum(before, self._window)
        squares = self._squares[codes] - leaving * leaving
        known = np.minimum(before, self._window + 1)
        accepted = (before < 2) | is_near(speeds, recent, sums - leaving, squares, known, sums)
        sums, squares = sums - leaving + speeds, squares + speeds * speeds
        accepted_codes = codes[accepted]
        self._recent_speeds[accepted_codes, place[accepted]] = speeds[accepted]
        self._accepted[accepted_codes] += 1
        self._sums[accepted_codes], self._squares[accepted_codes] = sums[accepted], squares[accepted]
        return np.where(accepted, sums, 0), np.where(accepted, recent + 1, 0)

    def _grow(self, more: int) -> None:
        self._recent_speeds = np.pad(self._recent_speeds, ((0, more), (0, 0)))
        totals = (self._accepted, self._sums, self._squares)
        self._accepted, self._sums, self._squares = (np.pad(each, (0, more)) for each in totals)


def is_near(
    speed: Int64s, recent: Int64s, recent_sum: Int64s, recent_squares: Int64s, known: Int64s, known_sum: Int64s
) -> Bools:
    """(speed - c)**2 <= 4 sigma**2 in whole numbers: both sides times recent * (recent + 1)**2 * known**2.

    `recent` judging speeds have the given sum and sum of squares; `known` speeds made the average.
    """
    off = recent * speed - recent_sum
    spread = known * known * (recent_squares + speed * speed)
    spread += known_sum * ((recent + 1) * known_sum - 2 * known * (recent_sum + speed))
    return recent * known * known * off * off <= 4 * (recent + 1) * (recent + 1) * spread


def turns(codes: Int64s) -> Iterator[Int64s]:
    """The first row of each code, then the second rows, and so on."""
    order = group_by_key(codes)
    first, code_of = groups(codes[order])
    turn = np.arange(len(codes)) - first[code_of]
    ends = np.cumsum(np.bincount(turn))
    yield from np.split(order[group_by_key(turn)], ends[:-1])


def map_in_sql(streets: int) -> str:
    """The generated map again, as common table expressions of DuckDB SQL.

    The last one is `segments(road_id, part, ax, ay, dx, dy)`: start and direction of each road segment.
    """
    step = SIDE // streets

    def off(first: str, second: str, kind: int, most: int) -> str:
        seed = f"(({first} * {FACTORS[0]} + {second} * {FACTORS[1]} + {kind * FACTORS[2] + FACTORS[3]}) % {PRIME})"
        return f"({seed} * {seed} % {PRIME} % {2 * most + 1} - {most})"

    def crossing(number: str, kind: int) -> str:
        return f"{number} * {step} + {step // 2} + {off('i', 'j', kind, crossing_most(step))}"

    def vertex(axis: str, kind: int) -> str:
        bend = f"CASE WHEN part IN (1, 2) THEN {off('road_id', 'part', kind, bend_most(step))} ELSE 0 END"
        return f"((3 - part) * {axis}0 + part * {axis}3) // 3 + {bend}"

    ends = "a.x AS x0, a.y AS y0, b.x AS x3, b.y AS y3 FROM crossings AS a JOIN crossings AS b"
    return (
        f"crossings AS (SELECT i, j, {crossing('i', CROSSING_X)} AS x, {crossing('j', CROSSING_Y)} AS y"
        f" FROM range({streets}) AS columns_(i), range({streets}) AS rows_(j)),"
        f" ends AS (SELECT a.j * {streets - 1} + a.i AS road_id, {ends} ON b.i = a.i + 1 AND b.j = a.j"
        f" UNION ALL SELECT ({streets} + a.i) * {streets - 1} + a.j, {ends} ON b.i = a.i AND b.j = a.j + 1),"
        f" vertices AS (SELECT road_id, part, {vertex('x', BEND_X)} AS x, {vertex('y', BEND_Y)} AS y"
        " FROM ends, range(4) AS parts_(part)),"
        " segments AS (SELECT a.road_id, a.part, a.x::DOUBLE AS ax, a.y::DOUBLE AS ay,"
        " (b.x - a.x)::DOUBLE AS dx, (b.y - a.y)::DOUBLE AS dy"
        " FROM vertices AS a JOIN vertices AS b ON b.road_id = a.road_id AND b.part = a.part + 1)"
    )


def file_in_sql(file: str) -> str:
    """The roads of a file as common table expressions; DuckDB reads the file itself. The last one is `segments`."""
    box, path = box_of(file), file.replace("'", "''")
    one, many = (f"json_extract(feature, '$.geometry.coordinates')::{kind}" for kind in ("DOUBLE[][]", "DOUBLE[][][]"))
    kind = "json_extract_string(feature, '$.geometry.type')"
    return (
        f"file AS (SELECT json_extract(content, '$.features[*]') AS features FROM read_text('{path}')),"
        " features AS (SELECT unnest(range(len(features)))::INT AS road_id, unnest(features) AS feature FROM file),"
        f" shapes AS (SELECT road_id, CASE {kind} WHEN 'LineString' THEN [{one}] WHEN 'MultiLineString' THEN {many}"
        " ELSE [] END AS lines FROM features),"
        " lines AS (SELECT road_id, unnest(lines) AS line FROM shapes),"
        " vertices AS (SELECT road_id, row_number() OVER () AS line,"
        f" list_transform(line, lambda p: (p[1] - {double(box.west)}) * {box.metres_east}) AS xs,"
        f" list_transform(line, lambda p: (p[2] - {double(box.south)}) * {METRES_NORTH}) AS ys FROM lines),"
        " ends AS (SELECT *, unnest(range(1, len(xs))) AS part FROM vertices),"
        " segments AS (SELECT road_id, line, part, xs[part] AS ax, ys[part] AS ay, xs[part + 1] - xs[part] AS dx,"
        " ys[part + 1] - ys[part] AS dy FROM ends WHERE xs[part + 1] <> xs[part] OR ys[part + 1] <> ys[part])"
    )


def matcher_truth(streets: int, radius: float, file: str = "") -> str:
    """The nearest road, as DuckDB SQL: compares each trace with the road segments near its grid cell."""

    box = box_of(file)

    def cell(metres: str) -> str:
        return f"floor({metres} / {CELL_METRES})::BIGINT"

    def cells(a: str, d: str) -> str:
        low, high = (f"{of}({a}, {a} + {d})" for of in ("least", "greatest"))
        # One metre more than the radius, so that rounding loses no segment.
        return f"range({cell(f'({low} - {radius + 1!r})')}, {cell(f'({high} + {radius + 1!r})')} + 1)"

    def off(metres: str, a: str, d: str) -> str:
        return f"({metres} - ({a} + along * {d}))"

    return (
        f"WITH {file_in_sql(file) if file else map_in_sql(streets)},"
        f" strips AS (SELECT *, unnest({cells('ax', 'dx')}) AS cell_x FROM segments),"
        f" cells AS (SELECT *, unnest({cells('ay', 'dy')}) AS cell_y FROM strips),"
        " traces AS (SELECT speed, _row, row_number() OVER () AS number,"
        f" (lon - {double(box.west)}) * {box.metres_east} AS x, (lat - {double(box.south)}) * {METRES_NORTH} AS y"
        " FROM input),"
        " met AS (SELECT *, greatest(0e0, least(1e0, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy))) AS along"
        f" FROM traces JOIN cells ON cell_x = {cell('x')} AND cell_y = {cell('y')}),"
        f" distances AS (SELECT *, {off('x', 'ax', 'dx')} * {off('x', 'ax', 'dx')}"
        f" + {off('y', 'ay', 'dy')} * {off('y', 'ay', 'dy')} AS squared FROM met)"
        f" SELECT road_id, speed, _row FROM distances WHERE squared < {double(radius * radius)}"
        " QUALIFY row_number() OVER (PARTITION BY number ORDER BY squared, road_id) = 1"
    )


def calculator_truth(window: int) -> str:
    """The accepted speeds and their averages, as DuckDB SQL.

    Each decision depends on the one before. So a road's speeds are reduced in blocks, each starting from the end of the
    block before, and leave a mark for each speed. The averages are then a window function over the accepted rows.
    """
    state = "'kept': {kept}, 'squares': {squares}, 'marks': {marks}"
    empty = state.format(kept="[]::BIGINT[]", squares="[]::BIGINT[]", marks="''")
    before = state.format(kept="steps.kept", squares="steps.squares", marks="''")
    same = state.format(kept="past.kept", squares="past.squares", marks="past.marks || '0'")
    places = f"greatest(1, len(past.kept) + 1 - {window}), len(past.kept) + 1"
    next_state = state.format(
        kept=f"list_slice(list_append(past.kept, coming.v), {places})",
        squares=f"list_slice(list_append(past.squares, coming.v * coming.v), {places})",
        marks="past.marks || '1'",
    )
    v, m, n = "coming.v", "len(past.kept)", f"least(len(past.kept), {window})"
    leaving = f"CASE WHEN {m} > {window} THEN past.kept[1] ELSE 0 END"
    known_sum, recent_sum = "list_sum(past.kept)", f"(list_sum(past.kept) - {leaving})"
    squares = f"(list_sum(past.squares) - ({leaving}) * ({leaving}))"
    off = f"({n} * {v} - {recent_sum})"
    spread = (
        f"({m} * {m} * ({squares} + {v} * {v}) - 2 * {m} * {known_sum} * ({recent_sum} + {v})"
        f" + ({n} + 1) * {known_sum} * {known_sum})"
    )
    accepted = f"{m} < 2 OR {n} * {m} * {m} * {off} * {off} <= 4 * ({n} + 1) * ({n} + 1) * {spread}"
    step = f"CASE WHEN {accepted} THEN {{'v': 0::BIGINT, {next_state}}} ELSE {{'v': 0::BIGINT, {same}}} END"
    return (
        "WITH RECURSIVE numbered AS MATERIALIZED (SELECT road_id, _row,"
        f" floor(speed * {SPEED_GRID} + 0.5e0)::BIGINT AS v,"
        " row_number() OVER (PARTITION BY road_id ORDER BY _row) - 1 AS k FROM input),"
        f" blocks AS MATERIALIZED (SELECT road_id, k // {BLOCK_SPEEDS} AS block,"
        f" list({{'v': v, {empty}}} ORDER BY k) AS speeds FROM numbered GROUP BY road_id, k // {BLOCK_SPEEDS}),"
        " steps AS (SELECT road_id, -1::BIGINT AS block, []::BIGINT[] AS kept, []::BIGINT[] AS squares, '' AS marks"
        " FROM blocks WHERE block = 0"
        " UNION ALL SELECT road_id, block, after.kept, after.squares, after.marks FROM ("
        " SELECT blocks.road_id AS road_id, blocks.block AS block,"
        f" list_reduce(list_prepend({{'v': 0::BIGINT, {before}}}, blocks.speeds), lambda past, coming: {step}) AS after"
        " FROM steps JOIN blocks ON blocks.road_id = steps.road_id AND blocks.block = steps.block + 1)),"
        " accepted AS (SELECT numbered.* FROM numbered JOIN steps"
        f" ON steps.road_id = numbered.road_id AND steps.block = numbered.k // {BLOCK_SPEEDS}"
        f" WHERE substr(steps.marks, numbered.k % {BLOCK_SPEEDS} + 1, 1) = '1')"
        f" SELECT road_id, _row, sum(v) OVER lately / count(*) OVER lately / {SPEED_GRID} AS average_speed,"
        f" least(count(*) OVER lately, {window}) AS count FROM accepted"
        f" WINDOW lately AS (PARTITION BY road_id ORDER BY k ROWS BETWEEN {window} PRECEDING AND CURRENT ROW)"
    )


def match_roads(traces: Stream, streets: int, radius: float, file: str = "") -> Stream:
    """The road and speed of each trace in a stream with `lat`, `lon` and `speed`."""
    return traces.process(
        MapMatcher,
        reads=("lat", "lon", "speed"),
        gives=Schema.from_types(road_id="int", speed="double"),
        parameters={"streets": streets, "radius": radius, "file": file},
        truth=matcher_truth(streets, radius, file),
        name="map_matcher",
    )


def average_speeds(speeds: Stream, window: int) -> Stream:
    """The average speed of each road in a stream with `road_id` and `speed`, at every accepted speed."""
    return speeds.process(
        SpeedCalculator,
        keys="road_id",
        gives=Schema.from_types(road_id="int", average_speed="double", count="int"),
        parameters={"window": window},
        truth=calculator_truth(window),
        name="speed_calculator",
    )


def build(parameters: TrafficMonitoringParameters, rate_per_s: float) -> Job:
    taxi = Key("taxi", parameters.taxis)
    file = _file(parameters)
    taxis, box = Taxis(taxi, 0, parameters.streets, file), box_of(file)
    lat, lon = Coordinate("lat", taxis, "lat", parameters.outside), Coordinate("lon", taxis, "lon")
    speed = Speed("speed", taxis, parameters.slow_downs, parameters.outliers, parameters.stopped)
    speed_field = with_malformed(speed, parameters.malformed, None, math.nan, -1.0, 2.0 * SPEED_MAX)
    traces = StreamSpec("traces", (taxi, lat, lon, speed_field), key="taxi")
    # NaN is above every number, so the upper bound excludes it.
    moving_inside = (
        f"speed > 0 AND speed <= {SPEED_MAX} AND lat BETWEEN {double(box.south)} AND {double(box.north)}"
        f" AND lon BETWEEN {double(box.west)} AND {double(box.east)}"
    )
    moving = source("traces", traces.schema).where(moving_inside, name="moving_inside")
    matched = match_roads(moving, parameters.streets, parameters.map_matcher_radius, file)
    averaged = average_speeds(matched, parameters.speed_calculator_window)
    sound = f"speed BETWEEN 0 AND {SPEED_MAX} AND lat BETWEEN -90 AND 90 AND lon BETWEEN -180 AND 180"
    return Job(averaged.sink("speeds"), (traces,), {"traces": unless(sound)})


def _file(parameters: TrafficMonitoringParameters) -> str:
    """The absolute path of the road file (workers may run in other folders); empty without a file."""
    if not parameters.map_matcher_shapefile:
        return ""
    rule = "belongs to the generated map, but map_matcher_shapefile gives a file of roads"
    is_unset = "streets" not in parameters.model_fields_set
    require(is_unset, "set streets", rule, parameters.streets, "leave one of the two out")
    read_roads(parameters.map_matcher_shapefile)
    return str(Path(parameters.map_matcher_shapefile).resolve())


WORKLOAD = Workload(
    name="traffic_monitoring",
    title="traffic monitoring",
    summary="the average speed on each road, from the GPS traces of taxis matched with a map",
    source="Bordin 2017, section 3.3.3",
    parameters=TrafficMonitoringParameters,
    build=build,
    features=(Feature.FILTER, Feature.COUNT_WINDOW, Feature.LOOKUP, Feature.PYTHON),
    prefix="tm",
)
