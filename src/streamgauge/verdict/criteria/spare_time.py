"""Shows that nothing accumulates by the time that batches leave over, where a slope leaves it undecided.

An engine in batches that takes all that waits at the start of each, and then waits for the next, has emptied its queue.
If its batches need clearly less time than they cover, the backlog cannot grow for good. Where windows close in some
batches only, their lengths vary so much that the slope of the backlog shows this after minutes; the share of the time
that batches need shows it after half a minute.

The share is sum(busy) / sum(covered), from the times of deliveries and commits: busy from the end of a batch in event
time to its commit, and on to the end of the next batch if that came later than the interval. So it is near 1 for
batches back to back, and above it if events are left waiting: the rule says nothing about engines without spare time.

It turns undecided into ok only, never a proven growth, and only at a constant rate: a late peak counts little in the
mean. An engine that slows down in the span has a wide interval. If it slows down so little that the interval stays
narrow, the growth of the share counts: batches must not fill the time in three times the span.
"""

from __future__ import annotations

import math

from streamgauge.results.causes import Cause
from streamgauge.results.verdict import Check
from streamgauge.verdict.evidence import Evidence

BATCH_SHARE_MAX = 0.97
"""Largest share of the time that batches may need. A backlog that grows by 1 % of the rate needs 1.01."""
SPANS_MORE, FULL_SHARE = 2.0, 1.0
"""After so many more spans of the same growth, batches must not need more than this share."""


def decide_by_spare_time(check: Check, about: str, evidence: Evidence) -> Check:
    """The check of a trend about some sinks: ok if it is undecided and the batches leave time over."""
    works = [one for one in evidence.work if one.about == about]
    if check.code != Cause.TREND_UNDECIDED or len(works) != 1 or not evidence.steady:
        return check
    share, later = works[0].needed_share, works[0].share_after(SPANS_MORE)
    if share is None or later is None or share.high > BATCH_SHARE_MAX or later > FULL_SHARE:
        return check
    sentence = (
        f"{check.sentence}; but batches take all that waits and need {share.estimate:.0%} of the time (at most "
        f"{share.high:.0%}, limit {BATCH_SHARE_MAX:.0%}), so nothing accumulates"
    )
    return check.model_copy(update={"state": "ok", "code": Cause.OK, "ok": True, "sentence": sentence})


def may_decide(evidence: Evidence, longest: float) -> bool:
    """Whether a span `longest` times as long may show that every query leaves time over.

    Intervals narrow by the root of the length.
    """
    shares = [work.needed_share for work in evidence.work]
    known = [share for share in shares if share is not None]
    return 0 < len(known) == len(shares) and all(
        share.estimate + share.half_width / math.sqrt(longest) <= BATCH_SHARE_MAX for share in known
    )
