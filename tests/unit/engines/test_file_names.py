"""The folder of each engine has the same file names for the same thing: those of the table in the architecture page."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from streamgauge import engines
from streamgauge.engines.registry import BUILT_IN, entry

ENGINES = Path(engines.__file__).parent
PAGE = Path(__file__).parents[3] / "docs" / "contributing" / "architecture.md"
FOLDERS = {place.split(".")[2] for place in BUILT_IN.values()}
MODES = ("dstream", "realtime")
"""What a second mode of an engine adds to a name."""
ONLY: Mapping[str, str] = {
    "spark/dstream": "receivers and streams of a second API, which no other engine has",
    "spark/watermark_and_interval": "the times between its batches, and its watermark's delay",
    "spark/operator_timer": "the process of its operator profiler, which is Python",
    "spark/parallelism": "which of its operators a setting reaches, because it fuses them",
    "spark/session": "one session holds all its queries, and Python workers of its own",
    "spark/user_job": "it alone runs functions of PySpark",
    "external/readiness": "a program tells nobody that it is ready",
    "synthetic/faults": "it alone plants faults in its results",
    "jvm/compiled": "the class path of jobs in Scala",
    "jvm/plan": "the flow as a file for a process that is not Python",
}
"""What only one folder has, and why."""
SCALA = {"Main", "Lowering", "Functions", "Rows"}
"""What each job on the JVM has: its start, the plan as operators of the engine, what they do, rows as it keeps them."""
ONLY_SCALA: Mapping[str, str] = {
    "storm/Components": "its spouts and bolts, which the others bring",
    "storm/StormWindows": "a second lowering of windows",
    "storm/InProcessZookeeper": "replaces a class of its own",
}
"""What only one job has, and why."""


def names_of_table() -> set[str]:
    """The first column of the table."""
    section = PAGE.read_text().partition("### The files of an engine")[2].partition("\n#")[0]
    return {name for row in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}


def modules() -> set[str]:
    """folder/name of every module and sub-package of an engine."""
    places = (each for folder in {*FOLDERS, "jvm"} for each in (ENGINES / folder).iterdir())
    return {
        f"{each.parent.name}/{each.stem}"
        for each in places
        if (each.is_dir() or each.suffix == ".py") and not each.name.startswith("__")
    }


def problems(found: Collection[str], table: Collection[str], only: Collection[str]) -> list[str]:
    """Modules whose name is in neither list, and names that no folder has."""
    plain = {each: re.sub(rf"_({'|'.join(MODES)})$", "", each) for each in found}
    unnamed = [each for each, name in plain.items() if name.partition("/")[2] not in table and each not in only]
    used = {name.partition("/")[2] for name in plain.values()}
    return sorted(
        [*unnamed, *(name for name in table if name not in used), *(each for each in only if each not in found)]
    )


def test_each_module_has_a_name_of_the_table_or_a_reason() -> None:
    assert problems(modules(), names_of_table(), ONLY) == []


def test_each_engine_has_the_files_that_the_page_says_each_has() -> None:
    """A conformance file where the suite runs it."""
    found = modules()
    assert [each for each in FOLDERS if not {f"{each}/plugin", f"{each}/engine"} <= found] == []
    declared = {(place.split(".")[2], entry(name).conformance) for name, place in BUILT_IN.items()}
    assert [folder for folder, conf in declared if bool(conf) != (f"{folder}/conformance" in found)] == []


def test_each_job_on_the_jvm_has_the_same_files() -> None:
    found = {f"{each.parts[-3]}/{each.stem}" for each in ENGINES.glob("*/scala/*.scala")}
    jobs = {each.partition("/")[0] for each in found} - {"jvm"}
    assert {each for each in found if not each.startswith("jvm/")} == {
        *(f"{job}/{name}" for job in jobs for name in SCALA), *ONLY_SCALA
    }  # fmt: skip
