"""results/codes.py: every code can be reached, and none is written twice."""

import re
from pathlib import Path

import pytest

import streamgauge
from streamgauge.results.codes import Cause, Detail, SearchEnd, WarningCode
from streamgauge.results.text.sentences import DETAILS

SOURCE = "\n".join(path.read_text() for path in Path(str(streamgauge.__file__)).parent.rglob("*.py"))


@pytest.mark.parametrize("codes", [Cause, SearchEnd, WarningCode])
def test_every_code_is_given_somewhere(codes: type[Cause | SearchEnd | WarningCode]) -> None:
    """A code that nothing gives is no contract; tests/unit/verdict/test_verdict.py shows those of checks to be
    reached.
    """
    assert {code.name for code in codes} == set(re.findall(rf"\b{codes.__name__}\.([A-Z_]+)\b", SOURCE))
    assert all(code.meaning and str(code) == code.value for code in codes)


def test_a_detail_is_no_cause_and_has_words_of_its_own() -> None:
    """Both are codes of a remark, so equal ones could not be told apart."""
    assert set(DETAILS) == set(Detail)
    assert not set(Detail) & set(Cause)
