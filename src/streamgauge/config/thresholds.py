"""Sample sizes that a verdict needs, and the limits of extending a trial."""

BATCHES_MIN, WINDOWS_MIN = 20, 5
BOUND_S_MIN = 10.0
"""Smallest queue, in seconds of event time, whose overflow counts against the SUT."""
EXTENSIONS_MAX = 2
EXTENSION_SHARE = 0.5
"""Share of the span. The interval of a slope narrows with span^1.5, so one extension nearly halves it."""
EXTENSION_SHARE_MAX = 1.0
"""Share of the span if the engine's batches are so long that the shorter extension would still hold too few of them."""
