"""Apache Spark through PySpark: options, checks, start, and how each node is lowered."""
