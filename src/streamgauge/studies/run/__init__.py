"""One trial on a fresh test bed, its input as files, and its figures for Prometheus."""
