"""How tests look at a refusal."""

from collections.abc import Callable
from typing import Any

import pytest

from streamgauge.core.errors import InputError, Problem


def problem_of(function: Callable[..., Any], *arguments: Any, **options: Any) -> Problem:
    """The one problem with which a call is refused."""
    with pytest.raises(InputError) as refused:
        function(*arguments, **options)
    (problem,) = refused.value.problems
    return problem


def assert_refused(pattern: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """A call is refused in words that the pattern matches."""
    with pytest.raises(InputError, match=pattern):
        function(*arguments, **options)
