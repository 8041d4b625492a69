"""Every setting of an experiment, which is a command-line option and a key of its file; thresholds; reproduction."""
