"""The check `connected`: the SUT gives results, none of its processes died, no read was aborted, no task retried."""

from __future__ import annotations

from streamgauge.results.causes import Cause
from streamgauge.results.verdict import Check
from streamgauge.verdict.criteria.check_spec import CheckSpec, Condition, combine, make_check
from streamgauge.verdict.evidence import Evidence


def _connected(evidence: Evidence) -> Check:
    reason = f": {evidence.sut_reason}" if evidence.sut_reason else ""
    died = Cause.DISK_FULL if evidence.sut_disk_full else Cause.SUT_DIED
    unit, sentence = "deaths", f"a process of the system under test died or does not answer{reason}"
    if evidence.sut_rejected:
        died, unit, sentence = Cause.NO_RESULTS, "rejected programs", evidence.sut_reason
    aborted = "reads of the system under test were aborted"
    retried = "tasks of the system under test were retried"
    parts = [
        Condition(evidence.sut_alive, died, 1, 0, unit, sentence),
        _no_faults(evidence.aborted_reads, Cause.READS_ABORTED, "aborted reads", aborted),
        _no_faults(evidence.retried_tasks, Cause.TASKS_RETRIED, "retried tasks", retried),
    ]
    if all(part.holds for part in parts):
        sentence = "no process died, no read was aborted, no task was retried"
        return make_check("connected", "ok", Cause.OK, 0, 0, "faults", sentence)
    return combine("connected", parts, "failed", shown=1)


def _no_faults(n: int, code: Cause, unit: str, what: str) -> Condition:
    return Condition(n == 0, code, n, 0, unit, f"{n} {what}")


CHECK = CheckSpec(
    "connected",
    _connected,
    "read the log that is named there, or else those in engine/ of the run folder, before you try another rate",
    by_slowness=False,
    advice_by_code={
        Cause.NO_RESULTS: "correct the program or its file, as the sentence says; what it printed: engine/program.log "
        "of the run folder"
    },
)
