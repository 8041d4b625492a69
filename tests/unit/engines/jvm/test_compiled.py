"""The classes of a job are compiled once for each state of its sources and jars."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from streamgauge.core.errors import EngineError, MachineError
from streamgauge.engines.jvm import compiled

SHARED, OWN, JAR = "shared/Plan.scala", "flink/scala/Main.scala", Path("flink-2.2.jar")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sources in a folder; the cache is beside them."""
    for file in (SHARED, OWN):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text("package streamgauge\n")
    monkeypatch.setattr(compiled, "cache", lambda: tmp_path / "cache" / "jars")
    return tmp_path


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The names of the files of each compilation, which makes an empty folder."""
    found: list[list[str]] = []

    def made(files: Sequence[Path], libraries: Sequence[Path], to: Path) -> None:
        found.append([file.name for file in files])
        to.mkdir(parents=True)

    monkeypatch.setattr(compiled, "_compile", made)
    return found


def classes(folder: Path, jar: Path = JAR) -> Path:
    return compiled.class_path((folder / OWN).parent, [jar], (folder / SHARED).parent)[0]


def test_classes_are_compiled_once(folder: Path, compilations: list[list[str]]) -> None:
    """Of the shared sources and those of the engine, in a folder that has its name."""
    first = classes(folder)
    assert classes(folder) == first
    assert first.name.startswith("flink-")
    assert compilations == [["Plan.scala", "Main.scala"]]


@pytest.mark.parametrize("changed", [SHARED, OWN])
def test_a_changed_source_is_compiled_again(folder: Path, compilations: list[list[str]], changed: str) -> None:
    first = classes(folder)
    (folder / changed).write_text("package streamgauge // changed\n")
    assert classes(folder) != first
    assert len(compilations) == 2


def test_another_version_of_an_engine_has_classes_of_its_own(folder: Path, compilations: list[list[str]]) -> None:
    assert classes(folder) != classes(folder, Path("flink-2.3.jar"))


def test_a_jar_that_pyspark_lacks_is_named() -> None:
    with pytest.raises(MachineError, match="no-such-jar"):
        compiled.spark_jars(["no-such-jar"])


@pytest.mark.process
@pytest.mark.parametrize(
    ("source", "code"), [("val n: Int = true", "type mismatch"), ("private val unused = 1", "never used")]
)
def test_an_error_and_a_warning_of_the_compiler_are_named(folder: Path, source: str, code: str) -> None:
    """And nothing is kept."""
    (folder / OWN).write_text(f"package streamgauge\nobject Main {{ {source} }}\n")
    with pytest.raises(EngineError, match=code):
        classes(folder)
    assert list((folder / "cache" / "classes").iterdir()) == []
