"""Finding Java, and saying how to get it.

Jars: kept once they were resolved, the first set that can be had, and a clear word where none can.
"""

import json
import os
from pathlib import Path
from unittest.mock import Mock

import pytest

from streamgauge.core.errors import MachineError
from streamgauge.core.plugin_options import Fetch
from streamgauge.system import java
from streamgauge.system import java as jars
from streamgauge.system.java import LIST, JarSet, resolved, spark_kafka_jars


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


def test_the_java_of_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAVA_HOME wins over PATH, as it does for engines; without it the first java of PATH is taken, which may name its
    options first, where JAVA_TOOL_OPTIONS is set.
    """
    home = fake_java(tmp_path / "home", """echo 'openjdk version "21.0.1" 2023-10-17' >&2""")
    picked, version = "Picked up JAVA_TOOL_OPTIONS: -Xmx1g", 'openjdk version "17.0.1" 2021-10-19'
    other = fake_java(tmp_path / "other", f"echo '{picked}' >&2; echo '{version}' >&2")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(other / "bin"), prepend=":")
    assert java.find_java() == java.Java(str(home / "bin" / "java"), 21, 'openjdk version "21.0.1" 2023-10-17')
    monkeypatch.delenv("JAVA_HOME")
    assert (java.find_java().version, java.find_java().text) == (17, version)


@pytest.mark.parametrize("body", [None, "echo 'java version \"1.8.0_392\"' >&2"])
def test_a_wrong_java_home_beside_a_java_that_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str | None
) -> None:
    """Nothing has to be installed: the message names the one setting, and what it should be."""
    home = fake_java(tmp_path / "old", body) if body else tmp_path / "nowhere"
    good = fake_java(tmp_path / "good", """echo 'openjdk version "17.0.1" 2021-10-19' >&2""")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(good / "bin"), prepend=":")
    with pytest.raises(
        MachineError, match="JAVA_HOME: must lead to Java 17 or later, which the engine needs"
    ) as caught:
        java.find_java("the engine")
    assert str(caught.value).endswith(f"unset JAVA_HOME (PATH has Java 17), or set it to {good}")
    assert "install" not in str(caught.value)


@pytest.mark.parametrize(("home", "body", "reason"), [
    (None, None, "no java was found"),
    ("nothing", None, "nothing (no java was found)"),
    *(("old", f"echo '{text}' >&2", text) for text in ('java version "1.8.0_392"', 'openjdk version "11.0.2"', "odd")),
    ("broken", "exit 0", "does not start"),
])  # fmt: skip
def test_no_java_that_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str | None, body: str | None, reason: str
) -> None:
    """The message says what is needed, where it was sought or what was found, and the command that installs it. A wrong
    JAVA_HOME is named, not passed over: an engine would use it too. A file that cannot be run is no Java.
    """
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if home:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / home))
    if body:
        (fake_java(tmp_path / str(home), body) / "bin" / "java").chmod(0o755 if "echo" in body else 0o644)
    with pytest.raises(
        MachineError, match=rf"{'JAVA_HOME' if home else 'PATH'}: must lead to Java 17 or later;"
    ) as caught:
        java.find_java()
    assert [part for part in (home or "", reason, java.install_hint()) if part not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("release", "hint"),
    [
        ({"ID": "ubuntu", "ID_LIKE": "debian"}, "apt-get install -y openjdk-17"),
        ({"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, "dnf install -y java-17"),
        ({"ID": "alpine"}, "apk add openjdk17"),
        ({"ID": "strange"}, "set JAVA_HOME"),
    ],
)
def test_the_install_command_is_this_systems(
    monkeypatch: pytest.MonkeyPatch, release: dict[str, str], hint: str
) -> None:
    """The system's own name decides, else what it is like; an unknown system gets words."""
    monkeypatch.setattr(java.platform, "freedesktop_os_release", lambda: release)
    assert hint in java.install_hint()


