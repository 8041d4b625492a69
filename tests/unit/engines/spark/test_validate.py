"""What is asked of Spark, refused before one is started."""

from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge.core.errors import Problem
from streamgauge.core.schema import Schema
from streamgauge.dataflow.builder import hop, source
from streamgauge.dataflow.nodes import Flow
from streamgauge.engines.spark.parallelism import parallelism_problems
from streamgauge.engines.spark.plugin import SparkPlugin
from streamgauge.engines.spark.session.masters import is_local, is_valid_local, local_slots, usable_cores
from streamgauge.engines.spi import StartRequest

BOUGHT = source("purchases", Schema.from_types(user_id="int", pack="int", price="int"))
REVENUE = BOUGHT.window(hop(2, 1), keys="pack").aggregate(revenue="sum(price)").sink("revenue")
NAMED = BOUGHT.window(hop(2, 1), keys="pack").aggregate(revenue="sum(price)", name="per_pack").sink("revenue")
PLAIN = BOUGHT.sink("all")
IMAGE = {"spark.kubernetes.container.image": "some/image"}


def problems(
    options: dict[str, str] | None = None, master: str | None = None, flow: Flow | None = PLAIN, bind: str = ""
) -> list[Problem]:
    return list(SparkPlugin().request_problems(StartRequest(flow, options or {}, master, "common", bind=bind)))


def refused(options: dict[str, str] | None = None, master: str | None = None, flow: Flow | None = PLAIN) -> Problem:
    (problem,) = problems(options, master, flow)
    return problem


@pytest.mark.parametrize("good", ["auto", "0 seconds", "1.5 seconds", "2 minutes", "1400 milliseconds"])
def test_triggers_as_spark_writes_them(good: str) -> None:
    """Or auto."""
    assert problems({"trigger": good}) == []


