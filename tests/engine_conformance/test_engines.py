"""The conformance suite on our own engines. The example of another distribution: `test_outside.py`.

In `make test`, Spark runs every node in one session instead (`spark_session/`), and is killed and restarted with
applications (`spark_trials/test_life_of_spark.py`, `spark_trials/test_whole_path.py`).
"""

from streamgauge.conformance.suite import *  # noqa: F403
from streamgauge.engines.registry import streaming_engines

STREAMGAUGE_ENGINES = streaming_engines()
