"""Compiles RunSql.java and becomes its JVM. Spark's Ivy gets the jars once."""

import os
import subprocess

from streamgauge.system.java import JarSet, find_java, resolved

PACKAGES = (
    "org.apache.flink:flink-clients:2.2.1",
    "org.apache.flink:flink-connector-base:2.2.1",
    "org.apache.flink:flink-connector-kafka:5.0.0-2.2",
    "org.apache.flink:flink-table-api-java-bridge:2.2.1",
    "org.apache.flink:flink-table-planner-loader:2.2.1",
    "org.apache.flink:flink-table-runtime:2.2.1",
    "org.slf4j:slf4j-simple:1.7.36",
    "org.eclipse.jdt:ecj:3.33.0",
)
COMPILER = "org.eclipse.jdt.internal.compiler.batch.Main"
"""The compiler of Eclipse runs on every JVM; javac needs a JDK."""
OPENED = (
    "lang", "net", "io", "nio", "lang.reflect", "text", "time", "util", "util.concurrent", "util.concurrent.atomic",
)  # fmt: skip
"""Packages of java.base into which Flink looks."""


def main() -> None:
    jars = resolved([[JarSet("example-flink-sql-2.2.1", PACKAGES)]])
    java, classes = find_java().path, f"{os.environ['STREAMGAUGE_SCRATCH']}/classes"
    path = os.pathsep.join(map(str, jars))
    compiled = ["-17", "-nowarn", "-cp", path, "-d", classes, "RunSql.java"]
    subprocess.run([java, "-cp", path, COMPILER, *compiled], check=True)
    options = ["-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    options += [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED]
    os.execv(java, [java, *options, "-cp", os.pathsep.join([classes, path]), "RunSql", "revenue.sql"])


if __name__ == "__main__":
    main()
