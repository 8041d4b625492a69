"""Figures of a comparison, its refusals, and results of searches."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from streamgauge.config.experiment import build
from streamgauge.core.errors import InputError
from streamgauge.results.comparison import Comparison
from streamgauge.results.search import SearchResult, TrialSummary
from streamgauge.studies.compare.compare import compare

Make = Callable[..., Path]
Three = Callable[..., str]
RULES = ["rate -60%", "p50 +60%", "cpu +60%", "wrong_answers +0"]


def asked(**values: Any) -> dict[str, Any]:
    """What a run keeps of its question."""
    return build({"workload": "identity", **values}).model_dump(mode="json")


def figure(comparison: Comparison, name: str) -> Any:
    """A `Difference`, whose ends may be None."""
    return next(one for one in comparison.figures if one.name == name)


def refused(*arguments: Any, **options: Any) -> str:
    with pytest.raises(InputError) as refusal:
        compare(*arguments, **options)
    return str(refusal.value)


def search(
    make_run: Make,
    name: str,
    seed: int,
    sustained: float | None,
    confirmed: bool = True,
    high_verdict: Any = "not_sustained",
    refused: float | None = None,
) -> Path:
    trial = TrialSummary(number=2, purpose="confirm", offered_per_s=sustained, verdict="sustained")
    result = SearchResult(
        sustained_per_s=sustained, low=sustained, high=sustained and 1.05 * sustained, high_verdict=high_verdict,
        relative_width=0.05, confirmed=confirmed, trials=(trial,), sentence="said so",
        **({} if refused is None else {"refused_per_s": refused}),
    )  # fmt: skip
    return make_run(name, seed, search=result)


ends = st.floats(-0.9, 2)
