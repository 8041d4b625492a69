"""`experiment --quick`: one short trial a cell instead of what a file asks for, for a look and not for a figure.

The look is a matrix of its own, so that it runs, resumes and is shown like any other. It names its cells one by one:
those of the file, with a run at a stored rate instead of a search, and each trial of an anatomy. A span may be too
short for a verdict, and is not extended.
"""

from itertools import accumulate

from streamgauge.config.experiment import Experiment, Matrix, Quick, Sweep, build
from streamgauge.config.matrix import expand, run_order, select, values_of
from streamgauge.core.errors import Rule, require, require_all
from streamgauge.studies.matrix.cells import LOOK_S_MAX, check_cells
from streamgauge.studies.matrix.sweep import as_matrix

CELLS_MAX = 8
_RATE = 'rate = "20k" below [quick], a rate that each cell surely holds'


def quick_look(experiment: Experiment, numbers: str | None = None) -> Experiment:
    """The matrix of at most `CELLS_MAX` short trials in at most `LOOK_S_MAX` seconds, which lists what it leaves out.

    `numbers`: the cells of the file to choose from, as for `--cells`.

    Raises:
        InputError: with every problem of any cell; also for a file that searches and stores no rate for a look.
    """
    command, quick = experiment.command, experiment.quick or Quick()
    rate = (experiment.sweep or Sweep()).of or quick.rate
    require_all(
        Rule(
            command in ("run", "sustain", "sweep", "anatomy"), "--quick",
            f"makes short trials, and {command} makes none", command, "leave --quick out",
        ),
        Rule(
            command not in ("sustain", "sweep") or rate is not None, "quick.rate",
            "must be given for --quick, because this file searches for its rate", quick.rate, _RATE,
        ),
    )  # fmt: skip
    if command == "sweep":
        experiment = as_matrix(experiment, rate or 0.0)
    short = _short(experiment, quick.model_copy(update={"look": True}))
    cells = expand(short)
    matrix = short.matrix or Matrix()
    checked = check_cells(run_order(cells, matrix) if numbers is None else select(cells, numbers))
    times = list(accumulate(one.seconds or 0.0 for one in checked[:CELLS_MAX]))
    count = sum(seconds <= LOOK_S_MAX for seconds in times)
    rule, way_out = f"must leave time for a trial within {LOOK_S_MAX / 60:g} min", 'duration = "20s" below [quick]'
    require(count, "quick.duration", rule, f"{times[0]:.0f} s", way_out)
    settings = [{name: value for name, value in one.cell.settings.items() if value is not None} for one in checked]
    left_out = (*settings[count:], *matrix.left_out)
    shown = Matrix(include=tuple(filter(None, settings[:count])), left_out=left_out, no_cells=matrix.no_cells)
    return short.model_copy(update={"matrix": shown})


def _short(experiment: Experiment, quick: Quick) -> Experiment:
    """The experiment with short trials: a search becomes a run, and each trial of an anatomy becomes a cell."""
    is_anatomy, base = experiment.command == "anatomy", values_of(experiment, "search", "matrix", "quick")
    changed = {name: getattr(quick, name) for name in ("rate", "duration", "warmup", "profile")}
    axes = {f"anatomy.{name}": [[one] for one in values] for name, values in experiment.anatomy or () if values}
    return build({
        **base, "command": "anatomy" if is_anatomy else "run", "quick": quick.model_dump(exclude_none=True),
        "load": {**base["load"], **{name: value for name, value in changed.items() if value is not None}},
        "parameters": {**base["parameters"], **quick.parameters},
        "matrix": {**(experiment.matrix or Matrix()).model_dump(), "repeat": 1, **(axes if is_anatomy else {})},
    })  # fmt: skip
