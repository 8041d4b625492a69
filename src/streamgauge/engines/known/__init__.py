"""An engine of known capacity, with planted faults: what the instrument is tried on (`streamgauge selftest`)."""
