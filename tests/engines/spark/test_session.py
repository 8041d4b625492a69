"""What a session that runs says of a user's settings; the session itself is not needed for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamgauge.engines.spark import session
from streamgauge.engines.spark.session import unknown
from streamgauge.errors import SettingError

KNOWN = frozenset({"spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled"})


def test_a_setting_that_spark_does_not_know_is_named_with_the_nearest() -> None:
    """Spark would pass over it, and the run would be another than was asked for."""
    (problem,) = unknown({"spark.sql.shufle.partitions": "4", "spark.sql.adaptive.enabled": "true"}, KNOWN)
    assert (problem.setting, problem.got) == ("option spark.sql.shufle.partitions", "4")
    assert problem.way_out == "--option spark.sql.shuffle.partitions=..."


@pytest.mark.parametrize(
    "name", ["spark.executor.foo", "spark.sql.catalog.mine", "spark.sql.streaming.stateStore.rocksdb.compactOnCommit"]
)
def test_names_that_spark_keeps_no_list_of_pass(name: str) -> None:
    """Those outside `spark.sql.`, and families that others read."""
    assert unknown({name: "x"}, KNOWN) == []


def test_nothing_is_said_where_names_may_be_an_extensions_or_are_not_known() -> None:
    """A refusal must be sure."""
    strange = {"spark.sql.shufle.partitions": "4"}
    assert unknown(strange | {"spark.sql.extensions": "com.example.Mine"}, KNOWN) == []
    assert unknown(strange, frozenset()) == []


def test_a_value_that_spark_refuses_is_told_as_the_users_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Spark's own words, without its stack; an error that speaks of no setting goes on as it is."""
    wrong = "[INVALID_CONF_VALUE] The value 'four' in the config \"spark.sql.shuffle.partitions\" is invalid."
    said = f"Error:\n\tat org.x\nCaused by: org.x.SparkIllegalArgumentException: {wrong}\n\tat y"

    def fails(*_: object) -> None:
        raise RuntimeError(said)

    monkeypatch.setattr(session, "open_session", fails)
    users = {"spark.sql.shuffle.partitions": "four", "spark.sql.shuffle": "x"}
    with pytest.raises(SettingError) as refused:
        session.open_checked("local[1]", users, users, tmp_path)
    (problem,) = refused.value.problems
    assert (problem.setting, problem.got) == ("option spark.sql.shuffle.partitions", "four")
    assert problem.rule == f"is refused by Spark ({wrong})"
    with pytest.raises(RuntimeError):
        session.open_checked("local[1]", {}, {}, tmp_path)


def test_only_a_jvm_of_this_machine_is_told_how_to_compile(tmp_path: Path) -> None:
    """Beside its heap and its folder; a cluster's are started by others."""
    (options,) = (
        value
        for name, value in session._jvm("local[2]", tmp_path, "2g", ("-XX:One", "-XX:Two")).items()
        if "Java" in name
    )
    assert options.split() == [f"-Djava.io.tmpdir={tmp_path / 'jvm'}", "-Xms2g", "-XX:One", "-XX:Two"]
    assert session._jvm("spark://there:7077", tmp_path, "2g", ("-XX:One",)) == {}
