"""Finding Java, and saying how to get it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamgauge.core.errors import MachineError
from streamgauge.system import java


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "11.0.20.1" 2023-08-24', 11),
        ('openjdk version "22-ea" 2024-03-19', 22),
        ('openjdk version "9"', 9),
        ("Error: could not find libjava.so", None),
        ("", None),
    ],
)
def test_versions_are_read_as_java_prints_them(text: str, version: int | None) -> None:
    """Old (1.8) and new (17) numbering, early access included."""
    assert java.parse_version(text) == version


def fake_java(folder: Path, body: str) -> Path:
    """A home whose bin/java is a shell script."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return folder


def message(caught: pytest.ExceptionInfo[MachineError]) -> str:
    assert java.install_hint() in str(caught.value)
    return str(caught.value)


def test_the_java_of_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAVA_HOME wins over PATH, as it does for Spark."""
    home = fake_java(tmp_path / "home", """echo 'openjdk version "21.0.1" 2023-10-17' >&2""")
    other = fake_java(tmp_path / "other", """echo 'openjdk version "17.0.1" 2021-10-19' >&2""")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(other / "bin"), prepend=":")
    assert java.find_java() == java.Java(str(home / "bin" / "java"), 21, 'openjdk version "21.0.1" 2023-10-17')


def test_a_java_that_tells_of_its_options_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java does so where JAVA_TOOL_OPTIONS is set, as in many containers."""
    picked, version = "Picked up JAVA_TOOL_OPTIONS: -Xmx1g", 'openjdk version "17.0.1" 2021-10-19'
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, f"echo '{picked}' >&2; echo '{version}' >&2")))
    assert (java.find_java().version, java.find_java().text) == (17, version)


def test_the_java_of_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without JAVA_HOME the first java of PATH is taken."""
    home = fake_java(tmp_path, """echo 'openjdk version "17.0.1" 2021-10-19' >&2""")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(home / "bin"), prepend=":")
    assert java.find_java().version == 17


@pytest.mark.parametrize("body", [None, "echo 'java version \"1.8.0_392\"' >&2"])
def test_a_wrong_java_home_beside_a_java_that_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str | None
) -> None:
    """Nothing has to be installed: the one setting is told, and what it should be."""
    home = fake_java(tmp_path / "old", body) if body else tmp_path / "nowhere"
    there = fake_java(tmp_path / "good", """echo 'openjdk version "17.0.1" 2021-10-19' >&2""")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(there / "bin"), prepend=":")
    with pytest.raises(MachineError, match="Java 17 or later is needed") as caught:
        java.find_java()
    assert str(caught.value).endswith(f"unset JAVA_HOME (PATH has Java 17), or set it to {there}")
    assert "install" not in str(caught.value)


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what is needed, where it was sought, and the command that installs it."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match=r"Java 17 or later is needed.*none was found by PATH") as caught:
        java.find_java()
    assert message(caught)


def test_a_java_home_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong JAVA_HOME is named, not passed over: Spark would use it too."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    with pytest.raises(MachineError, match="none was found by JAVA_HOME=") as caught:
        java.find_java()
    assert "nothing" in message(caught)


@pytest.mark.parametrize("text", ['java version "1.8.0_392"', 'openjdk version "11.0.2"', "garbage"])
def test_a_java_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """What was found is quoted beside what is needed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, f"echo '{text}' >&2")))
    with pytest.raises(MachineError, match="Java 17 or later is needed") as caught:
        java.find_java()
    assert text in message(caught)


def test_a_java_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be run is no Java."""
    home = fake_java(tmp_path, "exit 0")
    (home / "bin" / "java").chmod(0o644)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(MachineError, match="does not start") as caught:
        java.find_java()
    assert message(caught)


@pytest.mark.parametrize(
    ("release", "hint"),
    [
        ("ID=ubuntu\nID_LIKE=debian\n", "apt-get install -y openjdk-17"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "dnf install -y java-17"),
        ("ID=alpine\n", "apk add openjdk17"),
        ("ID=strange\n", "set JAVA_HOME"),
    ],
)
def test_the_install_command_is_this_systems(monkeypatch: pytest.MonkeyPatch, release: str, hint: str) -> None:
    """The system's own name decides, else what it is like; an unknown system gets words."""
    monkeypatch.setattr(Path, "read_text", lambda self: release)
    assert hint in java.install_hint()


@pytest.mark.parametrize("marked", [True, False])
def test_tests_on_spark_ask_for_java_once(
    marked: bool, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message instead of a failure for each; tests that start no Spark need no Java."""
    conftest: Any = request.config.pluginmanager.get_plugin(str(Path(__file__).parents[2] / "conftest.py"))
    item = SimpleNamespace(get_closest_marker=lambda name: marked or None)
    session: Any = SimpleNamespace(config=SimpleNamespace(option=SimpleNamespace(collectonly=False)), items=[item])
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with (
        pytest.raises(pytest.exit.Exception, match="none was found by JAVA_HOME") if marked else nullcontext() as ended
    ):
        conftest.pytest_collection_finish(session)
    assert ended is None or ended.value.returncode == MachineError.exit_code


def test_java_is_asked_without_the_options_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an agent that is not there it would not start, and would be taken for no Java at all."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "${_JAVA_OPTIONS}${JAVA_TOOL_OPTIONS}openjdk version \\"17.0.1\\"" >&2\n')
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("_JAVA_OPTIONS", "-Xmx300m")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-javaagent:/nowhere.jar")
    assert java.find_java().text == 'openjdk version "17.0.1"'


def test_what_reaches_a_network_may_stay() -> None:
    """A proxy is a system property; a heap and an agent are not."""
    given = {"JAVA_TOOL_OPTIONS": "-javaagent:/x.jar -Dhttp.proxyHost=there", "_JAVA_OPTIONS": "-Xmx1m", "A": "b"}
    assert java.java_environment(keep_properties=True, environment=given) == {
        "A": "b",
        "JAVA_TOOL_OPTIONS": "-Dhttp.proxyHost=there",
    }
    assert java.java_environment(environment=given) == {"A": "b"}
