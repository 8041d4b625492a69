"""The background load and the machine's own speed."""

from typing import Any

import pytest

from streamgauge.core.clock import US
from streamgauge.metrics import interference
from streamgauge.metrics.time_series import series_table

START = 1_700_000_000 * US


def test_what_others_used_is_of_the_measured_span(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mean, as a share of the machine too, and each second's own; not known is no 0 in the series."""
    record = make.story().record()
    assert (interference.background_percent(record), interference.background_share(record)) == (None, 0.0)
    record.trial_log.background = [(START + US, 400.0), (START + 6 * US, 100.0), (START + 7 * US, 60.0)]
    monkeypatch.setattr(interference, "machine_percent", lambda: 400.0)
    assert (interference.background_percent(record), interference.background_share(record)) == (80.0, 0.2)
    shown = series_table(record, None)["others_cpu_percent"].to_pylist()
    # The queue was full before the span began.
    record.trial_log.background = [(START + US, 400.0), (START + 2 * US, 200.0)]
    assert (interference.background_percent(record), interference.background_share(record)) == (None, 0.75)
    assert shown[:8] == [None, 400.0, None, None, None, None, 100.0, 60.0]


def test_the_machines_own_speed_is_of_the_measured_span(make: Any) -> None:
    """Its median there, each second's own, and whether the last third was slower than the first."""
    record = make.story().record()
    assert (interference.reference_work_us(record), interference.slowed_by(record)) == (None, 0.0)
    span = range(record.spans.measured_from_us, record.spans.measured_to_us, US // 2)
    record.trial_log.reference_work = [(START + US, 9000.0)] + [(when, 1000.0) for when in span]
    assert (interference.reference_work_us(record), interference.slowed_by(record)) == (1000.0, 0.0)
    assert series_table(record, None)["reference_work_us"].to_pylist()[1] == 9000.0
    third = len(span) // 3
    record.trial_log.reference_work = [(when, 1000.0 if n < third else 1300.0) for n, when in enumerate(span)]
    assert interference.slowed_by(record) == pytest.approx(0.3)


@pytest.mark.parametrize("apart_s", [1.0, 1.1])
def test_the_worst_seconds_beside_others_are_seen(make: Any, monkeypatch: pytest.MonkeyPatch, apart_s: float) -> None:
    """Both of two cores for some seconds of the span, whichever those are; seconds before the span do not count."""
    monkeypatch.setattr(interference, "machine_percent", lambda: 200.0)
    record = make.story().record()
    low, high = record.spans.measured_from_us, record.spans.measured_to_us
    assert interference.background_burst_share(record) == 0.0
    times = [low + round(n * apart_s * US) for n in range(-3, round((high - low) / US / apart_s))]

    def burst(first: int, samples: int) -> float:
        busy = times[first : first + samples]
        record.trial_log.background = [(when, 200.0 if when in busy else 0.0) for when in times]
        return interference.background_burst_share(record)

    assert burst(3 + 2, 3) == pytest.approx(0.6)
    assert burst(3 + 2, 1) == pytest.approx(0.2)
    assert burst(0, 3) == 0.0
    record.trial_log.background = [(when, 16.0) for when in times]  # denied to a virtual machine, all the time
    assert interference.background_burst_share(record) == pytest.approx(0.08)


@pytest.mark.parametrize(("other_us", "differs"), [(1149.0, False), (1151.0, True), (871.0, False), (868.0, True)])
def test_a_machine_that_takes_much_longer_for_the_same_work_is_another_one(other_us: float, differs: bool) -> None:
    """By more than 15 %, whichever of the two was slower."""
    assert interference.machine_speed_differs(1000.0, other_us) is differs
    assert interference.machine_speed_differs(other_us, 1000.0) is differs
