"""The flow of a workload as an inline SVG: one box per node with the figures of its operator, arrows along the data.

A description is a list of mappings with the keys `name`, `kind`, `label` (what the node does, as text) and `inputs`
(names of the nodes it reads). Each node comes after its inputs. Wide pictures run left to right, narrow ones downwards.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from streamgauge.core.formatting import format_count, format_digits, format_percent, format_rate
from streamgauge.report.charts.svg import NARROW_PX, WIDE_PX
from streamgauge.report.document_blocks import Figure
from streamgauge.results.run import Operator, Result

_LINE_PX, _PAD_PX, _GAP_PX = 16, 10, 38
_BOX_PX, _CHARACTER_PX = 178, 6.4
_LABEL_LINES = 3


@dataclass(frozen=True)
class _Box:
    """A node's place and text: `lines` are (css class, text)."""

    name: str
    lines: tuple[tuple[str, str], ...]
    title: str
    inputs: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float


def picture(flow: Sequence[Mapping[str, Any]] | None, result: Result) -> Figure | None:
    """The flow with the figures that `result` holds; None without a description (user jobs have none)."""
    if not flow:
        return None
    layers = _layers(flow)
    figures = _figures(flow, result)
    across = len(layers) * (_BOX_PX + _GAP_PX) - _GAP_PX <= WIDE_PX + 60
    said = _in_words(flow)
    return Figure(
        "flow",
        "The flow and its operators",
        _svg(_across(layers, figures) if across else _down(layers, figures, WIDE_PX), across, "flow-wide", said),
        _svg(_down(layers, figures, NARROW_PX + 60), False, "flow-narrow", said),
        said,
    )


def _layers(flow: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Nodes by their distance from the sources along the longest path."""
    depth: dict[str, int] = {}
    for node in flow:
        depth[node["name"]] = 1 + max((depth[name] for name in node["inputs"]), default=-1)
    return [[node for node in flow if depth[node["name"]] == layer] for layer in sorted(set(depth.values()))]


def _figures(flow: Sequence[Mapping[str, Any]], result: Result) -> dict[str, list[str]]:
    operators = {operator.name: operator for operator in result.operators}
    found = {node["name"]: _of_operator(operators.get(node["name"]), not node["inputs"]) for node in flow}
    for name, share in (result.rate.shares if result.rate else {}).items():
        if name in found and not found[name]:
            found[name] = [f"{format_percent(100 * share)} of the input"]
    for sink in result.sinks:
        if sink.name in found:
            found[sink.name] = [*found[sink.name], f"{format_count(sink.rows)} results", "with warm-up and tail"]
    return found


def _of_operator(operator: Operator | None, is_source: bool) -> list[str]:
    if operator is None:
        return []
    rows = "rows/s" if is_source else "rows in/s"
    pairs = (
        (operator.throughput_per_s, lambda v: format_rate(v, rows)),
        (operator.throughput_per_s_p5, lambda v: f"p5 {format_rate(v, rows)}"),
        (operator.lost or None, lambda v: f"{format_count(v)} rows lost"),
        (operator.selectivity, lambda v: f"selectivity {format_digits(v)}"),
    )
    return [show(value) for value, show in pairs if value is not None]


def _across(layers: list[list[Mapping[str, Any]]], figures: dict[str, list[str]]) -> list[_Box]:
    columns = [[_box(node, figures, _BOX_PX) for node in layer] for layer in layers]
    heights = [sum(box.height for box in column) + _GAP_PX / 2 * (len(column) - 1) for column in columns]
    placed = []
    for n, (column, height) in enumerate(zip(columns, heights, strict=True)):
        y = (max(heights) - height) / 2
        for box in column:
            placed.append(replace(box, x=n * (_BOX_PX + _GAP_PX), y=y))
            y += box.height + _GAP_PX / 2
    return placed


def _down(layers: list[list[Mapping[str, Any]]], figures: dict[str, list[str]], room_px: float) -> list[_Box]:
    placed, y = [], 0.0
    for layer in layers:
        width = min(280.0, (room_px - _PAD_PX * (len(layer) - 1)) / len(layer))
        row = [_box(node, figures, width) for node in layer]
        left = (room_px - width * len(row) - _PAD_PX * (len(row) - 1)) / 2
        placed += [replace(box, x=left + n * (width + _PAD_PX), y=y) for n, box in enumerate(row)]
        y += max(box.height for box in row) + 26
    return placed


def _box(node: Mapping[str, Any], figures: dict[str, list[str]], width: float) -> _Box:
    characters = max(8, int((width - 2 * _PAD_PX) / _CHARACTER_PX))
    label = textwrap.wrap(str(node["label"]), characters, max_lines=_LABEL_LINES, placeholder=" …")
    lines = (
        ("flow-name", _cut(str(node["name"]), characters - 2)),
        *([("flow-kind", _cut(str(node["kind"]), characters))] if node["kind"] != node["name"] else []),
        *(("flow-label", line) for line in label),
        *(("flow-figure", _cut(line, characters)) for line in figures[node["name"]]),
    )
    height = _LINE_PX * len(lines) + 2 * _PAD_PX - 3
    title = f"{node['name']} ({node['kind']}): {node['label']}"
    return _Box(node["name"], lines, title, tuple(node["inputs"]), 0, 0, width, height)


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1] + "…"


def _svg(boxes: list[_Box], across: bool, prefix: str, said: str) -> str:
    width = max(box.x + box.width for box in boxes) + 2
    height = max(box.y + box.height for box in boxes) + 2
    places = {box.name: box for box in boxes}
    arrows = [_arrow(places[name], box, across, prefix) for box in boxes for name in box.inputs]
    head = (
        f'<defs><marker id="{prefix}-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="var(--muted)"/></marker></defs>'
    )
    return (
        f'<svg role="img" aria-label="{escape(said)}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="-1 -1 {width:.0f} {height:.0f}">{head}{"".join(arrows)}{"".join(map(_drawn, boxes))}</svg>'
    )


def _arrow(begin: _Box, end: _Box, across: bool, prefix: str) -> str:
    if across:
        x1, y1, x2, y2 = begin.x + begin.width, begin.y + begin.height / 2, end.x - 1, end.y + end.height / 2
        bend = f"C{(x1 + x2) / 2:.1f},{y1:.1f} {(x1 + x2) / 2:.1f},{y2:.1f}"
    else:
        x1, y1, x2, y2 = begin.x + begin.width / 2, begin.y + begin.height, end.x + end.width / 2, end.y - 1
        bend = f"C{x1:.1f},{(y1 + y2) / 2:.1f} {x2:.1f},{(y1 + y2) / 2:.1f}"
    style = f'fill="none" stroke="var(--muted)" stroke-width="1.3" marker-end="url(#{prefix}-head)"'
    return f'<path d="M{x1:.1f},{y1:.1f} {bend} {x2:.1f},{y2:.1f}" {style}/>'


def _drawn(box: _Box) -> str:
    x, y = box.x + _PAD_PX, box.y + _PAD_PX + 10
    text = "".join(
        f'<text class="{kind}" x="{x:.1f}" y="{y + _LINE_PX * n:.1f}">{escape(line)}</text>'
        for n, (kind, line) in enumerate(box.lines)
    )
    place = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
    return f'<g><title>{escape(box.title)}</title><rect class="flow-box" rx="5" {place}/>{text}</g>'


def _in_words(flow: Sequence[Mapping[str, Any]]) -> str:
    steps = [f"{n['name']} ({n['kind']}{' of ' + ', '.join(n['inputs']) if n['inputs'] else ''})" for n in flow]
    return "The flow: " + "; ".join(steps) + "."
