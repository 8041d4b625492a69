"""What an engine reports about a batch."""

import pytest

from streamgauge.core.engine_reports import BatchProgress


def test_steps_have_names_of_columns() -> None:
    """Whatever an engine calls its steps; but each must have a column of its own, beside that of the whole batch."""
    BatchProgress("", 3, 1000, 2000, {"merge": 1, "write_out_2": 2})
    with pytest.raises(ValueError, match=r"batch 3: steps have names in .*; got addBatch, trigger, write out"):
        BatchProgress("", 3, 1000, 2000, {"merge": 1, "write out": 1, "trigger": 2, "addBatch": 2})
