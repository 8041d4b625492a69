"""What is proposed in the place of a word that is none of those there are, and what says that a disk is full."""

import errno
from typing import Annotated, Literal

import duckdb
import pytest
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from streamgauge.core.errors import Rule, broken, faults_of, first_broken, is_full, near, nearest, problems_of
from streamgauge.core.units import parse_duration


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("paked", "packed"),
        ("PACKED", "packed"),
        ("spark.sql.ansi.enabeld", "spark.sql.ANSI.enabled"),
        ("streamstream", "stream_stream"),
        ("?", None),
        (3, None),
        ("", None),
    ],
)
def test_the_word_that_was_meant_is_proposed(word: object, meant: str | None) -> None:
    """In whatever case it was written; where nothing is like it, the first choice."""
    choices = ("stream_stream", "packed", "spark.sql.ANSI.enabled")
    assert near(word, choices) == meant
    assert nearest(word, choices) == (meant or "stream_stream")


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (OSError(errno.ENOSPC, "as the system says it"), True), (OSError(errno.EDQUOT, "quota"), True),
        (duckdb.IOException('Could not write file "a": No space left on device'), True),
        (OSError(errno.EACCES, "not yours"), False), (duckdb.IOException("broken"), False),
    ],
)  # fmt: skip
def test_a_full_disk_is_known_by_its_number_or_its_words(error: Exception, full: bool) -> None:
    """The system gives a number, DuckDB words alone."""
    assert is_full(error) is full


def test_only_broken_rules_are_problems() -> None:
    """All of them, or the first where others follow from it."""
    rules = [Rule(holds, name, "must hold", holds, "try") for name, holds in (("a", 1), ("b", 0), ("c", None))]
    assert [problem.setting for problem in broken(*rules)] == ["b", "c"]
    assert [problem.setting for problem in first_broken(*rules)] == ["b"]


class Model(BaseModel):
    """A value of each kind that is refused."""

    model_config = ConfigDict(extra="forbid")

    share: Annotated[int, Field(ge=1, lt=100)] = 1
    mode: Literal["append", "update"] = "append"
    every: Annotated[float, BeforeValidator(parse_duration)] = 1.0
    name: str


def test_each_fault_is_one_problem_in_the_words_that_are_passed_in() -> None:
    """A rule names both bounds; the validator's own problem keeps its rule, and offers its way out."""
    with pytest.raises(ValidationError) as refused:
        Model.model_validate({"share": 500, "mode": "upsert", "every": "soon", "extra": {"a": 1}})
    faults = faults_of(refused.value, Model.model_fields)
    made = problems_of(
        faults, lambda fault: f"set {fault.name}", lambda fault: ("is unknown", "leave it out"),
        lambda fault, offered: offered or f"{fault.kind} {fault.choices}", {"string_type": "unused"},
    )  # fmt: skip
    assert [(one.setting, one.got, one.way_out) for one in made] == [
        ("set share", 500, "less_than ()"), ("set mode", "upsert", "literal_error ('append', 'update')"),
        ("set every", "soon", "--duration 60s"), ("set name", None, "missing ()"),
        ("set extra", "a table of a", "leave it out"),
    ]  # fmt: skip
    rules = [one.rule for one in made]
    assert (rules[0], rules[-1]) == ("must be at least 1 and below 100", "is unknown")
    (other,) = problems_of(faults[:1], str, lambda _: ("", ""), lambda *_: "", {"less_than": "must be small"})
    assert other.rule == "must be small"
