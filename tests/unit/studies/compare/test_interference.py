"""studies/compare/comparability.py: beside busy neighbours, or on another machine, only a gate on wrong answers is
decided.
"""

import pytest

from streamgauge.core.exit_codes import ExitCode
from streamgauge.results.codes import WarningCode
from streamgauge.studies.compare.compare import compare
from tests.unit.studies.compare.helpers_compare import RULES, Make, Three

UNDECIDED = ["unknown", "unknown", "unknown", "passed"]


@pytest.mark.parametrize("busy", ["A", "B"])
def test_busy_neighbours_of_one_run_decide_no_gate(make_run: Make, busy: str) -> None:
    """On either side: a warning names the side and the run, and what they used; the gate's reason names the run."""
    warned = ("something else", "background processes used 95% of the machine")
    codes = (WarningCode.SHARED_CORES, WarningCode.BACKGROUND_LOAD)
    sides = {
        side: ",".join(
            str(
                make_run(
                    f"{side}-{n}",
                    10 * ord(side) + n,
                    warnings=warned if (side, n) == (busy, 2) else warned[:1],
                    warning_codes=codes if (side, n) == (busy, 2) else codes[:1],
                )
            )
            for n in range(3)
        )
        for side in "AB"
    }
    comparison = compare(sides["A"], sides["B"], RULES)
    assert [gate.state for gate in comparison.gates] == UNDECIDED
    assert all(f"{busy}-2" in gate.sentence for gate in comparison.gates[:3])
    (reported,) = [warning for warning in comparison.warnings if "background processes" in warning]
    assert reported.startswith(f"{busy}: {busy}-2: background processes used 95% of the machine")


def test_quiet_neighbours_are_no_warning(three: Three) -> None:
    """What others used below the rule of a verdict is in every run."""
    comparison = compare(three("a", 10, others_cpu_percent=5.0), three("b", 20, others_cpu_percent=9.0), RULES)
    assert comparison.exit_code == ExitCode.HOLDS
    assert not any("background processes" in warning for warning in comparison.warnings)


@pytest.mark.parametrize(
    ("of_b_us", "message"), [(1200.0, "20% longer for B"), (1100.0, ""), (900.0, ""), (800.0, "20% less for B")]
)
def test_a_machine_of_another_speed_decides_no_gate(three: Three, of_b_us: float, message: str) -> None:
    """Whichever side it was slower on: what differs by as much may be its doing, and that is warned of."""
    a, b = three("a", 10, reference_work_us=1000.0), three("b", 20, reference_work_us=of_b_us)
    comparison = compare(a, b, RULES)
    assert [gate.state for gate in comparison.gates] == (UNDECIDED if message else ["passed"] * 4)
    warned = [each for each in comparison.warnings if "the machine's speed differed" in each]
    assert [f"the reference work took {message}" in each for each in warned] == [True] * bool(message)
