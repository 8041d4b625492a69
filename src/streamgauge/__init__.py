"""streamgauge: how much a stream-processing job can sustain, how late its results are and whether they are right."""

__version__ = "0.1.0"
