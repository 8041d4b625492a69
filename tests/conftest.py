"""Settings of every test."""

from hypothesis import settings

# No test may depend on how fast this machine is just now.
settings.register_profile("streamgauge", deadline=None)
settings.load_profile("streamgauge")
