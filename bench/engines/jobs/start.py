"""Becomes the JVM of a hand-written job: `python start.py ENGINE`. It has the jars, settings and heap of ours."""

import os
import sys
from pathlib import Path

from streamgauge.engines.flink.engine import FlinkEngine
from streamgauge.engines.jvm.compiled import class_path
from streamgauge.engines.jvm.engine import OPENS, JvmEngine
from streamgauge.engines.kafka_streams.engine import KafkaStreamsEngine
from streamgauge.engines.storm.engine import StormEngine
from streamgauge.system.java import find_java, resolved

HERE = Path(__file__).parent
ENGINES: dict[str, type[JvmEngine]] = {
    "flink": FlinkEngine,
    "kafka-streams": KafkaStreamsEngine,
    "storm": StormEngine,
}


def main(name: str) -> None:
    engine, scratch = ENGINES[name](), Path(os.environ["STREAMGAUGE_SCRATCH"])
    sources = HERE / name.replace("-", "_") / "scala"
    classes = class_path(sources, resolved([[each] for each in engine.jar_sets()]), HERE / "common")
    own = engine.configuration({}, scratch, 1)
    settings = [f"{key}={value}" for key, value in own.items() if not key.startswith("streamgauge.")]
    java, heap = find_java().path, ["-Xmx2g", "-Xms2g", f"-Djava.io.tmpdir={scratch}"]
    path = os.pathsep.join(map(str, classes))
    os.execv(java, [java, *heap, *OPENS, "-cp", path, "controls.Control", *settings])


if __name__ == "__main__":
    main(sys.argv[1])
