"""The applications of Bordin (2017), later DSPBench."""
