"""Word Count: worked by hand, edge rows included, and against plain Python."""

from collections.abc import Sequence

from tests.unit.workloads.helpers_cuts import answered, flow_of, table


def counts(lines: Sequence[str | None]) -> dict[str, int]:
    """The last count of each word, where the n-th line has event time and id n."""
    results = answered(flow_of("word_count"), {"sentences": table([(line,) for line in lines], text="string")})
    rows = results.sort_by([("event_time", "ascending"), ("count", "ascending")]).to_pylist()
    return {row["word"]: row["count"] for row in rows}


def test_worked_by_hand() -> None:
    """Case tells no words apart; an underscore is of a word, a hyphen is not; lines without a word give nothing."""
    assert counts(["The cow jumped over the moon", "", None, "  ...!  ", "the_end: the-end THE", "Zoë 42 4_2"]) == {
        "the": 4, "cow": 1, "jumped": 1, "over": 1, "moon": 1, "the_end": 1, "end": 1, "zo": 1, "42": 1, "4_2": 1,
    }  # fmt: skip


def test_letters_of_other_alphabets_are_of_no_word() -> None:
    """Not even those whose lower case is one of ours: engines differ in them (`lower('İ')` has two characters on Spark
    and one in DuckDB), and the sign of kelvin is no k.
    """
    assert counts(["İstanbul'da İYİ", "273 \u212aelvin", "STRASSE Straße"]) == {
        "stanbul": 1, "da": 1, "y": 1, "273": 1, "elvin": 1, "strasse": 1, "stra": 1, "e": 1,
    }  # fmt: skip
