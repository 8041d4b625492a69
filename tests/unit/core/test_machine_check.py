"""What was found on a machine: its status, and the refusal of what is missing."""

from dataclasses import replace

import pytest

from streamgauge.core.errors import InputError, MachineError, MissingOnMachine, Problem
from streamgauge.core.exit_codes import ExitCode
from streamgauge.core.machine_check import MachineCheck, refuse_missing

PROBLEM = Problem("JAVA_HOME", "must lead to Java", None, "install it")


@pytest.mark.parametrize(("problems", "prevents_start", "status"), [
    ((), True, "good"), ((), False, "good"), ((PROBLEM,), True, "missing"), ((PROBLEM,), False, "warning"),
])  # fmt: skip
def test_the_status_follows_from_the_problems(problems: tuple[Problem, ...], prevents_start: bool, status: str) -> None:
    """The keys of its JSON are those that scripts read."""
    check = MachineCheck("java", "Java 17", problems, prevents_start, "--engine spark")
    ways_out = [{"setting": one.setting, "rule": one.rule, "got": "None", "way_out": one.way_out} for one in problems]
    assert check.to_json() == {
        "name": "java", "status": status, "found": "Java 17", "problems": ways_out, "needed_with": "--engine spark",
    }  # fmt: skip


def test_what_is_missing_is_refused_at_once() -> None:
    """With the problems of all checks; a warning refuses nothing."""
    good, warning = MachineCheck("a", "all"), MachineCheck("b", "few", (PROBLEM,), prevents_start=False)
    refuse_missing([good, warning])
    missing = MachineCheck("c", "none", (PROBLEM, PROBLEM))
    with pytest.raises(MissingOnMachine) as refused:
        refuse_missing([missing, warning, good, MachineCheck("d", "none", (PROBLEM,))])
    assert refused.value.problems == (replace(PROBLEM, code=ExitCode.ENVIRONMENT),) * 3
    assert isinstance(refused.value, MachineError)
    assert isinstance(refused.value, InputError)
