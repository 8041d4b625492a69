"""The observers of results and findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from streamgauge.artifacts.run_folder import RunFolder, StudyResult

FlowNodes = Sequence[Mapping[str, Any]]
"""A flow in the form of `dataflow.describe.describe`."""
OnResult = Callable[[RunFolder, FlowNodes], object]
"""Called with each run folder after its result was written, and with its flow."""
OnStudy = Callable[[StudyResult], object]
"""Called with a study's findings so far, after they were written to its folder."""


def ignore(*_: object) -> None:
    """The observer that does nothing."""