def test_java_starts_without_the_options_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an agent that is not there it would not start, and would be taken for no Java at all."""
    home = fake_java(tmp_path, 'echo "${_JAVA_OPTIONS}${JAVA_TOOL_OPTIONS}openjdk version \\"17.0.1\\"" >&2')
    monkeypatch.setenv("JAVA_HOME", str(home))
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


EXACT, OLDER = JarSet("exact", ("a:b:2",), ("c:d",)), JarSet("older", ("a:b:1",))


def ivy(repository: dict[str, list[str]], calls: list[str]) -> object:
    """What Spark's Ivy does with a repository that has these jars of these sets."""

    def run(wanted: JarSet, work: Path) -> None:
        calls.append(wanted.name)
        if wanted.name not in repository:
            raise jars._Unresolved("unresolved dependency: not found")
        (work / "jars").mkdir()
        for name in repository[wanted.name]:
            (work / "jars" / name).write_text(name)

    return run


def test_they_are_resolved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time nobody is asked; a jar that is gone since is resolved again."""
    calls: list[str] = []
    monkeypatch.setattr(jars, "_run_ivy", ivy({"exact": ["b.jar", "a.jar"]}, calls))
    first = resolved([[EXACT], [OLDER]], tmp_path)
    assert [path.name for path in first] == ["a.jar", "b.jar"]
    assert resolved([[EXACT], [OLDER]], tmp_path) == first
    assert calls == ["exact"]
    first[0].unlink()
    assert resolved([[EXACT], [OLDER]], tmp_path) == first
    assert calls == ["exact", "exact"]
    assert [path.name for path in tmp_path.iterdir()] == ["exact"]


@pytest.mark.parametrize(("repository", "choices", "names", "calls"), [
    ({"older": ["a.jar"]}, [[EXACT], [OLDER]], ["a.jar"], ["exact", "older"]),
    ({"exact": ["a.jar"], "older": ["b.jar"]}, [[EXACT, JarSet("none", ("x:y:1",))], [EXACT, OLDER]],
     ["a.jar", "b.jar"], ["exact", "none", "older"]),
], ids=["next", "several sets"])  # fmt: skip
def test_the_next_choice_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: dict[str, list[str]], choices: list[list[JarSet]],
    names: list[str], calls: list[str],
) -> None:  # fmt: skip
    """A choice may be several sets: all of them, or it is none; what one of them has brought stays for another time.
    Where a choice is there already, no repository is asked for the first.
    """
    commands: list[str] = []
    monkeypatch.setattr(jars, "_run_ivy", ivy(repository, commands))
    assert [path.name for path in resolved(choices, tmp_path)] == names
    resolved([[OLDER]], tmp_path)
    assert commands == calls


def test_where_none_can_be_had_both_reasons_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the way out; nothing is left that looks like jars."""
    monkeypatch.setattr(jars, "_run_ivy", ivy({"older": []}, []))
    with pytest.raises(MachineError) as caught:
        resolved([[EXACT], [OLDER]], tmp_path)
    reasons = "a:b:2: unresolved dependency: not found", "a:b:1: Ivy reported no error and returned no jars"
    assert [part for part in (*reasons, f"copy {tmp_path}") if part not in str(caught.value)] == []
    assert list(tmp_path.iterdir()) == []


def test_one_that_was_cut_off_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its list, which is written last, is not there, or half."""
    calls: list[str] = []
    monkeypatch.setattr(jars, "_run_ivy", ivy({"exact": ["a.jar"]}, calls))
    (tmp_path / "exact").mkdir()
    (tmp_path / "exact" / "a.jar").touch()
    resolved([[EXACT]], tmp_path)
    (tmp_path / "exact" / LIST).write_text(json.dumps(["a.jar"])[:-1])
    resolved([[EXACT]], tmp_path)
    assert calls == ["exact", "exact"]


def test_the_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the system's convention says."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert jars.cache() == tmp_path / "streamgauge" / "jars"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert jars.cache() == Path(os.path.expanduser("~")) / ".cache" / "streamgauge" / "jars"


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("a\n\t\t:: a#b;2: not found\n\t:::::\nlast", "a#b;2: not found"),
        ("Host h not found. url=https://h/a.jar\n\t\t:: a#b;2: not found\nlast", "a#b;2: not found"),
        ("a\n last words \n\n", "last words"),
        ("", ""),
    ],
)
def test_ivys_own_words(output: str, reason: str) -> None:
    """Of a page of them, the line with the reason."""
    assert jars._reason(output) == reason


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable to set; it is the machine's lack, no defect."""
    refuses = Mock(side_effect=PermissionError(13, "Permission denied"))
    monkeypatch.setattr(jars.tempfile, "TemporaryDirectory", refuses)
    with pytest.raises(MachineError, match=r"Permission denied\)\n  set XDG_CACHE_HOME") as refused:
        resolved([[EXACT], [OLDER]], tmp_path / "cache")
    assert str(tmp_path / "cache") in str(refused.value)


