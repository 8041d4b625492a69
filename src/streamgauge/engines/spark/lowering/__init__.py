"""How Spark implements each operator."""