@pytest.mark.parametrize("bad", ["1s", "soon", "-1 second", "", "1.5 minutes", "0.5 milliseconds"])
def test_triggers_that_spark_would_choke_on_are_refused(bad: str) -> None:
    """It says so itself only after its start; of its units only seconds may have a fraction."""
    assert refused({"trigger": bad}).setting == "option trigger"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.adaptive.enabled", "ja"),
        ("spark.sql.shuffle.partitions", "four"),
        ("spark.sql.shuffle.partitions", "0"),
        ("spark.executor.cores", "1.5"),
        ("spark.executor.memory", "lots"),
        ("spark.driver.maxResultSize", "-1"),
        ("spark.memory.fraction", "60"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(name: str, value: str) -> None:
    """With the rule, and a value that is right."""
    problem = refused({name: value})
    assert (problem.setting, problem.got) == (f"option {name}", value)
    assert problems(dict([problem.way_out.removeprefix("--option ").split("=")])) == []


@pytest.mark.parametrize(
    ("name", "value", "way_out"),
    [
        ("spark.master", "yarn", "--master yarn"),
        ("spark.driver.memory", "2g", "--option driver_memory=2g"),
        ("sprak.sql.shuffle.partitions", "2", "one of trigger, "),
    ],
)
def test_a_setting_by_another_word_is_refused(name: str, value: str, way_out: str) -> None:
    """Two words for one thing could disagree; a setting with a misspelt first word is no option."""
    assert refused({name: value}).way_out.startswith(way_out)


@pytest.mark.parametrize(
    ("master", "bind"),
    [
        *((here, "127.0.0.1") for here in (None, "local", "local[4]", "local[*]", "local[2,3]")),
        *((here, "127.0.0.1") for here in ("local-cluster[1, 1, 1024]", "spark://localhost:7077")),
        *((elsewhere, "10.0.0.5") for elsewhere in ("spark://host:7077", "spark://a-b:7077,c.d:7078")),
    ],
)
def test_masters_that_spark_knows(master: str | None, bind: str) -> None:
    """As Spark writes them; executors on this machine reach loopback."""
    assert problems(master=master, bind=bind) == []


@pytest.mark.parametrize(
    "master", ["", "local[0]", "local[two]", "local[2", "spark://host", "spark:/host:7077", "mesos://host:5050", "yarm"]
)
def test_masters_that_spark_does_not_know_are_refused(master: str) -> None:
    """Before anything starts."""
    assert (refused(master=master).setting, refused(master=master).got) == ("master", master)


def test_kubernetes_needs_an_image() -> None:
    """Spark says so itself only when it starts its executors."""
    assert problems(IMAGE, "k8s://https://host:6443") == []
    assert "spark.kubernetes.container.image" in refused({}, "k8s://https://host:6443").way_out
    assert refused(IMAGE, "k8s://").setting == "master"


@pytest.mark.parametrize("bind", ["127.0.0.1", "localhost", "127.0.1.1", "0.0.0.0"])
@pytest.mark.parametrize("master", ["spark://host:7077", "spark://localhost:7077,host:7077", "k8s://127.0.0.1:6443"])
def test_executors_elsewhere_need_an_address_that_they_can_reach(master: str, bind: str) -> None:
    """They would wait for their input until the start times out."""
    (problem,) = problems(IMAGE | {"spark.driver.host": "10.0.0.5"}, master, bind=bind)
    assert (problem.setting, problem.got) == ("bind", bind)
    assert master in problem.rule
    assert problems(IMAGE, master, bind="10.0.0.5") == []


def test_all_cores_below_those_of_one_executor_are_refused() -> None:
    """Spark would wait for an executor without an end. Without a size an executor takes what there is."""
    options = {"spark.cores.max": "1", "spark.executor.cores": "2"}
    problem = refused(options, "spark://localhost:7077")
    assert (problem.setting, problem.got) == ("option spark.cores.max", "1")
    assert problem.way_out == "--option spark.cores.max=2, or --option spark.executor.cores=1"
    for fitting in (options | {"spark.cores.max": "2"}, {"spark.cores.max": "1"}, {"spark.executor.cores": "2"}):
        assert problems(fitting, "spark://localhost:7077") == []
    assert problems(options, "local[2]") == [], "it has no executors"


def test_yarn_needs_the_clusters_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is there, named by one of two variables."""
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    assert "HADOOP_CONF_DIR" in refused(master="yarn").rule
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path / "nowhere"))
    assert "HADOOP_CONF_DIR" in refused(master="yarn").rule
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path))
    assert problems(master="yarn") == []


def test_a_lowering_is_chosen_by_its_operators_name() -> None:
    """Whatever that name is."""
    assert problems({"lowering.aggregate": "window"}, flow=REVENUE) == []
    assert problems({"lowering.per_pack": "panes"}, flow=NAMED) == []
    assert refused({"lowering.per_pack": "fast"}, flow=NAMED).rule == "must be one of auto, panes, sliding, window"


@pytest.mark.parametrize(
    ("flow", "way_out"), [(NAMED, "--option lowering.per_pack=auto|panes|sliding|window"), (PLAIN, "leave it out")]
)
def test_a_lowering_of_no_operator_is_refused(flow: Flow, way_out: str) -> None:
    """With the operators that the flow has."""
    problem = refused({"lowering.aggregate": "window"}, flow=flow)
    assert problem.setting == "option lowering.aggregate"
    assert "operators are purchases" in problem.rule
    assert problem.way_out == way_out


def test_all_problems_are_reported_at_once() -> None:
    """Of options, lowerings, Spark's settings and the master."""
    found = problems({"buckets": "0", "lowering.x": "y", "spark.executor.cores": "no", "colour": "blue"}, "yarm")
    assert {problem.setting for problem in found} == {
        "option buckets", "option lowering.x", "option spark.executor.cores", "option colour", "master",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("master", "options", "rule"),
    [
        ("local[2]", {}, "must not be given with the master local[2], which states Spark's cores"),
        (
            "spark://h:1",
            {"spark.cores.max": "2"},
            "must not be given with spark.cores.max, which states the executors'",
        ),
        ("yarn", {"spark.executor.instances": "2"}, "must not be given with spark.executor.instances"),
        ("yarn", {"spark.executor.cores": "2"}, "must be a multiple of spark.executor.cores (2)"),
        ("spark://h:1", {"spark.executor.cores": "2"}, "must be a multiple of spark.executor.cores (2)"),
    ],
)
def test_a_parallelism_that_something_else_states_is_refused(master: str, options: dict[str, str], rule: str) -> None:
    """Both would contradict each other, or one would be ignored."""
    request = StartRequest(None, options, master, "common", parallelism=3)
    (problem,) = parallelism_problems(request)
    assert problem.setting == "parallelism"
    assert problem.rule.startswith(rule)
    assert not list(parallelism_problems(replace(request, parallelism=None)))


def test_a_parallelism_alone_is_taken() -> None:
    """Of a local Spark, a standalone cluster and YARN."""
    for master in (None, "spark://h:1", "yarn"):
        assert not list(parallelism_problems(StartRequest(None, {}, master, "common", parallelism=4)))


@pytest.mark.parametrize(
    ("master", "valid", "slots"),
    [
        ("local", True, 1),
        ("local[4]", True, 4),
        ("local[2, 3]", True, 2),
        ("local[*]", True, None),
        ("local-cluster[2, 1, 1024]", True, None),
        ("local[0]", False, None),
        ("local[two]", False, None),
        ("local[2", False, None),
    ],
)
def test_masters_on_this_machine(master: str, valid: bool, slots: int | None) -> None:
    """The second number of local[2, 3] counts attempts of a task."""
    assert is_local(master)
    assert (is_valid_local(master), local_slots(master)) == (valid, slots)


@pytest.mark.parametrize("master", ["", "spark://local:7077", "yarn", "k8s://local"])
def test_masters_elsewhere(master: str) -> None:
    assert (is_local(master), is_valid_local(master), local_slots(master)) == (False, False, None)


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        (None, 4), ("local", 1), ("local[1]", 1), ("local[2, 4]", 2), ("local[8]", 4), ("local[*]", 4),
        ("local-cluster[2,1,1024]", None), ("spark://far:7077", None), ("yarn", None),
    ],
)  # fmt: skip
def test_a_master_allows_so_many_of_four_cores(master: str | None, cores: int | None) -> None:
    """Those of this machine; executors elsewhere use none of them."""
    assert usable_cores(master, 4) == cores
