"""The processors of driver and SUT: those of `--cpus`, or as `--isolation` divides them."""

from __future__ import annotations

from collections.abc import Iterator

from streamgauge.config.options_and_settings import SETTINGS, Experiment
from streamgauge.core.errors import Problem
from streamgauge.core.units import format_cpus, parse_cpus
from streamgauge.system.machine import cpus, split_cpus

Assigned = tuple[tuple[int, ...] | None, tuple[int, ...] | None]


def assigned_cpus(experiment: Experiment) -> Assigned:
    """(driver's, SUT's) processors; None for all that this process may use."""
    if experiment.cpus and not list(processor_problems(experiment)):
        return parse_cpus(experiment.cpus["driver"]), parse_cpus(experiment.cpus["sut"])
    if experiment.isolation == "pinned" and not experiment.cpus:
        driver, sut = split_cpus()
        return tuple(driver), tuple(sut) or None
    return None, None


def processor_problems(experiment: Experiment) -> Iterator[Problem]:
    """Processors that this process may not use, and a separation that is not possible."""
    available, way_out = cpus(), SETTINGS["cpus"].way_out
    if not experiment.cpus:
        if experiment.isolation == "pinned" and len(available) < 2:
            yield Problem("isolation", "pinned needs at least two processors", len(available), "--isolation shared")
        return
    for side, text in experiment.cpus.items():
        if missing := set(parse_cpus(text)) - set(available):
            usable = f"{format_cpus(available)}; {format_cpus(missing)} is not among them"
            rule = f"must be processors that this process may use ({usable})"
            yield Problem(f"cpus.{side}", rule, text, way_out)
    both = set(parse_cpus(experiment.cpus["driver"])) & set(parse_cpus(experiment.cpus["sut"]))
    if both and experiment.isolation == "pinned":
        rule = f"must not share processors ({format_cpus(both)}) with --isolation pinned"
        yield Problem("cpus", rule, "driver and sut", f"{way_out}, or --isolation shared")
