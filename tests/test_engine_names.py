"""Outside `engines/`, no module depends on an engine: its name, or the word Spark, stands there only for a reason."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import streamgauge
from streamgauge.engines.registry import BUILT_IN
from streamgauge.transports import registry as transports

SOURCE = Path(streamgauge.__file__).parent

MAY_SAY_SPARK: Mapping[str, str] = {
    "the SQL dialect and its types": """
        core/schema.py dataflow/expressions/ dataflow/json_form/codecs.py dataflow/nodes.py
        engines/synthetic/lowering.py loadgen/replay/fit_sample.py
    """,
    "PySpark user jobs": """
        jobs.py system/python_path.py system/user_code.py user_workloads/__init__.py user_workloads/lookup.py
        user_workloads/user_job.py user_workloads/user_workload.py
    """,
    "its jars and libraries, of which others take parts": """
        engines/jvm/ system/java.py system/machine.py transports/kafka/broker.py
        workloads/dspbench/text/sentiment_analysis.py
    """,
    "Spark programs of the user's own: their jars and checkpoints": """
        engines/external/engine.py transports/kafka/program_inlet.py
        transports/kafka/spark_checkpoint.py transports/topic_names.py user_workloads/program.py
        user_workloads/program_checks.py user_workloads/program_file.py user_workloads/program_node.py
    """,
    "the default engine, and the list of engines": """
        config/experiment.py engines/external/plugin.py engines/registry.py
    """,
    "help of commands, for users": "cli/app.py cli/cluster.py cli/commands.py",
    "a transport that only its receivers read": "transports/socket/",
    "published studies of it": """
        loadgen/datasets/texts.py studies/latency_breakdown/anatomy.py
        workloads/micro/timestamped_text.py
    """,
    "fields of results that others read": """
        results/breakdown.py results/profile.py results/run.py
    """,
}  # fmt: skip
"""Reason to the modules, or the folders with a slash, that may have the word."""

MAY_NAME_ENGINES = {
    "config/experiment.py": "the default engine, and that of programs",
    "dataflow/expressions/check.py": "the SQL dialect",
    "dataflow/expressions/regex.py": "the SQL dialect",
}
"""Modules with an engine's name as a text."""
PLAIN_WORDS = {"external", "known", "oracle"}
"""Names of engines that texts have for something else. The word Spark has a list of its own."""
MAY_SAY_ENGINES = {
    "report/charts/scalability.py": "published studies",
    "report/documents/scalability.py": "published studies",
}
"""Modules with the word for another engine anywhere, as in a comment."""
PART_MIN = 5
"""Least letters of the beginning of a name."""


def texts() -> dict[str, str]:
    """The text of every module outside `engines/spark`, by its path."""
    paths = {str(path.relative_to(SOURCE)): path for path in SOURCE.rglob("*.py")}
    return {name: path.read_text() for name, path in paths.items() if not name.startswith("engines/spark/")}


def saying_spark(modules: Mapping[str, str]) -> set[str]:
    return {name for name, text in modules.items() if re.search("spark", text, re.IGNORECASE)}


def naming_engines(modules: Mapping[str, str]) -> set[str]:
    """Modules with a text that is the name of an engine, or begins it: `startswith` needs no more."""
    begun = {name[:length] for name in BUILT_IN for length in range(PART_MIN, len(name) + 1)} - set(transports.NAMES)
    outside = {name: text for name, text in modules.items() if not name.startswith("engines/")}
    return {name for name, text in outside.items() if _literals(text) & {*BUILT_IN, *begun}}


def saying_engines(modules: Mapping[str, str]) -> set[str]:
    """Modules with the name of an engine as a word, however it is written."""
    names = "|".join(name.replace("-", "[ _-]") for name in BUILT_IN if name not in PLAIN_WORDS and "spark" not in name)
    outside = {name: text for name, text in modules.items() if not name.startswith("engines/")}
    return {name for name, text in outside.items() if re.search(rf"(?<![a-z])({names})(?![a-z])", text, re.IGNORECASE)}


def _literals(text: str) -> set[object]:
    nodes = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return {value for value in nodes if isinstance(value, str)}


def unlisted(found: set[str], listed: set[str]) -> list[str]:
    """Modules that are in no list, and entries of a list without a module."""
    folders = tuple(each for each in listed if each.endswith("/"))
    left = [name for name in found if name not in listed and not name.startswith(folders)]
    idle = [each for each in listed if not any(name == each or name.startswith(each) for name in found)]
    return sorted(left + idle)


def test_the_word_spark_stands_outside_its_plugin_only_for_a_reason() -> None:
    """And no behaviour depends on it."""
    listed = {each for modules in MAY_SAY_SPARK.values() for each in modules.split()}
    assert unlisted(saying_spark(texts()), listed) == []


def test_only_engines_name_engines() -> None:
    """To add one touches no line elsewhere."""
    assert unlisted(naming_engines(texts()), set(MAY_NAME_ENGINES)) == []


def test_the_words_for_other_engines_stand_outside_engines_only_for_a_reason() -> None:
    """A comment that names one tells of code that is made for it."""
    assert unlisted(saying_engines(texts()), set(MAY_SAY_ENGINES)) == []


@pytest.mark.parametrize("planted", ["# as Kafka Streams does", "from x import flink_y", "STORM = 1"])
def test_a_planted_word_for_an_engine_is_found(planted: str) -> None:
    modules = {"trial/phases.py": planted, "engines/x.py": planted, "jobs.py": "brainstorm over kafka, streams known"}
    assert saying_engines(modules) == {"trial/phases.py"}


@pytest.mark.parametrize("planted", ["# as Spark does", "from pyspark import SparkConf", "class SparkRate: ..."])
def test_a_planted_word_is_found(planted: str) -> None:
    """In a comment, an import or a name; a listed module without the word is found too."""
    modules = {"trial/phases.py": planted, "jobs.py": "x = 1"}
    assert unlisted(saying_spark(modules), {"jobs.py"}) == ["jobs.py", "trial/phases.py"]


def test_a_planted_name_is_found() -> None:
    """As a text of its own, outside `engines/`, or its beginning; a transport has the beginning of one for its name."""
    modules = {"trial/phases.py": 'engine == "known"', "engines/x.py": '"known"', "cli/app.py": '"it is known"'}
    modules |= {"cli/commands.py": 'name.startswith("kafka-str")', "results/run.py": 'transport == "kafka"'}
    assert naming_engines(modules) == {"trial/phases.py", "cli/commands.py"}
