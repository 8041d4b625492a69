"""What the engine `external` states for the conformance suite."""

from streamgauge.engines.conformance import EVERY_CASE, TestConf, gaps

CONF = TestConf(gaps=gaps("never", "it runs programs, and no flow of ours", EVERY_CASE))
