"""Interference during the runs of a comparison: background processes, and the machine's own speed.

Neither belongs to a side, and its effect on a system is unknown. So no gate is decided if it differed between the sides
or if background processes used part of the machine. Wrong answers are an exception, because neither causes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from streamgauge.results.codes import WarningCode
from streamgauge.results.run import Result
from streamgauge.studies.compare.groups import RunGroup
from streamgauge.verdict.evidence import background_load, background_load_warning, machine_speed_differs


def interference_warnings(a: RunGroup, b: RunGroup) -> Iterator[str]:
    """Each run beside background load, by the verdict's rule; then whether the machine's speed differed."""
    for side in (a, b):
        for run in side.runs:
            if said := background_load_of(run.result):
                yield (
                    f"{side.name}: {run.folder.name}: {said}. A difference may be their doing, so no gate is decided "
                    "except that on wrong answers"
                )
    if times := _machine_times(a, b):
        yield (
            f"the machine's speed differed: the reference work took {abs(times - 1):.0%} "
            f"{'longer' if times > 1 else 'less'} for B. So much of a difference may be the machine's doing, so no "
            "gate is decided except that on wrong answers. Run both sides again on a quiet machine"
        )


def background_load_of(result: Result) -> str:
    """The warning of background load, or "". Results older than the warning codes have only the mean of its CPU."""
    if result.warning_codes or result.others_cpu_percent is None:
        return result.warning(WarningCode.BACKGROUND_LOAD)
    processors = result.environment.get("cpus")
    if not isinstance(processors, int) or processors < 1:
        return ""
    busy = background_load(result.others_cpu_percent / (100 * processors), 0.0)
    return background_load_warning(busy[0]) if busy is not None else ""


def doubts(a: RunGroup, b: RunGroup) -> list[str]:
    """Reasons why a difference may come from the machine, however narrow its interval."""
    reasons = [
        f"background processes were busy on {side.name}'s machine ({', '.join(names)})"
        for side in (a, b)
        if (names := [run.folder.name for run in side.runs if background_load_of(run.result)])
    ]
    return reasons + (["the machine's speed differed by its reference work"] if _machine_times(a, b) else [])


def _machine_times(a: RunGroup, b: RunGroup) -> float | None:
    """Time of the reference work for B divided by that for A, if the machine's speed differed; else None."""
    times = [[run.result.reference_work_us for run in side.runs if run.result.reference_work_us] for side in (a, b)]
    if not all(times):
        return None
    a_us, b_us = (median(each) for each in times)
    return b_us / a_us if machine_speed_differs(a_us, b_us) else None
