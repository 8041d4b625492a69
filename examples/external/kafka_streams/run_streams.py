"""Compiles Revenue.java and becomes its JVM. Spark's Ivy gets the jars once."""

import os
import subprocess

from streamgauge.system.java import JarSet, find_java, resolved

PACKAGES = (
    "org.apache.kafka:kafka-streams:4.2.0",
    "org.slf4j:slf4j-simple:1.7.36",
    "org.eclipse.jdt:ecj:3.33.0",
)
COMPILER = "org.eclipse.jdt.internal.compiler.batch.Main"
"""The compiler of Eclipse runs on every JVM; javac needs a JDK."""


def main() -> None:
    jars = resolved([[JarSet("example-kafka-streams-4.2.0", PACKAGES)]])
    java, classes = find_java().path, f"{os.environ['STREAMGAUGE_SCRATCH']}/classes"
    path = os.pathsep.join(map(str, jars))
    compiled = ["-17", "-nowarn", "-cp", path, "-d", classes, "Revenue.java"]
    subprocess.run([java, "-cp", path, COMPILER, *compiled], check=True)
    options = ["-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
    os.execv(java, [java, *options, "-cp", os.pathsep.join([classes, path]), "Revenue"])


if __name__ == "__main__":
    main()
