"""Spark's own last reason, out of the stack that it comes in."""

from __future__ import annotations

import pytest

from streamgauge.engines.spark.error_message import error_message

STACK = """
[STREAM_FAILED] Query q0 terminated with exception: Job aborted
=== Streaming Query ===
Identifier: q0
Caused by: org.apache.spark.SparkException: Task failed
    at org.apache.spark.Scheduler.run(Scheduler.scala:1)
pyarrow.lib.ArrowInvalid: passed over, it is no error by its name
java.io.IOException: No space left on device
    at java.io.FileOutputStream.write(Native Method)
"""


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (STACK, "[STREAM_FAILED] Query q0 terminated with exception: Job aborted\n"
                "java.io.IOException: No space left on device"),
        ("first\n\n  Caused by: the last one\n", "first\nCaused by: the last one"),
        ("ValueError: wrong", "ValueError: wrong"),
        ("one\ntwo\nthree", "one\ntwo"),
        ("", "the engine gave no reason"),
        ("x" * 400, "x" * 300),
    ],
)  # fmt: skip
def test_a_reason_is_what_was_said_and_its_last_cause(said: str, reason: str) -> None:
    """One or two lines, each once and not too long; where no cause is named, what was said first."""
    assert error_message(said) == reason
