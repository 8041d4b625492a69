"""Stamped records: numbered through all partitions, due by the rate, as long as was asked."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from streamgauge.core.errors import InputError
from streamgauge.loadgen.datasets.timestamped_text import RECORD_BYTES_MIN, TimestampedText
from streamgauge.loadgen.random import PhiloxBits


def test_a_record_is_as_is_said() -> None:
    """Worked out by hand: at 1000/s the fourth record of the second of two partitions is number 7, 7 ms later."""
    (record,) = (
        TimestampedText("record", RECORD_BYTES_MIN, 1000.0)
        .of_events(PhiloxBits(1, 0, 1, 0), 3, 4, lambda: np.array([7]))
        .to_pylist()
    )
    assert record == "0000000007,000000007000,"


def test_partitions_share_the_numbers() -> None:
    """None comes twice, and none is left out."""
    field = TimestampedText("record", 40, 100.0)
    found = [
        text
        for part in (0, 1, 2)
        for text in field.of_events(PhiloxBits(1, 0, part, 0), 0, 5, partial(np.arange, part, 15, 3)).to_pylist()
    ]
    assert sorted(int(text[:10]) for text in found) == list(range(15))
    assert all(len(text) == 40 and text[24:].isalpha() for text in found)


def test_a_record_that_holds_less_is_refused() -> None:
    """Its number and its time must fit."""
    with pytest.raises(InputError, match="must be 24 to 65536 bytes"):
        TimestampedText("record", 23, 1.0)
