"""loadgen/replay/text.py: a text file is read by its first line and line by line, as data and as a sample alike."""

import codecs
import gzip
from pathlib import Path
from typing import Any

import pytest

from streamgauge.core.errors import Problem
from streamgauge.loadgen.replay import files
from streamgauge.loadgen.replay.files import Content, File, digest
from streamgauge.loadgen.replay.fit_sample import fit
from streamgauge.loadgen.replay.text import LeftOut, in_words
from tests.unit.helpers_refusals import problem_of
from tests.unit.loadgen.replay.test_files import written

ROW = "1,a\n"


def data(path: Path, **columns: str) -> Content:
    return files.content(File(str(path), digest(path), tuple(columns.items())))


def both_problems(path: Path) -> list[Problem]:
    """As data, and as a sample."""
    return [problem_of(data, path, u="int", town="string"), problem_of(fit, path, "timestamp")]


def test_a_sample_is_fitted_to_all_rows_after_the_line_of_names(tmp_path: Path) -> None:
    """However regular some last lines are that are no rows: those are left out, and said."""
    sample = fit(written(tmp_path, "a.csv", "u,town\n" + ROW * 300 + "1,a,3,4\n" * 3), "timestamp")
    assert [(field.name, field.sql_type) for field in sample.fields] == [("u", "bigint"), ("town", "string")]
    assert sample.notes[-1] == "3 lines are no rows, and are left out"


@pytest.mark.parametrize(("content", "rule", "got"), [
    (ROW * 30, "must begin with a line of names", "1, a, where 1 is a number"),
    ("\n" + ROW * 30, "must begin with a line of names", "an empty line"),
    ("u,u\n" + ROW * 30, "must name each column once", "a.csv, where u is there more than once"),
    ("u,town\n" + "1\n" * 3, "must hold some rows", "none; 3 lines are no rows, and are left out"),
])  # fmt: skip
def test_a_sample_without_a_line_of_names_or_rows_is_refused(tmp_path: Path, content: str, rule: str, got: str) -> None:
    """A row in its place would be names, and one name for two columns no name of either."""
    problem = problem_of(fit, written(tmp_path, "a.csv", content), "timestamp")
    assert (problem.rule, problem.got) == (rule, got)


def test_data_with_two_columns_of_a_name_that_is_needed_are_refused(tmp_path: Path) -> None:
    """Another name may be there twice."""
    path = written(tmp_path, "a.csv", "u,town,town\n1,a,b\n")
    assert data(path, u="int").columns["u"].to_pylist() == [1]
    assert "town is there more than once" in str(problem_of(data, path, town="string").got)


@pytest.mark.parametrize(("texts", "kind"), [
    (["1", "-7", ""], "bigint"), (["1.00", "2.50"], "double"), (["True", "False"], "boolean"),
    (["7", "007"], "string"), (["100", "1E2"], "string"), (["1.5", "1.50"], "string"), (["9" * 20], "string"),
    (["0.1234567890123456789"], "string"), (["1", "nan"], "string"), (["inf"], "string"), (["+1"], "string"),
    (["true", "True"], "string"),
    (["2026-01-31", "2026-01-31T12:00:00+02:00"], "timestamp"), (["31/01/2026"], "timestamp"), (["1", "x"], "string"),
    (["12:30:00"], "string"), (["", ""], "string"), (['"1"', "2"], "bigint"),
    (["3.11.4", "10-11-12"], "string"), (["2.1.0", "2.1.1"], "string"), (["13.02.2024 10:00"], "timestamp"),
])  # fmt: skip
def test_types_of_a_sample_are_those_of_all_its_values(tmp_path: Path, texts: list[str], kind: str) -> None:
    """The first type that keeps each of them: codes that differ stay different. Quotes change nothing."""
    content = "n;x\n" + "".join(f"1;{text}\n" for text in texts)
    assert [field.sql_type for field in fit(written(tmp_path, "a.csv", content), "timestamp").fields][1] == kind


