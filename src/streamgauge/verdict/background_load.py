"""What else used the machine: when background load or a changed speed may explain a slow trial.

A separate module because verdicts, results and comparisons ask it.
"""

from __future__ import annotations

from streamgauge.results.verdict import BackgroundLoad

BACKGROUND_SHARE_MAX = 0.1
"""Mean share of the CPU. Above it, background processes may be the cause of a slow trial."""
MACHINE_SHARE_MAX = 0.15
"""Relative difference of the reference work. Above it, the machine's own speed has changed."""
BACKGROUND_BURST_S, BACKGROUND_BURST_SHARE_MAX = 5.0, 0.5
"""A burst of this length and share may also be the cause, because batches queue up. CPU time stolen from a virtual
machine counts as background load; it was 8 % in such bursts, which must not count."""


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
