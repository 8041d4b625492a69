"""Users' PySpark jobs: the call of the function, the types of results, and advice on Spark's errors."""
