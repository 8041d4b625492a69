"""core/exit_codes.py: the numbers that scripts rely on, and which of several is the worst."""

from hypothesis import given
from hypothesis import strategies as st

from streamgauge.core.errors import (
    DriverError,
    EngineError,
    InputError,
    Interrupted,
    MachineError,
    MissingOnMachine,
    Problem,
)
from streamgauge.core.exit_codes import SEVERITY, ExitCode, worst

CODES = st.lists(st.sampled_from(ExitCode))


def test_scripts_can_rely_on_the_numbers() -> None:
    """Every code has a meaning, and a place of its own in the order."""
    assert [*ExitCode] == [0, 1, 2, 3, 4, 5, 70, 129, 130, 143]
    assert all(code.meaning for code in ExitCode)
    assert len({code.meaning for code in ExitCode}) == len(ExitCode)


@given(codes=CODES, others=CODES)
def test_the_worst_is_one_of_them_in_whatever_order_and_grouping(codes: list[ExitCode], others: list[ExitCode]) -> None:
    """None is further back in the order. Cells of cells, such as an anatomy in a matrix, give the same."""
    ended = worst([*codes, *others])
    assert ended in [*codes, *others, ExitCode.HOLDS]
    assert all(SEVERITY.index(code) <= SEVERITY.index(ended) for code in [*codes, *others])
    assert ended == worst(reversed([*codes, *others])) == worst([worst(others), worst(codes)])
    assert (ended == ExitCode.HOLDS) is all(code == ExitCode.HOLDS for code in [*codes, *others])


def test_the_order_is_that_of_a_verdict() -> None:
    """A failure is proven, so it outranks what is unknown; what must not be used outranks both; a stop everything."""
    assert [*SEVERITY] == [0, 3, 1, 4, 2, 5, 70, 129, 130, 143]


def test_each_error_has_its_code() -> None:
    """A refusal has that of its worst problem."""
    refused, java = Problem("a", "b", "c", "d"), Problem("PATH", "b", "c", "d", ExitCode.ENVIRONMENT)
    side = Problem("A", "b", "c", "d", ExitCode.INVALID)
    errors = (
        InputError(refused), InputError(side), InputError([side, refused]), MissingOnMachine(java), MachineError("a"),
        EngineError("a"), DriverError("a"), Interrupted("a"),
    )  # fmt: skip
    assert [error.exit_code for error in errors] == [2, 4, 2, 5, 5, 1, 4, 130]
