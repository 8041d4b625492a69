"""What is proposed in the place of a word that is none of those there are, and what says that a disk is full."""

import errno

import duckdb
import pytest

from streamgauge.core.errors import Rule, broken, first_broken, is_full, near, nearest


@pytest.mark.parametrize(
    ("word", "meant"),
    [("paked", "packed"), ("PACKED", "packed"), ("streamstream", "stream_stream"), ("?", None), (3, None), ("", None)],
)
def test_the_word_that_was_meant_is_proposed(word: object, meant: str | None) -> None:
    """In whatever case it was written; where nothing is like it, the first choice."""
    choices = ("stream_stream", "packed")
    assert near(word, choices) == meant
    assert nearest(word, choices) == (meant or "stream_stream")


def test_a_name_comes_back_as_it_is_written() -> None:
    """Case is passed over in comparing alone."""
    assert near("spark.sql.ansi.enabeld", ["spark.sql.ANSI.enabled"]) == "spark.sql.ANSI.enabled"


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
