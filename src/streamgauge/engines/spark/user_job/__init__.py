"""Users' PySpark jobs: running, answering in batch, timing operators."""
