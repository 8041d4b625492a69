"""tools/tables/tuning_profiles.py: the measured tuning profiles, all, some or none of them."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.studies import tuning_profiles as study
from tests.helpers_modules import ROOT, load

PROFILES = load(ROOT / "tools" / "tables" / "tuning_profiles.py")
PLAIN = "word_count,kafka,idiomatic,1e5,1.2e5,not_sustained,1e6,2.5e6,9e4,the CPU,0.2,300,2026-01-02,c,2 cores,run it"
TUNED = PLAIN.replace("idiomatic,1e5", "tuned,2.5e5")


def test_tuning_profiles_are_shown_as_far_as_they_are_measured(tmp_path: Path) -> None:
    """All searches are listed without a file too; a ratio needs both profiles on one machine."""
    file = tmp_path / "profiles.csv"
    assert PROFILES.measured(file).count(PROFILES.NOT_YET) == 12
    head = ",".join(PROFILES.NEEDED)
    file.write_text(f"{head}\n{PLAIN}\n")
    text = PROFILES.measured(file)
    assert "| `word_count` | Kafka | 100 k/s | not measured yet | - |" in text
    made = "| 120 k/s not sustained | 20% | 2026-01-02 | c | `run it` |"
    assert f"| `word_count`, Kafka, `idiomatic` {made}" in text
    assert "<svg" not in text
    file.write_text(f"{head}\n{TUNED}\n{PLAIN}\n")
    drawn = ElementTree.fromstring(PROFILES.picture(PROFILES.searches(file)))
    assert [one.attrib["width"] for one in drawn.iter("rect")] == ["192", "480"]
    assert [one.text for one in drawn.iter("text")] == ["word count, Kafka", "idiomatic 100 k/s", "tuned 250 k/s"]
    assert "| 100 k/s | 250 k/s | 2.50 |" in PROFILES.measured(file)
    elsewhere, failed = TUNED.replace("2 cores", "9 cores"), PLAIN.replace("1e5,1.2e5,not_sustained", ",,")
    file.write_text(f"{head}\n{elsewhere}\n{failed}\n")
    assert "| no rate held | 250 k/s | - |" in PROFILES.measured(file)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((PLAIN, PLAIN), "line 3: must have one row for word_count kafka idiomatic"),
        ((PLAIN.replace("kafka", "kafak"),), "line 2: is no search of the study"),
        ((f"{PLAIN},more",), "must have 16 cells"),
    ],
)
def test_a_table_of_tuning_profiles_that_is_not_whole_is_refused(
    rows: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    """Also one with other columns, as an older study wrote it."""
    file = tmp_path / "profiles.csv"
    file.write_text("\n".join((",".join(PROFILES.NEEDED), *rows)))
    with pytest.raises(ValueError, match=message):
        PROFILES.measured(file)
    file.write_text("workload,transport\n")
    with pytest.raises(ValueError, match="make it again by the study"):
        PROFILES.measured(file)


def test_the_study_writes_the_columns_that_the_page_reads() -> None:
    assert study.HEAD == PROFILES.NEEDED
