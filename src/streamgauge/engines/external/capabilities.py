"""The capabilities of the engine `external`."""

from __future__ import annotations

from streamgauge.core.errors import InputError, Problem
from streamgauge.engines.spi import Capabilities, StartRequest

CAPABILITIES = Capabilities(
    name="external",
    summary="a program of your own that reads and writes Kafka",
    nodes=("Source", "ProgramNode"),
    sink_modes=("append", "update"),
    transports=("kafka",),
    runs_streams=True,
    computes_truth=False,
    fallback_engine="spark",
    transport_options={"encoding": "json"},
    has_batch_ids=False,
)


def check(request: StartRequest) -> None:
    """Raises InputError with every problem of a start."""
    problems: list[Problem] = []
    if request.frontier != "common":
        rule = "must be common for the engine external"
        problems.append(Problem("load.frontier", rule, request.frontier, "leave --frontier out"))
    if request.master is not None:
        rule = "does not apply to the engine external"
        problems.append(Problem("master", rule, request.master, "leave --master out"))
    for name, value in request.options.items():
        rule, way_out = "is not an option of external, which has none", "leave it out; its file has its settings"
        problems.append(Problem(f"option {name}", rule, value, way_out))
    if problems:
        raise InputError(problems)