@pytest.mark.parametrize(
    ("version", "there", "found"),
    [
        ("4.3.0", {"spark-kafka-4.3.0": ["a.jar"], "spark-kafka-4.2.0": ["b.jar"]}, ["a.jar"]),
        ("4.3.0", {"spark-kafka-4.2.0": ["b.jar", "c.jar"], "spark-kafka-tokens-4.0.0": ["c.jar"]}, ["b.jar", "c.jar"]),
        ("4.1.7", {"spark-kafka-4.1.7": ["a.jar"]}, ["a.jar"]),
    ],
)
def test_sparks_kafka_jars_are_those_of_the_installed_pyspark(
    version: str, there: dict[str, list[str]], found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older ones only where they were tested with it; no file name twice, which Spark refuses."""
    monkeypatch.setenv(jars.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(jars.metadata, "version", lambda _: version)
    monkeypatch.setattr(jars, "_run_ivy", ivy(there, []))
    assert [path.name for path in spark_kafka_jars()] == found


def test_sparks_kafka_jars_need_pyspark_and_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says how to get what is missing."""
    monkeypatch.setenv(jars.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(jars.metadata, "version", lambda _: "4.1.7")
    monkeypatch.setattr(jars, "_run_ivy", ivy({}, []))
    with pytest.raises(MachineError, match="connect to a Maven repository"):
        spark_kafka_jars()

    def missing(name: str) -> str:
        raise jars.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(jars.metadata, "version", missing)
    with pytest.raises(MachineError, match="-m pip install pyspark"):
        spark_kafka_jars()


FETCH = Fetch("the jars of an engine", 2**20, "--engine known")


def test_jars_are_looked_for_and_never_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Good with any choice that is whole. Those that must be fetched name the runs that need them."""
    calls: list[str] = []
    monkeypatch.setenv(jars.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(jars, "_run_ivy", ivy({"older": ["a.jar"]}, calls))
    check = jars.jars_check("engine_jars", [[EXACT], [OLDER]], FETCH)
    assert (check.status, check.name, check.needed_with) == ("warning", "engine_jars", "--engine known")
    assert "--engine known" in check.problems[0].way_out
    assert (calls, list(tmp_path.iterdir())) == ([], [])
    resolved([[EXACT], [OLDER]])
    assert jars.jars_check("engine_jars", [[EXACT], [OLDER]], FETCH).status == "good"
    assert calls == ["exact", "older"]


@pytest.mark.parametrize("fault", ["no home", "not writable"])
def test_jars_that_could_not_be_kept_ask_for_another_cache(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before they are fetched for nothing."""
    if fault == "no home":
        monkeypatch.delenv(jars.CACHE_VARIABLE, raising=False)
        monkeypatch.setattr(jars.Path, "home", Mock(side_effect=RuntimeError("no home")))
    else:
        monkeypatch.setenv(jars.CACHE_VARIABLE, str(tmp_path / "cache"))
        monkeypatch.setattr(jars.os, "access", lambda path, _: path != tmp_path)
    check = jars.jars_check("engine_jars", [[EXACT]], FETCH)
    assert (check.status, [one.setting for one in check.problems]) == ("warning", [jars.CACHE_VARIABLE])