def test_a_sample_says_how_it_took_codes_and_times(tmp_path: Path) -> None:
    """Why codes are texts, which of day and month was first, and what was assumed of a time."""
    rows = "code;day;at;zoned\n" + "007;03/04/2026;2026-01-31 24:00:00;2026-01-31 12:00+01\n" * 2
    notes = fit(written(tmp_path, "a.csv", rows), "timestamp").notes
    assert [note.split("; ")[1:] for note in notes] == [
        ["a text, because numbers would not keep texts such as 007"],
        ["read as month/day/year", "times without a zone are in UTC"],
        ["times without a zone are in UTC", "24:00 is 0:00 of the next day"],
        [],
    ]


def test_texts_of_json_are_read_as_those_of_csv(tmp_path: Path) -> None:
    """A number in quotes is a text; a time says which of day and month was first; long numbers say that they lose."""
    row = '{"code": "12", "day": "03-04-2026", "id": "123e4567-e89b-12d3-a456-426614174000", "n": 18446744073709551615}'
    sample = fit(written(tmp_path, "a.jsonl", f"{row}\n{row}\n"), "timestamp")
    assert [field.sql_type for field in sample.fields] == ["string", "timestamp", "string", "double"]
    assert "; read as month-day-year; " in sample.notes[1]
    assert sample.notes[3].endswith("; numbers of more than 15 digits are rounded")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.jsonl.gz", "a.csv"])
