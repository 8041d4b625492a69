"""How much a trial must hold before it is judged, and how far it may be extended."""

BATCHES_MIN, WINDOWS_MIN = 20, 5
BOUND_S_MIN = 10.0
"""Seconds of event time that must be able to wait before a full queue says anything about the system under test."""
EXTENSIONS_MAX = 2
EXTENSION_SHARE = 0.5
"""Of the span: the interval of a slope narrows with the span's power 1.5, so half as much again nearly halves it."""
EXTENSION_SHARE_MAX = 1.0
"""The same where the engine's batches are so long that the span held too few of them to say anything."""
