"""`compare` of two scalability studies: how capacity and demand differ.

A capacity lies between the hardest load that was sustained and the easiest that was shown to fail. A demand lies above
the greatest level that was shown to fail, and is at most the least one that sustains the load. B is better or worse
only where both intervals have no value in common.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from streamgauge.artifacts.run_folder import SCALE, read_study
from streamgauge.config.experiment_file import read
from streamgauge.core.errors import InputError, Problem, Rule, attempt, broken, refuse, require
from streamgauge.core.exit_codes import ExitCode
from streamgauge.core.formatting import flatten, resume_command
from streamgauge.results.comparison import (
    CapacityDifference,
    ComparedStudy,
    DemandDifference,
    LevelInterval,
    LoadInterval,
    Says,
    ScaleComparison,
)
from streamgauge.results.scalability import Capacity, ScaleResult
from streamgauge.studies.compare.groups import differing

LEFT_OUT = (
    "command", "out", "bind", "port", "prometheus", "keep_results", "parameters", "options",
    "scale.resources", "scale.loads", "search.tolerance", "search.resume",
)  # fmt: skip
"""Settings of no effect, empty tables, and those that choose the cells: other cells are no other question."""
QUESTION = (
    "workload", "parameters.", "limits", "scale.criterion", "partitions", "isolation", "environment.cpu",
    "load.rate", "load.duration", "load.warmup", "load.chunk", "load.generators", "load.frontier",
)  # fmt: skip
"""Settings that make another question, by the begin of their names."""


class Side(NamedTuple):
    """A study, and the folder in which it was found."""

    folder: Path
    study: ScaleResult


def is_study(given: str) -> bool:
    """Whether the words for a side name a scalability study."""
    return (_folder(given) / SCALE).is_file()


def compare_studies(a: str, b: str, fail_if: Sequence[str] = ()) -> ScaleComparison:
    """Study `b` against study `a`. Raises InputError with all problems."""
    problems = broken(Rule(
        not fail_if, "--fail-if", "must not be given with scalability studies", ", ".join(fail_if),
        "leave it out, and read `says` in --json",
    ))  # fmt: skip
    left, right = (attempt(partial(_read, name, given), problems) for name, given in (("A", a), ("B", b)))
    if left and right:
        problems += _unlike(left, right)
    refuse(problems)
    not_the_same = differing([_facts(left)], [_facts(right)])
    asked = [one.setting for one in not_the_same if one.setting.startswith(QUESTION)]
    study = left.study
    return ScaleComparison(
        workload=study.workload, metric=study.metric, resource=study.resource, dimension=study.dimension,
        load_unit=study.load_unit, a=_compared(left), b=_compared(right), not_the_same=not_the_same,
        capacities=tuple(_capacities(study, right.study)), demands=tuple(_demands(study, right.study)),
        warnings=(f"{', '.join(asked)}: the studies ask different questions",) if asked else (),
    )  # fmt: skip


def _folder(given: str) -> Path:
    path = Path(given.strip())
    return path.parent if path.name == SCALE else path


def _read(name: str, given: str) -> Side:
    folder = _folder(given)
    rule = f"must be the folder of a scalability study, which holds a {SCALE}, like the other side"
    require(is_study(given), name, rule, given, "a folder runs/*-scale")
    study = read_study(folder, SCALE)
    assert isinstance(study, ScaleResult)
    if not study.finished:
        rule, way_out = "must be a study that came to its end", resume_command("scale", folder)
        raise InputError(Problem(name, rule, given, way_out, ExitCode.INVALID))
    return Side(folder, study)


def _unlike(a: Side, b: Side) -> list[Problem]:
    """Why two studies have nothing in common, or are one and the same: a copy names the same first folder."""
    one, other = a.study, b.study
    levels = " and ".join(",".join(map(str, study.resources)) for study in (one, other))
    rules = [
        Rule(
            of_a == of_b, "A, B", f"must have the same {option} on both sides", f"{of_a}, {of_b}",
            f"studies with the same {option}",
        )
        for option, of_a, of_b in (("--load", _load(one), _load(other)), ("--resource", one.resource, other.resource))
    ]  # fmt: skip
    return broken(
        Rule(
            (one.start_time, one.folder) != (other.start_time, other.folder), "B",
            "must be another study than A; this is A, or a copy", str(b.folder), "another study",
        ),
        *rules,
        Rule(
            {*one.resources} & {*other.resources}, "A, B", "must have a level of resources in common", levels,
            "the same --resources for both",
        ),
    )  # fmt: skip


def _load(of: ScaleResult) -> str:
    unit = f" in {of.load_unit}" if of.load_unit else ""
    return f"{of.dimension}{unit}, {'ascending' if _ascends(of) else 'descending'}"


def _ascends(of: ScaleResult) -> bool:
    return of.loads[0] <= of.loads[-1]


def _compared(of: Side) -> ComparedStudy:
    return ComparedStudy(folder=str(of.folder), engine=of.study.engine, start_time=of.study.start_time)


def _facts(of: Side) -> dict[str, Any]:
    """Dotted name to value of everything that should be the same in a comparison."""
    settings = flatten(read(of.folder / "experiment.toml").model_dump(mode="json"))
    return {
        **{name: value for name, value in settings.items() if name not in LEFT_OUT},
        **{f"job_files.{name}": f"SHA-256 {digest[:12]}" for name, digest in of.study.job_files.items()},
        **{f"environment.{name}": value for name, value in flatten(of.study.environment).items()},
    }


def _capacities(a: ScaleResult, b: ScaleResult) -> Iterator[CapacityDifference]:
    of_b = {one.resources: one for one in b.capacities}
    for one in a.capacities:
        if (other := of_b.get(one.resources)) is not None:
            yield _capacity(one, other, _ascends(a))


def _capacity(a: Capacity, b: Capacity, ascends: bool) -> CapacityDifference:
    left, right = (LoadInterval(held=one.load, failed=one.refused if one.decided else None) for one in (a, b))
    (a_low, a_high), (b_low, b_high) = _ends(left, ascends), _ends(right, ascends)
    low = b_low / a_high - 1
    high = b_high / a_low - 1 if a_low > 0 else math.inf
    says: Says = "no_difference"
    if b_low >= a_high or b_high <= a_low:
        says = "better" if (b_low >= a_high) is ascends else "worse"
    elif low <= -1 and high == math.inf:
        says = "unknown"
    return CapacityDifference(
        resources=a.resources, a=left, b=right, says=says,
        low=low if low > -1 else None, high=high if math.isfinite(high) else None,
    )  # fmt: skip


def _ends(of: LoadInterval, ascends: bool) -> tuple[float, float]:
    """The least and the greatest load that the capacity may be."""
    least, greatest = (of.held, of.failed) if ascends else (of.failed, of.held)
    return least or 0.0, math.inf if greatest is None else greatest


def _demands(a: ScaleResult, b: ScaleResult) -> Iterator[DemandDifference]:
    of_b = {one.load: one.resources for one in b.demands}
    for one in a.demands:
        if one.load in of_b:
            left = LevelInterval(above=_failing(a, one.load), most=one.resources)
            right = LevelInterval(above=_failing(b, one.load), most=of_b[one.load])
            yield DemandDifference(load=one.load, a=left, b=right, says=_fewer(left, right))


def _failing(of: ScaleResult, load: float) -> int:
    """The greatest level that was shown not to sustain a load; 0 without one."""

    refused = [(one.refused, one.resources) for one in of.capacities if one.refused is not None and one.decided]
    failing = (level for least, level in refused if (load >= least if _ascends(of) else load <= least))
    return max(failing, default=0)


def _fewer(a: LevelInterval, b: LevelInterval) -> Says:
    if b.most is not None and b.most <= a.above:
        return "better"
    if a.most is not None and a.most <= b.above:
        return "worse"
    return "no_difference" if a.most is not None or b.most is not None else "unknown"