def test_a_byte_order_mark_is_no_content(tmp_path: Path, name: str) -> None:
    """Of lines, of an array, and of one line alone."""
    objects = ['{"u": 1, "town": "a"}', '{"u": 2, "town": "b"}']
    for count in (1, 2):
        lines = "\n".join(("u,town", "1,a", "2,b")[: count + 1] if name == "a.csv" else objects[:count])
        raw = codecs.BOM_UTF8 + (f"[{','.join(objects[:count])}]" if name == "a.json" else lines).encode()
        path = written(tmp_path, name, gzip.compress(raw) if name.endswith("gz") else raw)
        assert data(path, u="int", town="string").columns["u"].to_pylist() == [1, 2][:count]
        fields = fit(path, "timestamp").fields
        assert [(field.name, field.sql_type, field.nullable) for field in fields] == [
            ("u", "bigint", False), ("town", "string", False),
        ]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "got"), [
    ("a.csv.gz", lambda raw: raw[: len(raw) // 2], ""), ("a.csv.gz", lambda raw: raw + bytes(64), ""),
    ("a.csv.gz", gzip.compress, "a.csv.gz, which is compressed twice"),
    ("a.csv", lambda raw: raw, "a.csv, which is compressed without .gz or .zst in its name"),
])  # fmt: skip
def test_a_damaged_compressed_file_is_refused(tmp_path: Path, name: str, change: Any, got: str) -> None:
    """Cut off, padded, compressed twice or under a plain name; never taken for text in another encoding."""
    text = "u,town\n" + "".join(f"{n},{n * 7919 % 9973}\n" for n in range(50_000))
    for problem in both_problems(written(tmp_path, name, change(gzip.compress(text.encode())))):
        assert problem.rule == "must be readable"
        assert got in str(problem.got)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_text_in_utf_16_is_refused(tmp_path: Path, encoding: str) -> None:
    """With its mark, and without."""
    content = ("u,town\n" + ROW * 30).encode(encoding)
    for problem in both_problems(written(tmp_path, "a.csv", content)):
        assert problem.rule == "must be text in UTF-8"
    assert problem_of(data, written(tmp_path, "a.txt", content), line="string").rule == "must be text in UTF-8"


def test_a_binary_file_is_no_text(tmp_path: Path) -> None:
    """Whatever it is called; the way out names the tool that makes text of it, if it is one."""
    content = b"u,town\n" + bytes(range(128, 256)) * 40 + b"\n\xff\xfe\n\x00\x01\n"
    for problem in both_problems(written(tmp_path, "a.csv", content)):
        assert (problem.rule, problem.got) == ("must be text in UTF-8", "a.csv, where 3 of 4 lines are not")
        assert "iconv" in problem.way_out


def test_some_lines_in_another_encoding_are_left_out_and_called_so(tmp_path: Path) -> None:
    """As those of plain text are."""
    path = written(tmp_path, "a.csv", ("u,town\n" + ROW * 30 + "2,Köln\n" * 10 + "1,2,3\n").encode("latin-1"))
    left_out = data(path, u="int", town="string").left_out
    assert left_out == LeftOut(11, 10)
    assert in_words(left_out) == "11 lines are no rows, and are left out (10 for being no UTF-8)"
    assert in_words(left_out) in fit(path, "timestamp").notes
    assert in_words(LeftOut(1, 1)) == "1 line is no row, and is left out (all for being no UTF-8)"


@pytest.mark.parametrize("before", [30, 30_000])
def test_a_quote_that_is_not_closed_is_refused_by_its_line(tmp_path: Path, before: int) -> None:
    """Rather than dropping all that follows as one line, wherever it is."""
    for problem in both_problems(written(tmp_path, "a.csv", "u,town\n" + ROW * before + '2,"open\n' + ROW * 30)):
        assert problem.rule == "must close every quote"
        assert f"in whose line {before + 2:,} one begins" in str(problem.got)
        assert "Sniff" not in str(problem)


@pytest.mark.parametrize("content", ['[{"u": 1, "town": "a"},', '[{"u": 1, "town": "a"},\n{"u": 2, "town": "b"},\n\n'])
def test_an_array_that_was_cut_off_is_refused(tmp_path: Path, content: str) -> None:
    """Though a reader takes the objects that are there; one with space after its end is whole."""
    for problem in both_problems(written(tmp_path, "a.json", content)):
        assert (problem.rule, problem.got) == ("must be whole", "a.json, whose array is not closed")
    whole = written(tmp_path, "b.json", content.rstrip().rstrip(",") + "] \n")
    assert data(whole, u="int").columns["u"].to_pylist()[0] == 1


@pytest.mark.parametrize(("name", "content", "rule"), [
    ("a.jsonl", "x\ny\n[3]\n", "must have JSON objects"), ("a.csv", "\n1,a\n", "must have a first line of names"),
])  # fmt: skip
def test_data_without_any_name_say_so(tmp_path: Path, name: str, content: str, rule: str) -> None:
    """And not that of no columns one is missing."""
    problem = problem_of(data, written(tmp_path, name, content), u="int")
    assert (problem.rule, problem.got) == (rule, f"{name}, which has none")


def test_a_folder_is_no_sample(tmp_path: Path) -> None:
    """Some write Parquet as one."""
    (tmp_path / "a.parquet").mkdir()
    assert problem_of(fit, tmp_path / "a.parquet", "timestamp").way_out == "name one file of it"


def test_a_quote_in_the_wrong_place_is_one_line_that_is_no_row(tmp_path: Path) -> None:
    """The others are read."""
    content = data(written(tmp_path, "a.csv", "u,town\n" + ROW * 30 + '2,"open"x\n' + ROW * 30), u="int", town="string")
    assert (len(content.columns["u"]), content.left_out) == (60, LeftOut(1))


def test_a_long_error_of_a_reader_ends_with_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a line it quotes, and without the name of its class."""
    monkeypatch.setattr(files, "ERROR_TEXT_MAX", 30)
    message = str(problem_of(data, written(tmp_path, "a.json", '{"u": 1}\n{"u"'), u="int").got)
    assert (message[:14], message[-4:]) == ("Malformed JSON", " ...")


def test_space_around_names_is_none_of_them(tmp_path: Path) -> None:
    """With quotes, and without."""
    path = written(tmp_path, "a.csv", 'u , "town"\n1,a\n')
    assert data(path, u="int", town="string").columns["town"].to_pylist() == ["a"]
    assert [field.name for field in fit(path, "timestamp").fields] == ["u", "town"]


def test_a_readers_advice_on_its_options_is_not_passed_on(tmp_path: Path) -> None:
    """Of a file whose lines end in several ways, which it cannot read."""
    got = str(problem_of(data, written(tmp_path, "a.csv", "u,town\n1,a\r\n2,c\n3,d\n"), u="int").got)
    assert "strict_mode" not in got
