"""`selftest`: checks the instrument on this machine, with a synthetic engine of known capacity and known faults.

    a  the capacity of a consumer is found within 2 %, whether it reads continuously, in micro-batches with windows, or
       in batches of random length; at 3 % above and below the capacity the verdicts are right
    b  a stall shows in event-time latency, and not in latency counted from the delivery; an engine whose batches get
       longer is detected before a backlog forms
    c  events, and results of windows, that are dropped, doubled, altered, delayed or invented on the way to the
       recorder are counted exactly; a search ends where answers are wrong, and gives no rate
    d  a generator that cannot keep the plan makes a trial invalid
    e  a wrong clock makes a trial invalid
    f  one seed always gives the same input, byte for byte; another seed gives another

The checks are in `studies.selftest.checks`. This module selects them, times them and prints their results.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from streamgauge.core.errors import InputError, Interrupted, StreamgaugeError, require
from streamgauge.studies.selftest import checks
from streamgauge.studies.selftest.checks import FULL, QUICK, CheckResult, Mode, Rows, Sizes
from streamgauge.studies.selftest.testbed import SILENT, View

ROWS: tuple[Rows, ...] = ("events", "windows")
MODES: tuple[Mode, ...] = ("continuous", "windows", "jitter")


def _by_letter(sizes: Sizes, view: View) -> dict[str, list[Callable[[], Iterator[CheckResult]]]]:
    """Letter to its checks."""

    def one(check: Callable[..., CheckResult], *more: Any, **options: Any) -> Callable[[], Iterator[CheckResult]]:
        return lambda: iter([check(*more, sizes, view=view, **options)])

    faults = [one(checks.fault, kind, of=of) for of in ROWS for kind in checks.FAULTS]
    return {
        "a": [partial(checks.capacity, mode, sizes, view=view) for mode in MODES],
        "b": [one(checks.stall), one(checks.degradation)],
        "c": [*faults, one(checks.search_with_wrong_answers)],
        "d": [one(checks.generator)],
        "e": [one(checks.clock)],
        "f": [lambda: iter([checks.seed(sizes)])],
    }


def letters(text: str | None) -> tuple[str, ...]:
    """The letters of `a,c`; all for None. Raises InputError for an unknown letter."""
    available = tuple("abcdef")
    requested = available if text is None else tuple(part.strip() for part in text.split(","))
    unknown = [part for part in requested if part not in available]
    require(not unknown, "--only", f"must be of {', '.join(available)}", ",".join(unknown), "--only a,c")
    return tuple(letter for letter in available if letter in requested)


def selftest(quick: bool = False, only: str | None = None, view: View = SILENT) -> list[CheckResult]:
    """Runs the requested checks in order and shows them in `view`. A check that raises a known error has failed."""
    requested = letters(only)
    by_letter = _by_letter(QUICK if quick else FULL, replace(view, line=lambda text: view.line(f"  {text}")))
    items: list[CheckResult] = []
    for letter in requested:
        for check in by_letter[letter]:
            for item in _timed_items(letter, check):
                view.item(
                    f"{'holds' if item.ok else 'FAILS'}  {item.item}  {item.title}: {item.sentence}  "
                    f"[{item.seconds:.0f} s]"
                )
                items.append(item)
    return items


def _timed_items(letter: str, check: Callable[[], Iterator[CheckResult]]) -> Iterator[CheckResult]:
    began = time.monotonic()
    try:
        for result in check():
            yield replace(result, item=letter, seconds=round(time.monotonic() - began, 1))
            began = time.monotonic()
    except (Interrupted, InputError):
        raise
    except StreamgaugeError as error:
        seconds = round(time.monotonic() - began, 1)
        yield CheckResult("the check could not run", False, None, None, str(error), letter, seconds)


def as_json(items: Sequence[CheckResult], quick: bool) -> dict[str, Any]:
    """All items as plain data, with the environment, because they hold for this machine at this time only."""
    from streamgauge.system.machine import environment

    return {
        "ok": all(item.ok for item in items),
        "quick": quick,
        "seconds": round(sum(item.seconds for item in items), 1),
        "environment": environment(),
        "items": [asdict(item) for item in items],
    }
