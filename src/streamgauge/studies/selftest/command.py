"""`selftest`: checks the instrument on this machine, with a synthetic engine of known capacity and known faults.

    a  a consumer of known capacity is found within 2 %, reading on continuously, in micro-batches with windows, and in
       batches that end early or late at random; at 3 % above and below it the verdicts are right
    b  a stall shows in event-time latency, and not in latency counted from the delivery; an engine that gets slower and
       slower is seen before anything waits
    c  events, and results of windows, that are dropped, doubled, altered, delivered late or invented on the way to the
       recorder are counted exactly; a search ends where answers are wrong, and names no rate
    d  a generator that cannot keep the plan makes a trial invalid
    e  a clock that lies makes a trial invalid
    f  the same seed gives the same input, byte for byte, another seed another

The proofs stand in `studies.selftest.checks`; here they are chosen, timed and told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from streamgauge.core.errors import InputError, Interrupted, Problem, StreamgaugeError
from streamgauge.studies.selftest import checks
from streamgauge.studies.selftest.checks import FULL, QUICK, CheckResult, Mode, Rows, Sizes
from streamgauge.studies.selftest.testbed import SILENT, View

ROWS: tuple[Rows, ...] = ("events", "windows")
MODES: tuple[Mode, ...] = ("continuous", "windows", "jitter")


@dataclass(frozen=True)
class Item:
    """One proof: what was found (`value`) and what it is held against (`limit`), as a sentence too."""

    item: str
    title: str
    ok: bool
    value: float | None
    limit: float | None
    sentence: str
    seconds: float


def _by_letter(sizes: Sizes, view: View) -> dict[str, list[Callable[[], Iterator[CheckResult]]]]:
    """Letter to its proofs."""

    def one(proof: Callable[[], CheckResult]) -> Callable[[], Iterator[CheckResult]]:
        return lambda: iter([proof()])

    return {
        "a": [partial(checks.capacity, mode, sizes, view=view) for mode in MODES],
        "b": [one(lambda: checks.stall(sizes, view=view)), one(lambda: checks.degradation(sizes, view=view))],
        "c": [
            *(one(partial(checks.fault, kind, sizes, of=of, view=view)) for of in ROWS for kind in checks.FAULTS),
            one(lambda: checks.search_with_wrong_answers(sizes, view=view)),
        ],
        "d": [one(lambda: checks.generator(sizes, view=view))],
        "e": [one(lambda: checks.clock(sizes, view=view))],
        "f": [one(lambda: checks.seed(sizes))],
    }


def letters(text: str | None) -> tuple[str, ...]:
    """`a,c` as the items asked for; all where None. InputError for one there is not."""
    available = tuple("abcdef")
    if text is None:
        return available
    requested = tuple(part.strip() for part in text.split(","))
    unknown = [part for part in requested if part not in available]
    if unknown:
        raise InputError(Problem("--only", f"must be of {', '.join(available)}", ",".join(unknown), "--only a,c"))
    return tuple(letter for letter in available if letter in requested)


def selftest(quick: bool = False, only: str | None = None, view: View = SILENT) -> list[Item]:
    """Every proof asked for, in order; one that crashes on purpose is one that failed. `view` hears of all of it."""
    requested = letters(only)
    by_letter = _by_letter(QUICK if quick else FULL, replace(view, line=lambda text: view.line(f"  {text}")))
    items: list[Item] = []
    for letter in requested:
        for proof in by_letter[letter]:
            for item in _timed_items(letter, proof):
                view.line(line(item))
                items.append(item)
    return items


def _timed_items(letter: str, proof: Callable[[], Iterator[CheckResult]]) -> Iterator[Item]:
    began = time.monotonic()
    try:
        for made in proof():
            yield Item(letter, **asdict(made), seconds=round(time.monotonic() - began, 1))
            began = time.monotonic()
    except (Interrupted, InputError):
        raise
    except StreamgaugeError as error:
        seconds = round(time.monotonic() - began, 1)
        yield Item(letter, "the proof could not be made", False, None, None, str(error), seconds)


def line(item: Item) -> str:
    """An item as one line for people."""
    return f"{'holds' if item.ok else 'FAILS'}  {item.item}  {item.title}: {item.sentence}  [{item.seconds:.0f} s]"


def as_json(items: Sequence[Item], quick: bool) -> dict[str, Any]:
    """All items as plain data, with what they hold for: this machine, now."""
    from streamgauge.system.machine import environment

    return {
        "ok": all(item.ok for item in items),
        "quick": quick,
        "seconds": round(sum(item.seconds for item in items), 1),
        "environment": environment(),
        "items": [asdict(item) for item in items],
    }
