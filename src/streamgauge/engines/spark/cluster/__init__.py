"""A standalone Spark cluster on this machine, of the Spark that PySpark brings."""
