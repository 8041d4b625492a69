"""`scorecard`: rates systems by the criteria of Karimov et al. 2018, table V, from cells of their experiments.

A cell counts by its own settings, whatever its file is called. A rating needs a sustained cell. Of several cells of a
system the best one is rated, and of the repetitions of a cell the worst one.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from streamgauge.artifacts.run_folder import MATRIX
from streamgauge.config.experiment import Paper
from streamgauge.config.experiment_file import read_published
from streamgauge.core.errors import InputError, Problem, attempt, faults_of, refuse, require
from streamgauge.core.formatting import flatten, format_value
from streamgauge.results.matrix import MatrixCell, MatrixResult
from streamgauge.results.scorecard import (
    CellKind,
    Criterion,
    Doubt,
    Grade,
    Measured,
    Pick,
    Rating,
    Scorecard,
    ScoredStudy,
)
from streamgauge.workloads.registry import get

WORKLOADS = ("windowed_aggregation", "windowed_join")
SMALL, LARGE_S = (8.0, 4.0), 60.0
"""The paper's window and slide in seconds, and the least slide of its large windows. A quick look's are shorter."""
ABOUT_AS_GOOD = 0.9
"""A pick includes systems within 10 %: both ends of a search lie 5 % apart."""
VARYING: Mapping[CellKind, tuple[str, ...]] = {
    "large windows": ("range", "slide"), "single key": ("distribution", "user_distribution"),
}  # fmt: skip
"""The parameters in which such cells differ from those with small windows and many keys."""
PLAIN = ("transport", "tuning")
NAMING = (*PLAIN, "parallelism", "isolation", "master")
"""Settings that make another system of an engine; the values of the first ones need no name."""
_SHARE: Mapping[str, Any] = {
    "figure": "sustained_per_s", "unit": "share", "good": 0.8, "fair": 0.5, "higher_is_better": True,
    "pick": "highest sustained rate there",
}  # fmt: skip
_LEAST: Mapping[str, Any] = {"higher_is_better": False, "kind": "small windows", "unit": "times"}
CRITERIA = (
    Criterion(
        name="throughput", rule="sustained rate, windows of 8 s every 4 s, as a share of the best system's",
        kind="small windows", reference="best", use_case="high throughput", **_SHARE,
    ),
    Criterion(
        name="average latency", rule="mean event-time latency at the sustained rate, by the least of all systems",
        figure="event_time_mean_us", reference="best", good=1.5, fair=3.0, use_case="low average latency",
        pick="least mean latency", **_LEAST,
    ),
    Criterion(
        name="bounded latency", rule="maximum of event-time latency at the sustained rate, by its own mean",
        figure="event_time_max_us", reference="mean", good=3.0, fair=10.0, use_case="bounded latency",
        pick="least maximum by mean", **_LEAST,
    ),
    Criterion(
        name="large windows", rule="sustained rate with windows of 60 s, as a share of its own with windows of 8 s",
        kind="large windows", reference="own", use_case="large windows", **_SHARE,
    ),
    Criterion(
        name="skew", rule="sustained rate with a single key, as a share of its own with many keys",
        kind="single key", reference="own", use_case="skewed keys", **_SHARE,
    ),
    Criterion(
        name="fluctuating rate", rule="while the rate falls and rises, how far the maximum event-time latency lies "
        "above its mean, in slides of the window", kind="fluctuating rate", figure="event_time_max_us",
        reference="slide", unit="slides", good=1.0, fair=2.0, higher_is_better=False, use_case="fluctuating rate",
        pick="least rise of the latency",
    ),
)  # fmt: skip
PAPER = Paper(
    work="Karimov et al. 2018", table="table V",
    hardware="clusters of 2, 4 and 8 workers, each with 16 cores (Xeon E5620, 2.4 GHz), 16 GB and 1 Gb/s",
    published=str(Path(__file__).parent / "data" / "karimov_table_5.csv"),
)  # fmt: skip


class _Cell(NamedTuple):
    """A cell that some criterion is about."""

    study: int
    cell: MatrixCell
    settings: dict[str, Any]
    parameters: dict[str, Any]
    kind: CellKind
    quick: bool

    def measured(self, value: float | None) -> Measured:
        return Measured(study=self.study, cell=self.cell.number, value=value)

    def figure(self, criterion: Criterion) -> float | None:
        """What a criterion rates of the cell; None if it is not known."""
        value: float | None = getattr(self.cell, criterion.figure)
        if criterion.reference != "slide" or value is None or self.cell.event_time_mean_us is None:
            return value
        return value - self.cell.event_time_mean_us


def scorecard(given: Sequence[str]) -> Scorecard:
    """The scorecard of matrices: folders, or files of the form of matrix.json. Raises InputError with every problem."""
    problems: list[Problem] = []
    studies: list[MatrixResult] = [attempt(partial(_read, one), problems) for one in given]
    refuse(problems)
    machines = {f"{one.environment.get('cpu_model')}, {one.environment.get('cpus')} CPUs" for one in studies}
    require(len(machines) == 1, "STUDY", "must be of one machine", "; ".join(sorted(machines)), "studies of one")
    cells = [one for number, study in enumerate(studies, 1) for one in _cells(number, study)]
    systems, ratings = _systems(cells), list[Rating]()
    for workload in WORKLOADS:
        of_workload = {name: [one for one in systems[name] if one.settings["workload"] == workload] for name in systems}
        for criterion in CRITERIA:
            ratings += _ratings(
                criterion, workload, {name: several for name, several in of_workload.items() if several}
            )
    return Scorecard(
        studies=tuple(
            ScoredStudy(
                given=name, start_time=study.start_time, quick=study.quick, cells=len(study.cells),
                used=sum(one.study == number for one in cells),
            )
            for number, (name, study) in enumerate(zip(given, studies, strict=True), 1)
        ),
        criteria=CRITERIA,
        ratings=tuple(ratings),
        picks=tuple(_pick(criterion, workload, ratings) for criterion in CRITERIA for workload in WORKLOADS),
        published=read_published(PAPER),
    )  # fmt: skip


def _read(given: str) -> MatrixResult:
    path, why = Path(given), "it has no settings, because an earlier version wrote it"
    try:
        study = MatrixResult.model_validate_json((path / MATRIX if path.is_dir() else path).read_bytes())
        if study.experiment:
            return study
    except OSError as error:
        why = str(error.strerror)
    except ValidationError as error:
        why = f"{faults_of(error)[0].name or 'file'}: {faults_of(error)[0].rule}"
    rule = f"must be the folder of an experiment with [matrix] or [paper], or its {MATRIX} ({why})"
    raise InputError(Problem("STUDY", rule, given, "a folder runs/*-matrix"))


def _cells(number: int, study: MatrixResult) -> Iterator[_Cell]:
    """The cells of a study that some criterion is about."""
    base = flatten(study.experiment)
    # A look makes runs of a search, whose rate it has to give.
    searches = study.command == "sustain" or (study.quick and base.get("quick.rate") is not None)
    for cell in study.cells:
        settings = {name: value for name, value in {**base, **cell.settings}.items() if value is not None}
        if (workload := settings.get("workload")) in WORKLOADS:
            given = {name.partition(".")[2]: settings[name] for name in settings if name.startswith("parameters.")}
            parameters = get(workload).read(given).model_dump()
            if (kind := _kind(settings, parameters, searches, study.quick)) is not None:
                yield _Cell(number, cell, settings, parameters, kind, study.quick)


def _kind(settings: dict[str, Any], parameters: dict[str, Any], searches: bool, quick: bool) -> CellKind | None:
    is_small, is_single = (parameters["range"], parameters["slide"]) == SMALL, "single" in parameters.values()
    if settings.get("load.profile", "constant") != "constant":
        return "fluctuating rate" if is_small and not is_single else None
    if not searches or not (is_small or quick or parameters["slide"] >= LARGE_S):
        return None
    return "single key" if is_single else "small windows" if is_small else "large windows"


def _systems(cells: Sequence[_Cell]) -> dict[str, list[_Cell]]:
    """The cells of each system, named after its engine and the settings in which cells of the engine differ."""
    values, found = defaultdict(set), defaultdict(list)
    for one in cells:
        for name in NAMING:
            values[one.settings["engine"], name].add(str(one.settings.get(name)))
    for one in cells:
        engine = one.settings["engine"]
        differing = [name for name in NAMING if len(values[engine, name]) > 1 and name in one.settings]
        words = [f"{'' if name in PLAIN else f'{name} '}{format_value(one.settings[name])}" for name in differing]
        found[f"{engine} ({', '.join(words)})" if words else engine].append(one)
    return found


def _ratings(criterion: Criterion, workload: str, systems: Mapping[str, Sequence[_Cell]]) -> Iterator[Rating]:
    """The rating of every system."""
    chosen = {name: _choose(criterion, cells) for name, cells in systems.items()}
    best = min(filter(None, chosen.values()), key=partial(_order, criterion), default=None)
    for name, one in chosen.items():
        doubt: Doubt = "no_cell" if one is None else _doubt(criterion, one)
        measured = one.measured(one.figure(criterion)) if one is not None else None
        reference, figure = None, None
        if one is not None and measured is not None and not doubt:
            reference = _reference(criterion, one, best, systems[name])
            figure = (measured.value or 0.0) / reference.value if reference and reference.value else None
            doubt = "no_reference" if figure is None else ""
        yield Rating(
            criterion=criterion.name, workload=workload, system=name, grade=_grade(criterion, figure), figure=figure,
            measured=measured, reference=reference, doubt=doubt, quick=one is not None and one.quick,
        )  # fmt: skip


def _choose(criterion: Criterion, cells: Sequence[_Cell]) -> _Cell | None:
    """The cell to rate: of searches before looks, of what was decided before the rest."""
    mine = [one for one in cells if one.kind == criterion.kind]
    mine = [one for one in mine if not one.quick] or mine
    repeated, order = defaultdict(list), partial(_order, criterion)
    for one in [one for one in mine if one.cell.verdict not in ("invalid", "interrupted")] or mine:
        repeated[f"{one.study} {one.cell.settings}"].append(one)
    return min((max(group, key=order) for group in repeated.values()), key=order, default=None)


def _order(criterion: Criterion, one: _Cell) -> tuple[bool, float]:
    """The best cell first, and those that cannot be rated last."""
    sign = -1 if criterion.higher_is_better else 1
    return _doubt(criterion, one) != "", sign * (one.figure(criterion) or 0.0)


def _doubt(criterion: Criterion, one: _Cell) -> Doubt:
    """Why a cell cannot be rated; empty if it can."""
    is_rate = criterion.figure == "sustained_per_s"
    if is_rate and one.quick:
        return "quick_look"
    if one.cell.verdict != "sustained":
        return one.cell.verdict or "no_figure"
    if not is_rate and one.cell.until_counted_p50_us is not None:
        return "updates"
    return "no_figure" if one.figure(criterion) is None else ""


def _reference(criterion: Criterion, one: _Cell, best: _Cell | None, cells: Sequence[_Cell]) -> Measured | None:
    """What the figure of a cell is divided by. `cells`: those of its system."""
    if criterion.reference == "mean":
        return one.measured(one.cell.event_time_mean_us)
    if criterion.reference == "slide":
        return one.measured(1e6 * one.parameters["slide"])
    if criterion.reference == "own":
        fixed = {name: value for name, value in one.parameters.items() if name not in VARYING[one.kind]}
        criterion = CRITERIA[0]
        best = _choose(criterion, [other for other in cells if fixed.items() <= other.parameters.items()])
    return None if best is None or _doubt(criterion, best) else best.measured(best.figure(criterion))


def _grade(criterion: Criterion, figure: float | None) -> Grade:
    if figure is None:
        return "unknown"
    limits: tuple[tuple[Grade, float], ...] = (("good", criterion.good), ("fair", criterion.fair))
    is_within = float.__ge__ if criterion.higher_is_better else float.__le__
    return next((grade for grade, limit in limits if is_within(figure, limit)), "poor")


def _pick(criterion: Criterion, workload: str, ratings: Sequence[Rating]) -> Pick:
    """The best systems by a criterion. A rate counts here even if it has no reference."""
    known: list[tuple[float, Rating]] = []
    for one in ratings:
        if (one.criterion, one.workload) == (criterion.name, workload) and one.doubt in ("", "no_reference"):
            measured = one.measured.value if one.measured else None
            value = one.figure if criterion.reference == "mean" else measured
            known += [(value, one)] if value is not None else []
    known.sort(key=lambda pair: pair[0], reverse=criterion.higher_is_better)
    near = [one for value, one in known if min(value, known[0][0]) >= ABOUT_AS_GOOD * max(value, known[0][0])]
    systems = tuple(one.system for one in near)
    return Pick(criterion=criterion.name, workload=workload, systems=systems, quick=any(one.quick for one in near))
