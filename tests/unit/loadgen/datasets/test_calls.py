"""Calls: who calls whom how often and how long."""

import numpy as np
import pytest

from streamgauge.loadgen.datasets.calls import LONGEST_S, PITCH_S, TALK_S, Called, Caller, Duration, Established
from streamgauge.loadgen.fields import FieldSpec
from streamgauge.loadgen.random import PhiloxBits

BITS = PhiloxBits(seed=1, stream=0, partition=0, field=0)
CALLER = Caller("calling", 500, 20, 0.25)
CALLED, DURATION = Called("called", CALLER, 0, 8, 0.5), Duration("duration", CALLER, 0)
FIELDS: list[FieldSpec] = [CALLER, CALLED, DURATION, Established("established", 0.25)]
CALLS = 40_000


def column(field: FieldSpec, calls: int = CALLS) -> np.ndarray:
    """A field as its stream makes it, each with lanes of its own."""
    return np.asarray(field.column(PhiloxBits(1, 0, 0, FIELDS.index(field)), 0, calls))


def test_who_calls() -> None:
    """A quarter of the calls is telemarketers', who are alike; of subscribers the first calls twice as often."""
    calls = np.bincount(column(CALLER), minlength=520)
    sellers = calls[500:]
    assert len(calls) == 520
    assert sellers.sum() / CALLS == pytest.approx(0.25, abs=0.01)
    assert sellers.min() > 0.8 * sellers.mean()
    assert calls[0] / calls[1] == pytest.approx(2, rel=0.1)


def test_who_is_called() -> None:
    """Nobody by itself, no telemarketer by anyone; telemarketers call everybody, subscribers half of the time their
    eight contacts, the nearest most."""
    calling, called = column(CALLER), column(CALLED)
    assert not (calling == called).any()
    assert called.min() == 0
    assert called.max() == 499
    selling = calling >= 500
    assert len(np.unique(called[selling])) == 500
    far = (called - calling)[~selling] % 500
    assert np.mean(np.isin(far, [1, 2, 3, 4, 496, 497, 498, 499])) == pytest.approx(0.5 + 0.5 * 8 / 499, abs=0.02)
    assert np.mean(far == 1) > 1.5 * np.mean(far == 499) > 1.5 * 1.2 * np.mean(far == 2)


def test_who_calls_often_is_called_often() -> None:
    """Or the ratio of calls made to calls received would tell subscribers apart."""
    calling = column(CALLER, 200_000)
    called = np.asarray(Called("called", CALLER, 0, 8, 0.0).column(PhiloxBits(1, 0, 0, 1), 0, 200_000))
    made = np.bincount(calling[calling < 500], minlength=500)[2:100]
    received = np.bincount(called[calling < 500], minlength=500)[2:100]
    assert np.mean(made / received < 2) > 0.95


def test_how_long() -> None:
    """Telemarketers are brief; hardly anyone else is so."""
    calling, duration = column(CALLER), column(DURATION)
    selling = calling >= 500
    assert duration[selling].mean() == pytest.approx(PITCH_S - 0.5, rel=0.05)
    assert duration[~selling].mean() == pytest.approx(TALK_S - 0.5, rel=0.05)
    assert np.mean(duration[~selling] < 2 * PITCH_S) < 0.01
    assert duration.min() >= 0
    assert duration.max() < LONGEST_S


def test_how_many_are_answered() -> None:
    """Three quarters; all where none fails."""
    answered = column(FIELDS[3])
    assert set(answered.tolist()) == {0, 1}
    assert answered.mean() == pytest.approx(0.75, abs=0.01)
    assert np.asarray(Established("established", 0.0).column(BITS, 0, 1000)).all()


def test_the_smallest_network() -> None:
    """Two people, each of whom can only call the other."""
    two = Caller("calling", 2, 1, 0.0)
    calling = np.asarray(two.column(BITS, 0, 1000))
    called = np.asarray(Called("called", two, 0, 1, 0.5).column(PhiloxBits(1, 0, 0, 1), 0, 1000))
    assert (calling + called == 1).all()
