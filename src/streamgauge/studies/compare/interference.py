"""Interference during the runs of a comparison: background processes, and the machine's own speed.

Neither is the sides' doing, and nobody knows how much of it a system felt: so no gate is decided where it was not the
same for both, or where others had a part of the machine. Wrong answers come of neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from streamgauge.results.causes import WarningCode
from streamgauge.studies.compare.groups import RunGroup
from streamgauge.verdict.evidence import machine_speed_differs


def interference_warnings(a: RunGroup, b: RunGroup) -> Iterator[str]:
    """Each run beside which others were busy, by the verdict's own rule; then whether the machine itself differed."""
    for side in (a, b):
        for run in side.runs:
            if said := run.result.warning(WarningCode.BACKGROUND_LOAD):
                yield (
                    f"{side.name}: {run.folder.name}: {said}, and a difference may be their doing: no gate is decided "
                    "except that on wrong answers"
                )
    if times := _machine_times(a, b):
        yield (
            f"the machine itself was not the same, or its memory was busier: the reference work took "
            f"{abs(times - 1):.0%} {'longer' if times > 1 else 'less'} for B, and so much of a difference may be its "
            "doing: no gate is decided, but that on wrong answers"
        )


def doubts(a: RunGroup, b: RunGroup) -> list[str]:
    """Why no difference of these sides is surely their own, however narrow its interval; nothing where it is."""
    found = [
        f"other processes were busy on {side.name}'s machine ({', '.join(names)})"
        for side in (a, b)
        if (names := [run.folder.name for run in side.runs if run.result.warning(WarningCode.BACKGROUND_LOAD)])
    ]
    return found + (["the machine itself was not the same by its reference work"] if _machine_times(a, b) else [])


def _machine_times(a: RunGroup, b: RunGroup) -> float | None:
    """How many times as long the reference work took for B, where it was another machine by that; else None."""
    took = [[run.result.reference_work_us for run in side.runs if run.result.reference_work_us] for side in (a, b)]
    if not all(took):
        return None
    of_a, of_b = (median(each) for each in took)
    return of_b / of_a if machine_speed_differs(of_a, of_b) else None
