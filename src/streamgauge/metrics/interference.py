"""What disturbed the machine during a trial: background load, and a change of the machine's own speed; with limits."""

from itertools import pairwise

import numpy as np

from streamgauge.core.clock import US
from streamgauge.metrics.trial_record import TrialRecord, is_measured
from streamgauge.results.verdict import BackgroundLoad
from streamgauge.system.machine import machine_percent

BACKGROUND_SHARE_MAX = 0.1
"""Mean share of the CPU. Above it, background processes may be the cause of a slow trial."""
MACHINE_SHARE_MAX = 0.15
"""Relative difference of the reference work. Above it, the machine's own speed has changed."""
BACKGROUND_BURST_S, BACKGROUND_BURST_SHARE_MAX = 5.0, 0.5
"""A burst of this length and share may also be the cause, because batches queue up. CPU time stolen from a virtual
machine counts as background load; it was 8 % in such bursts, which must not count."""
SLOWED_SAMPLES_MIN = 5
"""So many of the reference work in a third of the span, before the thirds are compared."""


def machine_speed_differs(one_us: float, other_us: float) -> bool:
    """Whether the machine's speed changed, by two times of the same reference work."""
    fast_us, slow_us = sorted((one_us, other_us))
    return slow_us > fast_us * (1 + MACHINE_SHARE_MAX)


def background_load(share: float, burst_share: float) -> BackgroundLoad | None:
    """The CPU used by background processes, if beyond a limit; None within the limits."""
    if share > BACKGROUND_SHARE_MAX:
        return BackgroundLoad(share, BACKGROUND_SHARE_MAX)
    if burst_share > BACKGROUND_BURST_SHARE_MAX:
        return BackgroundLoad(burst_share, BACKGROUND_BURST_SHARE_MAX, BACKGROUND_BURST_S)
    return None


def background_percent(record: TrialRecord) -> float | None:
    """Mean CPU over the measured span of all processes except driver, broker and SUT; 100 is one core."""
    inside = _inside(record, record.trial_log.background)
    return float(np.mean(inside)) if inside else None


def background_share(record: TrialRecord) -> float:
    """The same as a share of the machine; 0 if unknown.

    Of a trial that ended before its measured span, the mean since its start.
    """
    percent = background_percent(record)
    if percent is None and record.trial_log.background:
        percent = float(np.mean([cpu for _, cpu in record.trial_log.background]))
    return (percent or 0.0) / machine_percent()


def background_burst_share(record: TrialRecord) -> float:
    """The largest share of the machine that background processes used for `BACKGROUND_BURST_S` in a row; 0 if shorter.

    A sample covers the time since the one before. Samples come a second apart, so half a second may be missing.
    """
    known = [(when, (when - before) / US, cpu) for (before, _), (when, cpu) in pairwise(record.trial_log.background)]
    inside = [one for one in known if is_measured(record, one[0])] or known
    bursts = (_first_seconds(inside[place:], BACKGROUND_BURST_S - 0.5) for place in range(len(inside)))
    return max(bursts, default=0.0) / machine_percent()


def _first_seconds(samples: list[tuple[int, float, float]], least_s: float) -> float:
    """Mean percent of the first samples (when, seconds, percent) that together last `least_s`; 0 if all are shorter."""
    lasted_s = used = 0.0
    for _, seconds, percent in samples:
        lasted_s, used = lasted_s + seconds, used + seconds * percent
        if lasted_s >= least_s:
            return used / lasted_s
    return 0.0


def reference_work_us(record: TrialRecord) -> float | None:
    """Median CPU time of the reference work over the measured span; None without samples."""
    inside = _inside(record, record.trial_log.reference_work)
    return float(np.median(inside)) if inside else None


def slowed_by(record: TrialRecord) -> float:
    """How much longer the reference work took in the last third of the measured span than in the first, as a share."""
    inside = _inside(record, record.trial_log.reference_work)
    third = len(inside) // 3
    return float(np.median(inside[-third:]) / np.median(inside[:third])) - 1 if third >= SLOWED_SAMPLES_MIN else 0.0


def _inside(record: TrialRecord, samples: list[tuple[int, float]]) -> list[float]:
    return [value for when, value in samples if is_measured(record, when)]
