"""What engines on a JVM of their own share: rows and expressions on Spark's Catalyst, compiled at first use."""
