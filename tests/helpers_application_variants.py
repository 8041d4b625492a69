"""The flows that an application may be: which of its parameters make another one; several workloads as one."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from streamgauge.core.errors import InputError
from streamgauge.dataflow import graph
from streamgauge.dataflow.builder import flow
from streamgauge.loadgen.fields import StreamSpec
from streamgauge.workloads import registry
from streamgauge.workloads.registry import Job, Parameters, Workload

Operators = frozenset[tuple[type, str]]
"""What a workload is made of: the kind and the name of each operator."""
ABOVE_LEAST = (1, 10, 60)
"""Where 0 means off, what is more than that: several, since a length may have to be a multiple of another one."""


def operators_of(workload: str, parameters: Mapping[str, Any]) -> Operators:
    found = registry.get(workload)
    job = found.build(found.read(parameters), 10_000.0)
    return frozenset((type(node), node.name) for node in graph.operators(job.flow))


def ways_of(workload: str) -> Iterator[tuple[Operators, dict[str, Any]]]:
    """(operators, parameter) for each value of each that is a choice, for the least of each number and some above it,
    and for what the workload itself says that its features need.
    """
    found = registry.get(workload)
    tried = [{name: value} for name, each in found.parameters.model_fields.items() for value in _values(each)]
    for parameter in (*tried, *({name: value} for name, value in found.features_with.values())):
        with suppress(InputError):  # some are refused beside the defaults of others
            yield operators_of(workload, parameter), parameter


def _values(described: FieldInfo) -> Iterator[Any]:
    if get_origin(described.annotation) is Literal:
        yield from get_args(described.annotation)
    for rule in described.metadata:
        if hasattr(rule, "ge"):
            yield from (rule.ge, *(rule.ge + more for more in ABOVE_LEAST))


def together(parts: dict[str, dict[str, Any]]) -> Workload:
    """Several workloads as one: their flows side by side, each with an equal part of the rate.

    A stream that several read is made once, as the first of them has it.
    """

    def build(parameters: Parameters, rate_per_s: float) -> Job:
        share = 1 / len(parts)
        found = [registry.get(name) for name in parts]
        jobs = [each.build(each.read(parts[each.name]), rate_per_s * share) for each in found]
        streams: dict[str, StreamSpec] = {}
        for job in jobs:
            streams = {stream.name: stream for stream in job.streams} | streams
        whole = sum(stream.share for stream in streams.values())
        made = tuple(replace(stream, share=stream.share / whole) for stream in streams.values())
        rules = {stream: rule for job in jobs for stream, rule in job.malformed.items()}
        return Job(flow(*(job.flow for job in jobs)), made, rules)

    return Workload("together", "several applications", "side by side", "test", Parameters, build)
